"""Harness: the store of a test, the work done on it, its time, its faults and its stubs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self, TypeVar, Unpack

from holdfast.api.handle import Handle, is_run_id
from holdfast.api.holdfast import Holdfast
from holdfast.api.open_stores import replace_stores
from holdfast.api.program_engine import open_scheduled_programs
from holdfast.api.workflow import WorkflowFile
from holdfast.clock import MICROSECONDS, SystemClock
from holdfast.engine.core.sync_async import reading
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.run import Run
from holdfast.model.text import clean_name
from holdfast.model.units import Moment, describe_duration, parse_duration, parse_moment
from holdfast.testing.attempt_driver import AttemptDriver, NotEnded, RanAttempt, StoredTask
from holdfast.testing.attempt_faults import Fault, FaultPlace, read_place
from holdfast.testing.harness_stores import HarnessClock, HarnessStores, choose_folder
from holdfast.testing.store_checks import StoreChecks
from holdfast.testing.stubs import Stub
from holdfast.testing.targets import Named, read_target

T = TypeVar("T")
MOST_ATTEMPTS = 10_000
# A test waits no longer than that for what the time brings.
LONGEST = timedelta(days=3_650)


class Harness(StoreChecks):
    """A store for one test: within the block, every `Holdfast` of the process uses it.

    No worker runs: `run_until_idle` does in the test's own thread what workers would do, and so
    does a wait for a result. Time stands still until the test moves it. The time of the test
    begins `now`, at the real time unless given. Commands and HTTP calls of workflow files need a
    stub, unless `commands` lets them be done. With a `url` the store is there, and must be empty.

    The `timeout` of a function comes only where the step itself lets time pass, by `advance`; what
    it really takes is not limited, and a warning tells of it. A function with
    `isolation="process"` runs in the test's own thread like all others.
    """

    def __init__(
        self,
        *,
        now: datetime | str | None = None,
        commands: bool = False,
        url: str | None = None,
    ) -> None:
        begins = SystemClock().now
        self._clock = HarnessClock(begins() if now is None else parse_moment("now", now, begins))
        self._commands = commands
        self._url = url
        self._cleanup = ExitStack()
        self._opened: AttemptDriver | None = None
        self._hf: Holdfast | None = None

    def __enter__(self) -> Self:
        folder = self._cleanup.enter_context(
            tempfile.TemporaryDirectory(prefix="holdfast-test-", dir=choose_folder())
        )
        stores = HarnessStores(Path(folder), self._clock, self._url, self._wait_for_end)
        self._cleanup.callback(stores.close)
        self._opened = AttemptDriver(stores, self._clock, commands=self._commands)
        self._cleanup.callback(self._opened.close)
        self._cleanup.enter_context(replace_stores(stores.find))
        try:
            open_scheduled_programs()
        except BaseException:
            self._cleanup.close()
            raise
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        self.close(check=error_type is None)

    def close(self, *, check: bool = True) -> None:
        """Let every `Holdfast` have its own store again; `check` refuses faults that never came."""
        missed, self._driver.missed_faults = self._driver.missed_faults, []
        unmet, self._driver.faults = self._driver.faults, []
        self._cleanup.close()
        if check and (missed or unmet):
            never = "; ".join(f"{each}: this never happened" for each in (*missed, *unmet))
            raise AssertionError(f"the test wants what did not come: {never}")

    @property
    def _driver(self) -> AttemptDriver:
        if self._opened is None:
            raise InvalidInput("harness", "is not open; write `with Harness() as harness:`")
        return self._opened

    @property
    def hf(self) -> Holdfast:
        """A `Holdfast` of the test's own, for workflows and tasks that the test defines itself."""
        if self._hf is None:
            self._hf = Holdfast(self._url or "sqlite:///test.db")
        return self._hf

    def workflow_file(self, path: str | Path) -> WorkflowFile:
        """A workflow file, to be started by `workflow_file(path).start(…)`."""
        return self.hf.workflow_file(path)

    @reading
    def run_until_idle(self, *, limit: int = MOST_ATTEMPTS) -> list[RanAttempt]:
        """Run what is ready, and what becomes ready by that, until nothing is; time stands still.

        The errors of steps are in what it returns, the attempts in their order. It raises
        `TooManyAttempts` only where the work does not come to rest. In a coroutine
        `await harness.run_until_idle.aio()`.
        """
        return self._driver.run_until_idle(limit)

    @reading
    def run_to_end(self, handle: Handle[T], *, within: float | str | timedelta = LONGEST) -> T:
        """Run a task or run to its end and give its result; waits for a time are cut short.

        The time moves to whatever is due next. `NotEnded` says for what else it waits: a signal,
        an approval, an answer. `TooManyAttempts` ends what goes on and on, as in `advance`.
        """
        engine = self._driver.find_engine(handle)
        last = self._clock.now() + _parse_microseconds("within", within)
        left = MOST_ATTEMPTS
        while True:
            left -= len(self._driver.run_until_idle(left))
            due = self._find_later_due()
            if _is_ended(engine, handle.id) or due is None or due > last:
                return handle.result()
            self._driver.move_clock(due)

    @property
    def now(self) -> datetime:
        """The time of the test."""
        return _to_datetime(self._clock.now())

    @reading
    def advance(self, duration: float | str | timedelta) -> None:
        """Let time pass, "7d" or seconds, and do in its turn what becomes due on the way.

        Within a step it is the step that takes so long: its lease is renewed, and its timeout
        may come.
        """
        self._pass_until(self._clock.now() + _parse_microseconds("duration", duration))

    @reading
    def advance_to(self, moment: Moment) -> None:
        """Let time pass until a moment: a datetime with a time zone, or its text."""
        until = parse_moment("moment", moment, self._clock.now)
        if until < self._clock.now():
            raise InvalidInput("moment", f"{moment} has passed; it is {self.now.isoformat()}")
        self._pass_until(until)

    def stub(self, step: Named, *answers: Any) -> None:
        """Answer in place of a step or task: with one answer for each call, the last for the rest.

        An answer is an output, an error to raise, a `Verdict`, a `Question`, or a function, which
        is called with those of the step's arguments that it takes by name. For a step of a
        workflow file these are prompt, command, http, input, item, feedback, steps, attempt and
        ctx; a text is read as what an agent writes. The later of two stubs counts.
        """
        self._add_stub(Stub(target=read_target("step", step), agent=None, answers=answers))

    def stub_agent(self, agent: str, *answers: Any) -> None:
        """Answer in place of an agent, whatever step it is asked for; the answers are as of `stub`.

        A stub for the step itself, if it was given later, goes before.
        """
        self._add_stub(Stub(target=None, agent=clean_name("agent", agent), answers=answers))

    def crash(self, step: Named, *, attempt: int = 1, **place: Unpack[FaultPlace]) -> None:
        """Have the worker die in an attempt of a step: before its report is written, unless said.

        The place may be `before_effect`, `before_remembering` (it is done, and nobody knows),
        `after_effect`, each with the effect's name or its number in the attempt, or `at_beginning`.
        Right after that the time moves on to the end of the lease, so that another attempt begins.
        """
        self._add_fault(step, attempt, place, dies=True)

    def lose_lease(self, step: Named, *, attempt: int = 1, **place: Unpack[FaultPlace]) -> None:
        """Have the worker stand still in an attempt until another attempt has done the step.

        Then it goes on, too late: what it wants to remember, and its report, are refused. The
        places are those of `crash`.
        """
        self._add_fault(step, attempt, place, dies=False)

    @property
    def attempts(self) -> Sequence[RanAttempt]:
        """The attempts that were run so far, in the order in which they ended."""
        return tuple(self._driver.history)

    def effects_of(self, step: Named) -> dict[str, Any]:
        """What the newest task of a step remembers: its effects by name, each with its result."""
        tasks = self.tasks_of(step)
        if not tasks:
            raise InvalidInput("step", f"no task of {read_target('step', step)} is in the store")
        return self._driver.find_engine(tasks[-1].id).work.effects(tasks[-1].id)

    def _list_tasks(self) -> Iterator[StoredTask]:
        return self._driver.list_tasks()

    def _list_runs(self) -> Iterator[Run]:
        return self._driver.list_runs()

    def _add_stub(self, stub: Stub) -> None:
        self._driver.stubs.append(stub)
        # Tasks that nothing could carry out may have an answer now.
        self._driver.left.clear()

    def _add_fault(self, step: Named, attempt: int, place: FaultPlace, *, dies: bool) -> None:
        point, effect = read_place(place)
        target = read_target("step", step)
        self._driver.faults.append(
            Fault(target=target, attempt=attempt, point=point, effect=effect, dies=dies)
        )

    def _find_later_due(self) -> int | None:
        due = self._driver.find_next_due()
        return due if due is not None and due > self._clock.now() else None

    def _pass_until(self, until: int) -> None:
        if self._driver.is_inside_step:
            self._driver.pass_time(until)
            return
        left = MOST_ATTEMPTS
        while True:
            left -= len(self._driver.run_until_idle(left))
            now = self._clock.now()
            if now >= until:
                return
            self._driver.move_clock(min(until, self._find_later_due() or until))

    def _wait_for_end(self, engine: Engine, identifier: str) -> NotEnded | None:
        """Do the work that somebody waits for; the error where that is not its end."""
        self._driver.run_until_idle(MOST_ATTEMPTS)
        if _is_ended(engine, identifier):
            return None
        return NotEnded(self._describe_wait(engine, identifier))

    def _describe_wait(self, engine: Engine, identifier: str) -> str:
        lines = [f"{identifier} has not ended, and nothing is left to do for it at {self.now}"]
        ask = engine.why_run if is_run_id(identifier) else engine.why
        lines.append(str(ask(identifier)))
        lines += [f"{task}: {why}" for task, why in self._driver.left.items()]
        if (due := self._find_later_due()) is not None:
            left = describe_duration(due - self._clock.now())
            lines.append(f"Something is due in {left}: advance the time, or call run_to_end")
        return "\n".join(lines)


def _is_ended(engine: Engine, identifier: str) -> bool:
    if is_run_id(identifier):
        return engine.runs.get(identifier).terminal
    return engine.tasks.get(identifier).terminal


def _parse_microseconds(field: str, duration: float | str | timedelta) -> int:
    seconds = parse_duration(field, duration)
    if seconds < 0:
        raise InvalidInput(field, f"{duration!r} is in the past, and time goes forward alone")
    return round(seconds * MICROSECONDS)


def _to_datetime(moment: int) -> datetime:
    epoch = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    return epoch + timedelta(microseconds=moment)
