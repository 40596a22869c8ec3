"""Problems: what is refused over HTTP, as RFC 9457 tells it, each with a code that stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

# How every refusal of Holdfast begins.
PROBLEM = "urn:holdfast:problem:"


@dataclass(frozen=True, kw_only=True)
class HttpReply:
    """What a call is answered: its status, and the JSON that goes with it."""

    status: int
    body: Mapping[str, Any]

    @property
    def refused(self) -> bool:
        return self.status >= HTTPStatus.BAD_REQUEST


def problem(status: int, code: str, detail: str, **more: Any) -> HttpReply:
    title = HTTPStatus(status).phrase
    told = {"type": f"{PROBLEM}{code}", "title": title, "status": status}
    return HttpReply(status=status, body={**told, "code": code, "detail": detail, **more})
