"""Schedules: keep them, steer them, look at them, and fire what is due."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from dataclasses import asdict, replace
from datetime import datetime
from itertools import islice

from holdfast.engine.desk import Desk
from holdfast.engine.edge import operation, reading
from holdfast.engine.listing import PAGE, Page, read_limit
from holdfast.engine.new_schedule import clean_schedule_name, new_schedule
from holdfast.engine.records import read_schedule
from holdfast.engine.schedule_operations import (
    Fired,
    PauseSchedule,
    RemoveSchedule,
    ResumeSchedule,
    Tick,
)
from holdfast.engine.unreadable import UNREADABLE, tell_problem
from holdfast.errors import NotFound, ShuttingDown, StoreGone, StoreUnreachable, UnknownOutcome
from holdfast.model.result import TransitionResult
from holdfast.model.schedule import (
    Missed,
    NewSchedule,
    Schedule,
    Turn,
    check_cron,
    first_after,
    take_turn,
    tell_local,
    ticks_after,
)
from holdfast.store.database import Row
from holdfast.store.group_commit.queue import GROUP_BYTES

DUE_AT_ONCE = 100

log = logging.getLogger("holdfast.schedules")


class Schedules:
    """Cron for tasks and runs: each tick is fired once, however many processes look."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @operation
    def put(self, schedule: NewSchedule) -> Future[Schedule]:
        """Keep a schedule; the same again changes nothing, another of the name replaces it."""
        limit = self._desk.settings.max_payload
        return self._desk.submit(
            new_schedule(schedule, self._desk.ids, max_payload=limit, now=self._desk.now)
        )

    @operation
    def pause(self, name: str) -> Future[TransitionResult]:
        """Fire no more ticks; those of the pause are not made up for."""
        return self._desk.submit(PauseSchedule(name=clean_schedule_name(name)))

    @operation
    def resume(self, name: str) -> Future[TransitionResult]:
        """Go on with the next tick from now."""
        return self._desk.submit(ResumeSchedule(name=clean_schedule_name(name)))

    @operation
    def remove(self, name: str) -> Future[TransitionResult]:
        """Forget a schedule; what it has started stays."""
        return self._desk.submit(RemoveSchedule(name=clean_schedule_name(name)))

    @reading
    def get(self, name: str) -> Schedule:
        """A schedule as it stands now."""
        known = clean_schedule_name(name)
        rows = self._desk.view(lambda tx: tx.read("schedule_by_name", name=known))
        if not rows:
            raise NotFound(known, "schedule")
        return read_schedule(rows[0])

    @reading
    def list(self, *, limit: int = PAGE, after: str | None = None) -> Page[Schedule]:
        """Schedules by name, at most 1,000; `after` the last name of a page comes the next."""
        count, start = read_limit(limit), "" if after is None else clean_schedule_name(after)
        rows = self._desk.view(lambda tx: tx.read("list_schedules", count=count, after=start))
        return [read_schedule(row) for row in rows]

    @reading
    def preview(self, cron: str, zone: str = "UTC", count: int = 5) -> Page[datetime]:
        """The next ticks of a cron expression from now, as times of its zone."""
        rule, place = check_cron(cron, zone)
        number, now = read_limit(count, "count"), self._desk.now()
        first_after(rule, place, now)
        ticks = islice(ticks_after(rule, place, now), number)
        return [tell_local(tick, place) for tick in ticks]

    def fire(self) -> None:
        """Fire every tick that is due; what cannot be started is told, and holds up no other."""
        rows = self._desk.view(lambda tx: tx.read("due_schedules", count=DUE_AT_ONCE))
        ticks = [_reckon(row) for row in rows]
        for tick, future in zip(ticks, self._desk.submit_many(ticks), strict=True):
            fired = self._settle(tick, future)
            if fired.problem is not None:
                log.warning("schedule %s: %s", tick.name, fired.problem)

    def _settle(self, tick: Tick, future: Future[Fired]) -> Fired:
        try:
            return future.result()
        except (ShuttingDown, StoreGone, StoreUnreachable, UnknownOutcome):
            raise
        except Exception as error:
            log.exception("schedule %s cannot start what it is for", tick.name)
            passed = replace(tick, ticks=(), problem=tell_problem(error))
            moved: Fired = self._desk.submit(passed).result()
            return moved


def _reckon(row: Row) -> Tick:
    """The ticks of a due schedule; one that cannot be read here is paused."""
    problem = None
    try:
        missed = Missed(row["missed"])
        turn = take_turn(row["cron"], row["zone"], missed, row["next_at"], row["now"])
    except UNREADABLE as error:
        turn, problem = Turn(ticks=(), next_at=None), tell_problem(error)
    if turn.next_at is None:
        problem = f"paused: {problem or 'no tick follows within 50 years'}"
    return Tick(
        name=row["name"],
        version=row["version"],
        problem=problem,
        input_size=row["size"],
        **asdict(_as_much_as_fits(turn, row["size"])),
    )


def _as_much_as_fits(turn: Turn, size: int) -> Turn:
    """Of many ticks that each start something large, the oldest; the others are due right after."""
    room = max(1, GROUP_BYTES // max(1, size))
    if len(turn.ticks) <= room:
        return turn
    return Turn(ticks=turn.ticks[:room], next_at=turn.ticks[room])
