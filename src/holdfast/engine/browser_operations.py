"""What is asked about browsers: a link that lets one in, that one comes in by it, or leaves."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.engine.asked import Keys, Operation


@dataclass(frozen=True, kw_only=True, slots=True)
class BrowserOperation(Operation):
    digest: str

    @property
    def keys(self) -> Keys:
        return (f"browser:{self.digest}",)


@dataclass(frozen=True, kw_only=True, slots=True)
class MakeLink(BrowserOperation):
    """For what the token of a `name` may do."""

    name: str
    ttl: int


@dataclass(frozen=True, kw_only=True, slots=True)
class EnterByLink(BrowserOperation):
    """From then on `session` is the digest of what the browser shows."""

    session: str
    ttl: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaveBrowser(BrowserOperation):
    pass
