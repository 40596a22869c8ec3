"""Every knob of one store and its engine, with its default; durations are seconds."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from holdfast.errors import InvalidInput

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Settings:
    url: str = field(repr=False)
    lease: float = 30.0
    renewal: float = 10.0
    recovery: float = 0.5
    poll: float = 1.0
    max_attempts: int = 3
    max_lost: int = 5
    backoff: float = 5.0
    backoff_max: float = 300.0
    max_payload: int = MEBIBYTE
    max_output: int = MEBIBYTE
    group_size: int = 500
    patience: float = 30.0
    watch: float = 0.02
    view_connections: int = 8

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name != "url" and value <= 0:
                raise InvalidInput(each.name, f"must be more than 0, not {value}")
        if self.renewal >= self.lease:
            reason = f"{self.renewal} s must be less than the lease of {self.lease} s"
            raise InvalidInput("renewal", reason)
