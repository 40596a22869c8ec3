"""Attempt calls: calls of the worker's protocol by a command whose worker opens the store."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from holdfast.engine.engine import Engine
from holdfast.engine.state.effects import EFFECTS_AT_ONCE
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.model.effect import WakeCondition
from holdfast.model.task import Renewal
from holdfast.service.commands import request_bodies
from holdfast.service.commands.http_problems import describe_error, describe_mistakes
from holdfast.service.commands.request_errors import rename_fields, translate_errors
from holdfast.service.commands.task_fields import read_moment
from holdfast.service.commands.token_scope import TokenScope
from holdfast.service.protocol.protocol import Note, Protocol
from holdfast.service.queries.queries import Queries
from holdfast.service.queries.views import View
from holdfast.worker.files.state_directory import StateDirectory
from holdfast.worker.problem import HttpReply

AttemptCall = Callable[[str, Any], HttpReply]


class AttemptCalls:
    """Answers the calls of commands with the shapes and codes of a server."""

    def __init__(self, engine: Engine, state: StateDirectory) -> None:
        queries = Queries(engine.database.view, lambda: engine)
        self._protocol = Protocol(engine, queries, state, TokenScope(None, engine))
        self._calls: Mapping[str, tuple[type[request_bodies.RequestBody], AttemptCall]] = {
            "renew": (request_bodies.RenewBody, self._renew),
            "complete": (request_bodies.CompleteBody, self._complete),
            "fail": (request_bodies.FailBody, self._fail),
            "release": (request_bodies.ReleaseBody, self._release),
            "ask": (request_bodies.AskBody, self._ask),
            "guard": (request_bodies.AttemptBody, self._guard),
            "logs": (request_bodies.LogBody, self._log),
            "effects": (request_bodies.EffectBody, self._effect),
            "artifacts": (request_bodies.ArtifactBody, self._artifact),
            "children": (request_bodies.SpawnChildrenBody, self._spawn),
        }

    def forward(self, task_id: str, verb: str, body: dict[str, Any]) -> HttpReply:
        kind, call = self._calls[verb]
        try:
            return call(task_id, kind.model_validate(body))
        except ValidationError as error:
            fields = sorted(kind.model_fields)
            return describe_mistakes(translate_errors(error.errors(), fields))
        except HoldfastError as error:
            return describe_error(error)

    def _renew(self, _: str, body: request_bodies.RenewBody) -> HttpReply:
        renewals = [
            Renewal(
                task_id=each.task_id, token=each.token, progress=each.progress, usage=each.usage
            )
            for each in body.leases
        ]
        with rename_fields(lease="lease_seconds"):
            return _reply(self._protocol.renew_many(renewals, body.lease_seconds))

    def _complete(self, task_id: str, body: request_bodies.CompleteBody) -> HttpReply:
        return _reply(self._protocol.complete(task_id, body.token, body.output, body.usage))

    def _fail(self, task_id: str, body: request_bodies.FailBody) -> HttpReply:
        if body.limit_until is not None:
            until = read_moment(body.limit_until)
            with rename_fields(until="limit_until"):
                return _reply(self._protocol.reach_limit(task_id, body.token, until, body.usage))
        again = body.retryable is not False
        told = self._protocol.fail(
            task_id, body.token, body.error, retryable=again, usage=body.usage
        )
        return _reply(told)

    def _release(self, task_id: str, body: request_bodies.ReleaseBody) -> HttpReply:
        until, notes = read_moment(body.until), _read_notes(body.note)
        with rename_fields(name="note.name", value="note.value", signal="wait_for"):
            if body.wait_for is not None:
                wait = WakeCondition(until=until, signals=(body.wait_for,))
                return _reply(self._protocol.wait_for(task_id, body.token, wait, notes))
            if body.note is None:
                return _reply(self._protocol.release(task_id, body.token, until))
            return _reply(
                self._protocol.suspend(task_id, body.token, WakeCondition(until=until), notes)
            )

    def _ask(self, task_id: str, body: request_bodies.AskBody) -> HttpReply:
        with rename_fields(name="note.name", value="note.value"):
            notes = _read_notes(body.note)
            return _reply(self._protocol.ask(task_id, body.token, body.question, notes))

    def _guard(self, task_id: str, body: request_bodies.AttemptBody) -> HttpReply:
        return _reply(self._protocol.guard(task_id, body.token))

    def _log(self, task_id: str, body: request_bodies.LogBody) -> HttpReply:
        size = self._protocol.log(task_id, body.token, body.chunk.encode(errors="replace"))
        return _reply({"ok": True, "bytes": size})

    def _effect(self, task_id: str, body: request_bodies.EffectBody) -> HttpReply:
        if body.name is None:
            limit = EFFECTS_AT_ONCE if body.limit is None else body.limit
            return _reply(self._protocol.effects(task_id, body.token, body.after, limit))
        return _reply(self._protocol.record_effect(task_id, body.token, body.name, body.value))

    def _artifact(self, task_id: str, body: request_bodies.ArtifactBody) -> HttpReply:
        text = body.encoding != "base64"
        content = body.content.encode(errors="replace") if text else base64.b64decode(body.content)
        return _reply(self._protocol.keep_artifact(task_id, body.token, body.name, content))

    def _spawn(self, task_id: str, body: request_bodies.SpawnChildrenBody) -> HttpReply:
        if any(each.step is not None for each in body.tasks):
            raise InvalidInput("step", "a child that a command makes names no function")
        wanted = [each.without_nulls() for each in body.tasks]
        told = self._protocol.spawn(task_id, body.token, wanted, body.name or "children")
        return HttpReply(status=200 if told["repeated"] else 201, body=told)


def _reply(told: View) -> HttpReply:
    return HttpReply(status=200, body=told)


def _read_notes(body: request_bodies.EffectNoteBody | None) -> list[Note]:
    return [] if body is None else [(body.name, body.value)]
