"""Standalone context: the context of a step that a test calls as the plain function that it is."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from holdfast.engine.core.sync_async import reading
from holdfast.errors import InvalidInput
from holdfast.model.moment import to_datetime
from holdfast.model.result import TransitionResult
from holdfast.model.task import NamedLease, NewTask
from holdfast.model.text import clean_name, encode_json
from holdfast.settings import MEBIBYTE
from holdfast.worker.attempt.durable import SignalTimeout, callee_of, parse_seconds
from holdfast.worker.attempt.effect_names import EffectNames
from holdfast.worker.attempt.json_values import decode_result, decode_signal, encode_effect
from holdfast.worker.attempt.step_context import AsyncContext, Context, StepContext, Wait

TASK = "t_00000000000000000000"


class StandaloneContext(Context, AsyncContext):
    """A context without a store: `charge(StandaloneContext(), order_id=7)`.

    Effects are done at once, and kept by name in `effects`. A sleep ends at once, and is noted in
    `sleeps`. The test gives what the step waits for: `signals` has for each name a payload, or a
    list with one for each time, and `TimeoutError` for a signal that does not come in time;
    `answers` has one for each question, which are then in `asked`. What the step starts with `map`
    is called here, and what it spawns is in `spawned`. In an `async` step the calls are to be
    awaited, as always; say so with `asynchronous` where a plain step runs inside a loop.
    """

    def __init__(  # noqa: PLR0913 - all that a step may ask of its context
        self,
        *,
        signals: Mapping[str, Any] | None = None,
        answers: Sequence[Any] = (),
        attempt: int = 1,
        run_id: str | None = None,
        folder: Path | None = None,
        taken_leases: Sequence[str] = (),
        asynchronous: bool | None = None,
    ) -> None:
        self.effects: dict[str, Any] = {}
        self.sleeps: list[float] = []
        self.logs: list[str] = []
        self.notes: list[Any] = []
        self.spawned: list[NewTask] = []
        self.artifacts: dict[str, bytes] = {}
        self.asked: list[Any] = []
        self._signals = {
            name: list(given) if isinstance(given, list) else given
            for name, given in (signals or {}).items()
        }
        self._answers = list(answers)
        self._attempt = attempt
        self._run_id = run_id
        self._folder = folder
        self._taken = set(taken_leases)
        self._asynchronous = asynchronous
        self._names = EffectNames()
        self._fences = itertools.count(1)

    @property
    def task_id(self) -> str:
        """The id of a task that does not exist."""
        return TASK

    @property
    def run_id(self) -> str | None:
        """The id of the run that the test names."""
        return self._run_id

    @property
    def attempt(self) -> int:
        """The number of the attempt that the test names."""
        return self._attempt

    @property
    def token(self) -> str:
        """A token that no store accepts."""
        return "standalone"

    @property
    def deadline(self) -> float:
        """The lease never ends."""
        return inf

    @property
    def ended(self) -> bool:
        """The attempt is never over before its function returns."""
        return False

    @reading
    def check(self: StepContext) -> TransitionResult:
        """The attempt may act."""
        return TransitionResult(ok=True)

    @reading
    def guard(self: StepContext) -> None:
        """The attempt may act."""

    def progress(self, note: object) -> None:
        """Note how far the step is, in `notes`."""
        self.notes.append(json.loads(encode_json("progress", note, limit=MEBIBYTE)))

    def log(self, text: object) -> None:
        """Note a line, in `logs`."""
        self.logs.append(str(text))

    def effect(self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Do something now; what it gave is kept in `effects`, in JSON form, as a store would."""
        known = self._names.take_effect_name(name)

        def keep(result: object) -> Any:  # noqa: ANN401 - what the function gives
            self.effects[known] = json.loads(
                encode_json("effect", encode_effect(name, result), limit=MEBIBYTE)
            )
            return decode_result(function, self.effects[known])

        if not self._is_asynchronous():
            with self._names.effect_under_way(name, known):
                return keep(function(*args, **kwargs))

        async def do() -> Any:  # noqa: ANN401 - JSON
            with self._names.effect_under_way(name, known):
                result = function(*args, **kwargs)
                return keep(await result if inspect.isawaitable(result) else result)

        return do()

    def effect_id(self, name: str) -> str:
        """The id of the effect under way, inside its function; else of the next of that name."""
        return f"{TASK}/0/{self._names.find_effect_name(name)}"

    def sleep(self, duration: Wait, *, name: str | None = None) -> Any:  # noqa: ANN401
        """Note for how many seconds the step would wait, in `sleeps`."""
        self._names.take_name("sleep", name)
        self.sleeps.append(parse_seconds("duration", duration))
        return self._give(None)

    def wait_for(
        self,
        signal: str,
        *,
        type: Any = None,  # noqa: A002, ANN401 - as the contexts of workers call it
        timeout: Wait | None = None,
        name: str | None = None,
    ) -> Any:  # noqa: ANN401
        """The payload that the test gives for a signal."""
        del timeout
        known = clean_name("signal", signal)
        self._names.take_name(f"wait {known}", name)
        payload = self._take_signal(known)
        if payload is TimeoutError:
            raise SignalTimeout(known, TASK)
        return self._give(decode_signal(known, type, TASK, payload))

    def _take_signal(self, name: str) -> Any:  # noqa: ANN401 - JSON
        """The next payload of a signal."""
        given = self._signals.get(name)
        if name not in self._signals or given == []:
            known = ", ".join(map(repr, self._signals)) or "none"
            reason = f"the step waits for {name!r}, and the signals of the test are {known}"
            raise InvalidInput("signals", f"{reason}: StandaloneContext(signals={{{name!r}: …}})")
        return given.pop(0) if isinstance(given, list) else given

    def ask(self, question: object, *, name: str | None = None) -> Any:  # noqa: ANN401
        """The answer that the test gives to a question."""
        self._names.take_name("ask", name)
        self.asked.append(question)
        if not self._answers:
            reason = f"the step asks {question!r}, and the test gives no answer for that"
            raise InvalidInput("answers", f"{reason}: StandaloneContext(answers=[…])")
        return self._give(self._answers.pop(0))

    def map(self, function: Any, /, *iterables: Iterable[Any], name: str | None = None) -> Any:  # noqa: ANN401
        """Call a task function here, once for each item, and give the results."""
        callee = callee_of(function)
        calls = list(zip(*iterables, strict=False))
        requests = [callee.request(*each) for each in calls]
        if requests:
            self._names.take_name(f"map {requests[0].title}", name)
        results = [self._call(callee, request) for request in requests]
        if not self._is_asynchronous():
            return [callee.read_output(each) for each in results]

        async def gather() -> list[Any]:
            found = [await each if inspect.isawaitable(each) else each for each in results]
            return [callee.read_output(each) for each in found]

        return gather()

    def call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Call a task function here, and give its result."""
        callee = callee_of(function)
        request = callee.request(*args, **kwargs)
        self._names.take_call_name(request.title)
        result = self._call(callee, request)
        if not self._is_asynchronous():
            return callee.read_output(result)

        async def read() -> Any:  # noqa: ANN401 - what the function gives
            return callee.read_output(await result if inspect.isawaitable(result) else result)

        return read()

    def _call(self, callee: Any, request: NewTask) -> Any:  # noqa: ANN401 - a task function
        """What a child gives, in JSON form, or a coroutine of that."""
        signature = callee.signature
        given = request.payload or {}
        arguments = {name: signature.decode(name, value) for name, value in given.items()}
        if signature.context is not None:
            arguments[signature.context] = self
        result = signature.function(**arguments)
        if not inspect.isawaitable(result):
            return signature.encode("return", result)

        async def encode() -> Any:  # noqa: ANN401 - JSON
            return signature.encode("return", await result)

        return encode() if self._is_asynchronous() else asyncio.run(encode())

    def spawn(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Note a child in `spawned`, and give the id of a task that does not exist."""
        request: NewTask = callee_of(function).request(*args, **kwargs)
        self._names.take_spawn_name(request.title)
        self.spawned.append(request)
        return self._give(f"t_{len(self.spawned):020d}")

    def artifact(self, name: str, content: str | bytes | Path) -> Any:  # noqa: ANN401
        """Keep a file in `artifacts`, and in the `folder` of the test."""
        if self._folder is None:
            reason = f"the step keeps the file {name!r}: StandaloneContext(folder=tmp_path)"
            raise InvalidInput("folder", reason)
        if isinstance(content, Path):
            kept = content.read_bytes()
        else:
            kept = content.encode() if isinstance(content, str) else bytes(content)
        path = self._folder / name
        path.write_bytes(kept)
        self.artifacts[name] = kept
        return self._give(path)

    def lease(self, key: str, ttl: Wait) -> Any:  # noqa: ANN401
        """The lease of a name; None for a name that is in `taken_leases`."""
        parse_seconds("ttl", ttl)
        if key in self._taken:
            return self._give(None)
        fence = next(self._fences)
        made = NamedLease(
            key=key, owner=TASK, fence=fence, token=self.token, expires_at=to_datetime(0)
        )
        return self._give(made)

    def _is_asynchronous(self) -> bool:
        """Whether the step is a coroutine function: as told, else where a loop runs."""
        if self._asynchronous is not None:
            return self._asynchronous
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return False
        return True

    def _give(self, value: object) -> Any:  # noqa: ANN401 - what the step gets
        if not self._is_asynchronous():
            return value

        async def give() -> Any:  # noqa: ANN401 - what the step gets
            return value

        return give()
