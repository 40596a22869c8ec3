"""Problems: RFC 9457 replies to refused calls over HTTP; alone here because servers use it too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

# Every `type` of a problem begins with this.
PROBLEM = "urn:holdfast:problem:"


@dataclass(frozen=True, kw_only=True)
class HttpReply:
    """The status and the JSON body with which a call is answered."""

    status: int
    body: Mapping[str, Any]

    @property
    def refused(self) -> bool:
        return self.status >= HTTPStatus.BAD_REQUEST


def problem(status: int, code: str, detail: str, **more: Any) -> HttpReply:
    title = HTTPStatus(status).phrase
    named = {"type": f"{PROBLEM}{code}", "title": title, "status": status}
    return HttpReply(status=status, body={**named, "code": code, "detail": detail, **more})
