"""Attempt requests: the worker's protocol for one attempt, without the secrets of its worker."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import logging
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from holdfast.errors import HoldfastError, InvalidInput
from holdfast.model.task import Assignment
from holdfast.threads import Lock
from holdfast.worker.problem import HttpReply, problem
from holdfast.worker.secrets.redaction import Redaction
from holdfast.worker.secrets.secret_rules import Clean, Cleaner, WrittenKind, redact_or_refuse

# The fields of each call that people read, which are redacted. Code reads all other fields again.
SHOWN_FIELDS: Mapping[str, Mapping[str, WrittenKind]] = {
    "renew": {"progress": WrittenKind.PROGRESS, "usage": WrittenKind.USAGE},
    "complete": {"output": WrittenKind.OUTPUT, "usage": WrittenKind.USAGE},
    "fail": {"error": WrittenKind.ERROR, "usage": WrittenKind.USAGE},
    "ask": {"question": WrittenKind.QUESTION},
    "release": {},
    "guard": {},
    "logs": {},
    "effects": {},
    "artifacts": {},
    "children": {},
}
_REPORTS = frozenset({"complete", "fail", "release", "ask"})
_READ_BY_CODE = {"effects": WrittenKind.EFFECT, "children": WrittenKind.CHILD}
_PATH = re.compile(r"/api/v1/claims/(?:(?P<task>t_[0-9a-z]+)/)?(?P<verb>[a-z]+)")
_STORE_UNAVAILABLE = problem(503, "store_unavailable", "the store does not answer; ask again")
_ATTEMPT_ENDED = problem(401, "unauthorized", "this address was that of an attempt that has ended")

log = logging.getLogger("holdfast.worker")


@dataclass(frozen=True, kw_only=True)
class AttemptRequest:
    method: str
    path: str
    kind: str
    body: bytes


class CallForwarder(Protocol):
    """Forwards calls to the store, or to its server."""

    def forward(self, task_id: str, verb: str, body: dict[str, Any]) -> HttpReply: ...


class NotServed(Exception):
    """The call is answered here, and is not forwarded."""

    def __init__(self, reply: HttpReply) -> None:
        super().__init__(reply.body["detail"])
        self.reply = reply


class AttemptRequests:
    """Answers the calls of one attempt until it has ended; several threads may use it.

    The log comes in pieces, and a secret may be cut in two: the end of a piece that may begin a
    secret is held back until the next piece, the report of the attempt or its end.
    """

    def __init__(
        self,
        assignment: Assignment,
        forwarder: CallForwarder,
        current_redaction: Callable[[], Redaction],
        lock: Lock,
    ) -> None:
        self._assignment = assignment
        self._forwarder = forwarder
        self._current_redaction = current_redaction
        self._clean: Clean = Cleaner(current_redaction)
        self._lock = lock
        self._held_log = b""
        # Whether the held-back end of the log was written for a report.
        self._tail_was_written = False
        self._ended = False

    def answer(self, request: AttemptRequest) -> HttpReply:
        try:
            return self._serve(request)
        except NotServed as refused:
            return refused.reply
        except InvalidInput as error:
            return problem(422, "invalid_input", str(error), field=error.field)
        except HoldfastError as error:
            log.warning("a call of %s is not answered: %s", self, self._clean(str(error)))
            return _STORE_UNAVAILABLE
        except RecursionError:
            return problem(400, "invalid_json", "the body is nested too deeply")

    def _serve(self, request: AttemptRequest) -> HttpReply:
        verb, body = self._read_call(request)
        self._check_attempt(verb, body)
        clean = self._redact_or_refuse(verb, body)
        if verb == "logs":
            return self._forward_log(clean)
        if verb in _REPORTS:
            return self._forward_report(verb, clean)
        return self._forwarder.forward(self._assignment.task_id, verb, clean)

    def end(self) -> None:
        """Refuse later calls, and write the part of the log that was held back."""
        with self._lock:
            self._ended = True
        try:
            self._flush_log()
        except HoldfastError as error:
            log.warning("the end of the log of %s is not written: %s", self, error)

    def _read_call(self, request: AttemptRequest) -> tuple[str, dict[str, Any]]:
        found = _PATH.fullmatch(request.path.partition("?")[0])
        verb = "" if found is None else found["verb"]
        whole = found is not None and (found["task"] is None) == (verb == "renew")
        if found is None or verb not in SHOWN_FIELDS or not whole:
            raise NotServed(self._make_foreign_reply())
        if request.method != "POST":
            raise NotServed(problem(405, "method_not_allowed", "this path takes POST"))
        if found["task"] not in {None, self._assignment.task_id}:
            raise NotServed(self._make_foreign_reply())
        if "json" not in request.kind.lower():
            detail = "send the header Content-Type: application/json"
            raise NotServed(problem(415, "unsupported_media_type", detail))
        try:
            body = _DECODER.decode(request.body.decode())
        except ValueError as error:
            raise NotServed(problem(400, "invalid_json", "the body is no JSON")) from error
        if not isinstance(body, dict):
            raise InvalidInput("body", "must be an object")
        return verb, body

    def _check_attempt(self, verb: str, body: dict[str, Any]) -> None:
        """Refuse a call for another attempt, or without the attempt's own token."""
        held = body
        if verb == "renew":
            leases = body.get("leases")
            if not isinstance(leases, list) or not all(isinstance(each, dict) for each in leases):
                raise InvalidInput("leases", "must be a list of objects")
            if len(leases) != 1 or leases[0].get("task_id") != self._assignment.task_id:
                raise NotServed(self._make_foreign_reply())
            held = leases[0]
        token = held.get("token")
        if not isinstance(token, str):
            raise InvalidInput("token", "is missing; HOLDFAST_ATTEMPT_TOKEN has it")
        own = self._assignment.token.encode()
        if not hmac.compare_digest(token.encode(errors="replace"), own):
            detail = f"that is not the token of {self}, which alone is served at this address"
            raise NotServed(problem(409, "stale_token", detail))

    def _redact_or_refuse(self, verb: str, body: dict[str, Any]) -> dict[str, Any]:
        """The body as it may be written down; raises `InvalidInput` where a secret is refused."""
        if verb == "renew":
            (lease,) = body["leases"]
            kept = {key: value for key, value in body.items() if key == "lease_seconds"}
            return {**kept, "leases": [self._redact_fields(verb, lease)]}
        if verb == "artifacts":
            return self._check_file(body)
        return self._redact_fields(verb, body)

    def _redact_fields(self, verb: str, body: dict[str, Any]) -> dict[str, Any]:
        shown = SHOWN_FIELDS[verb]
        apart = {"token", "chunk"} if verb == "logs" else {"token"}
        rest = {key: value for key, value in body.items() if key not in {*shown, *apart}}
        redact_or_refuse(
            _READ_BY_CODE.get(verb, WrittenKind.NAME),
            rest,
            self._clean,
            _find_secret_field(verb, rest, self._clean),
        )
        return {
            key: redact_or_refuse(shown[key], value, self._clean) if key in shown else value
            for key, value in body.items()
        }

    def _check_file(self, body: dict[str, Any]) -> dict[str, Any]:
        content = body.get("content")
        rest = {key: value for key, value in body.items() if key not in {"token", "content"}}
        redact_or_refuse(WrittenKind.NAME, rest, self._clean, "name")
        if body.get("encoding") != "base64":
            return {**body, "content": redact_or_refuse(WrittenKind.TEXT, content, self._clean)}
        if isinstance(content, str):
            try:
                data = base64.b64decode(content, validate=True)
            except (binascii.Error, ValueError) as error:
                raise InvalidInput("content", f"is no base64: {error}") from error
            redact_or_refuse(WrittenKind.FILE, data, self._clean, "content")
        return body

    def _forward_log(self, body: dict[str, Any]) -> HttpReply:
        chunk = body.get("chunk")
        if not isinstance(chunk, str):
            raise InvalidInput("chunk", "must be text")
        with self._lock:
            if self._ended:
                return _ATTEMPT_ENDED
            whole = self._held_log + chunk.encode(errors="surrogatepass")
            clean, held = self._current_redaction().split(whole)
            reply = self._send_log({**body, "chunk": clean.decode(errors="replace")})
            # After a refusal the command may send the same piece again.
            if not reply.refused:
                self._held_log = held
            return reply

    def _forward_report(self, verb: str, body: dict[str, Any]) -> HttpReply:
        self._flush_log()
        reply = self._forwarder.forward(self._assignment.task_id, verb, body)
        if reply.refused:
            self._separate_refused_log()
        return reply

    def _flush_log(self) -> None:
        with self._lock:
            held, self._held_log = self._held_log, b""
            if held:
                text = self._current_redaction().clean(held).decode(errors="replace")
                self._send_log({"token": self._assignment.token, "chunk": text})
                self._tail_was_written = True

    def _separate_refused_log(self) -> None:
        """Begin a new line after a refused report, so that no secret joins across the two parts."""
        with self._lock:
            if self._tail_was_written:
                self._held_log, self._tail_was_written = b"\n" + self._held_log, False

    def _send_log(self, body: dict[str, Any]) -> HttpReply:
        return self._forwarder.forward(self._assignment.task_id, "logs", body)

    def _make_foreign_reply(self) -> HttpReply:
        detail = f"this address serves {self} alone: the calls below /claims that report about it"
        return problem(403, "forbidden", detail)

    def __str__(self) -> str:
        return f"attempt {self._assignment.attempt} of {self._assignment.task_id}"


def _find_secret_field(verb: str, rest: Mapping[str, Any], clean: Clean) -> str | None:
    """The name of the field that holds a secret, for the refusal."""
    return next((key for key, value in rest.items() if clean(value) != value), verb)


def _parse_finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


_DECODER = json.JSONDecoder(parse_constant=_parse_finite, parse_float=_parse_finite)
