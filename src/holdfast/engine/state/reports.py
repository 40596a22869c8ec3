"""Reports of attempts as operations: each carries the fence that the token of the worker proves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.engine.core.operation import FORGED_FENCE, Complete, Fail, HeldTask, Release
from holdfast.engine.input import validation
from holdfast.engine.state.durable import AskQuestion, Notes, Suspend
from holdfast.errors import InvalidInput
from holdfast.model.budget import check_usage
from holdfast.model.effect import WakeCondition, write_awaited
from holdfast.model.retry import MICROSECONDS
from holdfast.model.text import clean_key, clean_name, clean_text, digest, encode_json
from holdfast.model.token import read_fence
from holdfast.model.units import Moment, parse_moment
from holdfast.model.workflow.line import Draft, NewHead, clean_sha
from holdfast.randomness import Randomness
from holdfast.settings import Settings

# Otherwise a misread time could stop an agent for ever.
LONGEST_LIMIT = 7 * 24 * 60 * 60 * MICROSECONDS


FinalReport = Complete | Fail | Release | AskQuestion | Suspend


class ReportContext(Protocol):
    """The parts of an engine, or of a remote store, with which reports are made."""

    @property
    def settings(self) -> Settings: ...
    @property
    def randomness(self) -> Randomness: ...
    @property
    def secret(self) -> bytes: ...

    def now(self) -> int: ...


class Reports:
    def __init__(self, context: ReportContext) -> None:
        self._context = context

    def complete(
        self,
        held: HeldTask,
        output: object = None,
        *,
        usage: object = None,
        commit: NewHead | None = None,
    ) -> Complete:
        text = encode_json("output", output, limit=self._context.settings.max_output)
        return Complete(
            **held,
            output=text,
            digest=digest(text),
            usage=encode_usage(usage),
            head=None if commit is None else check_head(commit),
        )

    def fail(  # noqa: PLR0913 - what failed, and what it left
        self,
        held: HeldTask,
        error: object,
        *,
        retryable: bool = True,
        usage: object = None,
        left: Draft | None = None,
        anew: bool = False,
    ) -> Fail:
        text = encode_json("error", error, limit=self._context.settings.max_output)
        return Fail(
            **held,
            error=text,
            digest=digest(text),
            retryable=validation.flag("retryable", retryable),
            jitter=self._context.randomness.random(),
            usage=encode_usage(usage),
            left=None if left is None else check_draft("left", left),
            anew=validation.flag("anew", anew),
        )

    def release(
        self,
        held: HeldTask,
        *,
        until: Moment | None = None,
        usage: object = None,
        draft: Draft | None = None,
    ) -> Release:
        chosen = None if until is None else parse_moment("until", until, self._context.now)
        kept = None if draft is None else check_draft("draft", draft)
        return Release(**held, until=chosen, usage=encode_usage(usage), draft=kept)

    def reach_limit(
        self, held: HeldTask, until: Moment, usage: object = None, draft: Draft | None = None
    ) -> Release:
        lifts = parse_moment("until", until, self._context.now)
        if lifts > self._context.now() + LONGEST_LIMIT:
            raise InvalidInput(
                "until", "a usage limit lifts at most 7 days ahead; tell it again then"
            )
        kept = None if draft is None else check_draft("draft", draft)
        return Release(**held, limit=lifts, usage=encode_usage(usage), draft=kept)

    def ask(
        self,
        held: HeldTask,
        question: object,
        *,
        notes: Sequence[tuple[str, object]] = (),
        draft: Draft | None = None,
    ) -> AskQuestion:
        text = encode_json("question", question, limit=validation.JSON_SCALAR_LIMIT)
        kept = None if draft is None else check_draft("draft", draft)
        return AskQuestion(**held, question=text, notes=self._notes(notes), draft=kept)

    def suspend(
        self,
        held: HeldTask,
        wait: WakeCondition,
        *,
        notes: Sequence[tuple[str, object]] = (),
        draft: Draft | None = None,
    ) -> Suspend:
        until = wait.until
        return Suspend(
            **held,
            until=None if until is None else parse_moment("until", until, self._context.now),
            awaited=_encode_awaited(wait),
            notes=self._notes(notes),
            draft=None if draft is None else check_draft("draft", draft),
        )

    def _notes(self, notes: Sequence[tuple[str, object]]) -> Notes:
        limit = self._context.settings.max_output
        return tuple(
            (clean_key("name", name), encode_json("value", value, limit=limit))
            for name, value in notes
        )

    def read_token(self, task_id: str, token: str) -> HeldTask:
        """Read the fence that a token proves for a task."""
        identifier = validation.task_id(task_id)
        text = clean_text("token", token)
        # A forged token gets a fence that no row has, so that the row decides here as well.
        return {
            "task_id": identifier,
            "fence": read_fence(self._context.secret, identifier, text) or FORGED_FENCE,
        }


def check_head(commit: NewHead) -> NewHead:
    validation.instance("commit", commit, NewHead)
    clean_text("commit.line", commit.line)
    validation.number("commit.number", commit.number, least=0)
    clean_sha("commit.base", commit.base)
    clean_sha("commit.sha", commit.sha)
    return commit


def check_draft(field: str, draft: Draft) -> Draft:
    validation.instance(field, draft, Draft)
    clean_sha(f"{field}.base", draft.base)
    clean_sha(f"{field}.sha", draft.sha)
    return draft


def encode_small(field: str, value: object) -> str | None:
    if value is None:
        return None
    return encode_json(field, value, limit=validation.JSON_SCALAR_LIMIT)


def encode_usage(usage: object) -> str | None:
    """Check the usage of an attempt, and write it as JSON."""
    check_usage(usage)
    return encode_small("usage", usage)


def _encode_awaited(wait: WakeCondition) -> str | None:
    if wait == WakeCondition():
        raise InvalidInput("wait", "say until when, for which signal, or for the children")
    signals = [clean_name("signal", each) for each in wait.signals]
    target = validation.target(wait.target) if signals else ""
    return write_awaited(target, signals, children=wait.children)
