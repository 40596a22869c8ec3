"""What is asked about the usage limits of agents: that one is over."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.engine.asked import Keys, Operation


@dataclass(frozen=True, kw_only=True, slots=True)
class LiftLimit(Operation):
    agent: str

    @property
    def keys(self) -> Keys:
        return (f"limit:{self.agent}",)
