"""Function options: what a function says of its own attempts, which no store keeps.

A function may ask for a process of its own, which is told the function's call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.worker.attempt.retry_rules import EVERY_ERROR_RETRIED, RetryRules


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionOptions:
    """The errors worth another attempt, the longest silence, and whether it gets a process."""

    retry_rules: RetryRules = EVERY_ERROR_RETRIED
    idle_timeout: float | None = None
    isolated: bool = False


NO_OPTIONS = FunctionOptions()


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionCall:
    """A function by its module and name, and its arguments as JSON, for another process."""

    module: str
    name: str
    arguments: Mapping[str, Any]
    # Whether the function gives a verdict about other work.
    verdict: bool = False
