"""Function options: what a function says of its own attempts, which no store keeps."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.worker.attempt.retry_rules import EVERY_ERROR_RETRIED, RetryRules


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionOptions:
    """The errors that are worth another attempt, and how long the function may be silent."""

    retry_rules: RetryRules = EVERY_ERROR_RETRIED
    idle_timeout: float | None = None


NO_OPTIONS = FunctionOptions()
