"""Where the steps of a worker are carried out that are no functions of its program."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.engine.engine import Engine
from holdfast.worker.execution import StepFailed
from holdfast.worker.secrets import Secrets
from holdfast.worker.state import State


@dataclass(frozen=True, kw_only=True)
class Post:
    engine: Engine
    state: State
    secrets: Secrets


class InvalidOutput(StepFailed):
    """It gave something else than its step declares to give."""
