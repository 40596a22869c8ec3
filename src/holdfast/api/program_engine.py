"""Program engine: how the functions of a program find its engine, and how its schedules get there.

While a test runner imports modules, no test has a store of its own yet. What these modules
schedule is therefore declared, and is written into each store that the program opens later.
Pytest loads this module in every project, so that it imports nothing of Holdfast by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.engine.engine import Engine
    from holdfast.engine.surroundings.schedules import PutSchedule
    from holdfast.model.schedule import NewSchedule, Schedule
    from holdfast.settings import Settings

_importing_tests = False
_with_schedules: WeakSet[ProgramEngine] = WeakSet()


class ProgramEngine:
    """The engine of one program, opened when it is first called, and its declared schedules."""

    def __init__(
        self, settings: Settings, open_engine: Callable[[], Engine], is_open: Callable[[], bool]
    ) -> None:
        self.url = settings.url
        self._settings = settings
        self._open_engine = open_engine
        self._is_open = is_open
        self._declared: dict[str, NewSchedule] = {}

    def __call__(self) -> Engine:
        return self._open_engine()

    def put_schedule(self, schedule: NewSchedule) -> Future[Schedule]:
        """Write a schedule, or declare it while a test runner imports the program."""
        if not _importing_tests:
            return self().schedules.put.submit(schedule)
        checked = _check_schedule(schedule, self._settings)
        self._declared[checked.name] = schedule
        _with_schedules.add(self)
        if self._is_open():
            return self().schedules.put.submit(schedule)
        declared: Future[Schedule] = Future()
        declared.set_result(_read_unwritten(checked))
        return declared

    def write_declared(self, engine: Engine) -> None:
        """Write the declared schedules into a store that was opened just now."""
        for schedule in self._declared.values():
            engine.schedules.put(schedule)


def open_scheduled_programs() -> None:
    """Open the stores of all programs with declared schedules, whose ticks count from now on."""
    for program in sorted(_with_schedules, key=lambda each: each.url):
        program()


@contextmanager
def importing_tests(importing: bool) -> Iterator[None]:  # noqa: FBT001 - there is nothing else
    """Say whether modules are imported for tests, or a test runs, within the block."""
    global _importing_tests  # noqa: PLW0603 - of the process, as imports are
    before, _importing_tests = _importing_tests, importing
    try:
        yield
    finally:
        _importing_tests = before


def _check_schedule(schedule: NewSchedule, settings: Settings) -> PutSchedule:
    from holdfast.clock import SystemClock  # noqa: PLC0415 - as the module says
    from holdfast.engine.surroundings.schedules import check_new_schedule  # noqa: PLC0415
    from holdfast.ids import Ids  # noqa: PLC0415
    from holdfast.randomness import SystemRandomness  # noqa: PLC0415

    clock = SystemClock()
    ids = Ids(clock, SystemRandomness())
    return check_new_schedule(schedule, ids, max_payload=settings.max_payload, now=clock.now)


def _read_unwritten(checked: PutSchedule) -> Schedule:
    """The schedule as a new store will have it."""
    from holdfast.clock import SystemClock  # noqa: PLC0415 - as the module says
    from holdfast.engine.read.schedule_records import read_schedule  # noqa: PLC0415

    row: dict[str, Any] = asdict(checked)
    now = SystemClock().now()
    return read_schedule(
        row | {"last_at": None, "last_error": None, "version": 1, "created_at": now}
    )
