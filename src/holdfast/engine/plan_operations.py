"""What is asked about a plan as it stands: that it be looked at again."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.engine.operations import Controlled


@dataclass(frozen=True, kw_only=True, slots=True)
class AdvancePlan(Controlled):
    pass
