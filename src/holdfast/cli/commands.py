"""All commands together."""

from __future__ import annotations

from holdfast.cli import following, looking, running, steering, working
from holdfast.cli.registry import app

__all__ = ["app", "following", "looking", "running", "steering", "working"]
