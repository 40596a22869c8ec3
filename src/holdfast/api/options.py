"""Options of tasks and steps, read from the arguments of decorators."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypedDict, get_args

from holdfast.errors import InvalidInput
from holdfast.model.retry import MAX_COUNT, RetryPolicy, positive_microseconds
from holdfast.model.text import clean_name
from holdfast.model.units import parse_duration
from holdfast.model.workflow.graph import Concurrency, OnFailure
from holdfast.model.workflow.step import Escalation, FailureAction
from holdfast.model.workflow.template import parse_template
from holdfast.settings import RENEWALS, Settings
from holdfast.worker.attempt.function_options import FunctionOptions
from holdfast.worker.attempt.retry_rules import RetryRules, read_error_types


class StepOptions(TypedDict, total=False):
    agent: str
    retry: RetryPolicy
    timeout: float | None
    tags: tuple[str, ...]
    priority: int
    concurrency: Concurrency | None


_COUNTS = ("max_attempts", "max_lost")
_WAITS = ("backoff", "backoff_max")
# Kept with the function, because only its program knows the classes of its errors, and runs it.
_RETRY_RULES = ("retry_on", "never_retry_on")
FUNCTION_OPTIONS = (*_RETRY_RULES, "idle_timeout", "isolation")
STEP_OPTIONS = (*_COUNTS, *_WAITS, "agent", "timeout", "tags", "priority", "concurrency")
_VARIABLE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_LIKE_A_VARIABLE = re.compile(r"\$?\{[^{}]*\}?|\$[A-Za-z_]\w*|\}+")


def refuse_unknown(what: str, given: Iterable[str], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            hint = suggest_name(name, known) or f"; known are {', '.join(known)}"
            raise InvalidInput(name, f"is no {what}{hint}")


def check_count(field: str, value: object) -> int:
    """The whole number from 1 on that was given; refuses any other value."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(field, f"must be a whole number, not {type(value).__name__}")
    if not 1 <= value <= MAX_COUNT:
        raise InvalidInput(field, f"must be between 1 and {MAX_COUNT}, not {value}")
    return value


def check_task_function(field: str, name: object, known: Collection[str]) -> None:
    """Refuse the name of a task function that this program does not have."""
    if name not in known:
        hint = suggest_name(str(name), known) or f"; it has {', '.join(known) or 'none at all'}"
        reason = f"{name!r} is no task function of this program{hint}"
        raise InvalidInput(field, reason)


def suggest_name(name: str, known: Collection[str]) -> str:
    """A hint with the known name that was probably meant; empty where none is near."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def read_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Read `lease="30s", max_attempts=5, …`; an unknown setting is refused by name."""
    known = {each.name: each for each in fields(Settings)[1:]}
    refuse_unknown("setting", given, known)
    read = {
        name: parse_duration(name, value) if isinstance(known[name].default, float) else value
        for name, value in given.items()
    }
    if "lease" in read:
        # A lease without a renewal gets one that fits it.
        read.setdefault("renewal", min(Settings.renewal, read["lease"] / RENEWALS))
    return read


def default_retry(settings: Settings) -> RetryPolicy:
    """The retry policy of a task or step without options of its own."""
    return RetryPolicy(**{name: getattr(settings, name) for name in (*_COUNTS, *_WAITS)})


def read_step_options(given: Mapping[str, Any], retry: RetryPolicy) -> StepOptions:
    """Read `max_attempts=5, timeout="2m", …`; an unknown option is refused by name."""
    refuse_unknown("option", given, (*STEP_OPTIONS, *FUNCTION_OPTIONS))
    options = StepOptions(retry=replace(retry, **_retry(given)))
    if "agent" in given:
        options["agent"] = given["agent"]
    if "timeout" in given:
        options["timeout"] = read_seconds("timeout", given["timeout"])
    if "tags" in given:
        options["tags"] = _tags(given["tags"])
    if "priority" in given:
        options["priority"] = given["priority"]
    if "concurrency" in given:
        options["concurrency"] = read_concurrency(given["concurrency"])
    return options


def read_function_options(given: Mapping[str, Any]) -> FunctionOptions:
    """Read `retry_on=ConnectionError`, `idle_timeout="5m"` and `isolation="process"`."""
    rules = {name: read_error_types(name, given[name]) for name in _RETRY_RULES if name in given}
    return FunctionOptions(
        retry_rules=RetryRules(**rules),
        idle_timeout=read_seconds("idle_timeout", given.get("idle_timeout")),
        isolated=_read_isolation(given.get("isolation")),
    )


def _read_isolation(given: object) -> bool:
    if given not in {None, "process"}:
        raise InvalidInput("isolation", f'{given!r} is none; say "process", or leave it out')
    return given is not None


def read_concurrency(given: object) -> Concurrency | None:
    """A key alone means one at a time; a pair is a key and its limit.

    Text that looks like a variable, and is none, is refused.
    """
    match given:
        case None:
            return None
        case Concurrency():
            read = given
        case str():
            read = Concurrency(key=given)
        case [str(key), int(limit)]:
            read = Concurrency(key=key, limit=limit)
        case _:
            raise InvalidInput("concurrency", _describe_no_key(given))
    _refuse_no_variable(read.key)
    return read


def _describe_no_key(given: object) -> str:
    if callable(given) or (isinstance(given, list | tuple) and any(map(callable, given))):
        advice = 'write a text with variables: "customer-{{ input.customer }}"'
        return f"a function gives the keys of @hf.task alone; {advice}"
    return f"{given!r} is neither a key nor (key, limit)"


def _refuse_no_variable(key: str) -> None:
    if "{{" in key:
        parse_template("concurrency", key)
    if found := _LIKE_A_VARIABLE.search(_VARIABLE.sub("", key)):
        reason = f"{found[0]!r} in {key!r} is no variable; write {{{{ input.customer }}}}"
        raise InvalidInput("concurrency", reason)


def read_seconds(field: str, given: object) -> float | None:
    """The seconds of a duration that may be absent."""
    if given is None:
        return None
    seconds = parse_duration(field, given)
    positive_microseconds(field, seconds)
    return seconds


def _tags(given: object) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidInput("tags", f"must be a list, not {type(given).__name__}")
    return tuple(given)


def _retry(given: Mapping[str, Any]) -> dict[str, Any]:
    counts = {name: given[name] for name in _COUNTS if name in given}
    waits = {name: parse_duration(name, given[name]) for name in _WAITS if name in given}
    return counts | waits


@dataclass(frozen=True, slots=True)
class Goto:
    """The step to begin again at, as `goto` was called."""

    step: Any
    max_rounds: int = 1


def goto(step: Any, *, max_rounds: int = 1) -> Goto:  # noqa: ANN401 - a step, a loop, or a name
    """Begin again at a step further up, at most `max_rounds` times: `on_failure=goto(build)`.

    That step, and all that follow it, run again; the error is their `feedback`.
    """
    return Goto(step, check_count("max_rounds", max_rounds))


@dataclass(frozen=True, slots=True)
class Escalate:
    """The agent that a failed step is handed to, as `escalate` was called."""

    agent: str
    on_failure: str = "fail"


def escalate(agent: str, *, on_failure: str = "fail") -> Escalate:
    """Hand a step that failed for good to another agent, once: `on_failure=escalate("senior")`.

    That agent has budgets of its own, and the error is its `feedback`. If it fails for good too,
    `on_failure` says what follows: "fail", "skip" or "ask".
    """
    return Escalate(clean_name("agent", agent), on_failure)


def read_on_failure(given: object, name: Callable[[Any], str]) -> OnFailure:
    """Read `on_failure="skip"`, `on_failure=goto(build)` or `on_failure=escalate("senior")`."""
    if isinstance(given, Escalate):
        then = _read_word(given.on_failure, "")
        return OnFailure(action="escalate", escalation=Escalation(agent=given.agent, then=then))
    if isinstance(given, Goto):
        return OnFailure(action="goto", step=name(given.step), max_rounds=given.max_rounds)
    return OnFailure(action=_read_word(given, " nor goto(step) nor escalate(agent)"))


def _read_word(given: object, others: str) -> FailureAction:
    words: dict[str, FailureAction] = {
        word: word for word in get_args(FailureAction) if word not in {"goto", "escalate"}
    }
    if isinstance(given, str) and given in words:
        return words[given]
    hint = suggest_name(given, words) if isinstance(given, str) else ""
    reason = f"{given!r} is neither {', '.join(map(repr, words))}{others}{hint}"
    raise InvalidInput("on_failure", reason)
