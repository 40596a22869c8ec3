"""Kills a process at every statement of a transaction, and looks at what is left."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.engine.core.operation import Operation
from holdfast.engine.engine import Engine
from holdfast.engine.explain.doctor import Diagnosis
from holdfast.randomness import SeededRandomness
from tests.chaos.process_jobs import Errand, recover, write
from tests.chaos.processes import Ended, send
from tests.chaos.statement_boundaries import COMMIT
from tests.chaos.stores import State, Store, differences, entered
from tests.race.worlds import World
from tests.stores import examined_alone

Plan = Callable[[World], Sequence[Operation]]

_LOCK = re.compile(r"FOR (?:NO KEY )?UPDATE")
_WRITE = re.compile(r"\b(?:INSERT|UPDATE|DELETE)\b")
# Beyond every lease of a world, so that recovery has something to take back.
LATER = 31 * MICROSECONDS


class HalfWritten(AssertionError):
    """What a killed process left is neither what was there before nor all that was asked."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A store as it was left, as one recovery made it, and what the doctor says of that."""

    left: State
    recovered: State
    diagnosis: Diagnosis


@dataclass(frozen=True, kw_only=True)
class Uncrashed:
    """The two that are right: nothing was ever asked, or all of it was written."""

    never: Pair
    written: Pair
    statements: tuple[str, ...]
    replies: tuple[object, ...]


@dataclass(frozen=True, kw_only=True)
class Explorer:
    """One world in a store of its own, and the group that will be asked in it."""

    errand: Errand
    operations: tuple[Operation, ...]
    store: Store

    def uncrashed(self) -> Uncrashed:
        self.store.restore()
        never = self._look()
        ended = self.write()
        written = self._look()
        for pair in (never, written):
            assert pair.diagnosis.ok, str(pair.diagnosis)
        return Uncrashed(
            never=never,
            written=written,
            statements=ended.statements,
            replies=ended.replies,
        )

    def kill_at_every_statement(self) -> Uncrashed:
        """Check that nothing is written before COMMIT and everything after it."""
        right = self.uncrashed()
        assert right.never.left != right.written.left, "the group changes nothing"
        assert right.never.recovered != right.written.recovered, "recovery does it all the same"
        last = len(right.statements)
        for place in _places(right.statements):
            expected = right.written if place == last else right.never
            self.die(place)
            # The same rows have been recovered before; only the ends and COMMIT are done in full.
            whole = place in {0, last - 1, last} or self.store.read() != expected.left
            found = self._look() if whole else expected
            if found != expected:
                raise HalfWritten(_explain(right.statements, place, found, expected))
        return right

    def write(self) -> Ended:
        """Write the group anew, undisturbed."""
        ended = self._start(None)
        assert ended.exit_code == 0, "the group was not written"
        assert ended.statements[-1] == COMMIT
        return ended

    def die(self, place: int) -> Ended:
        """Write the group anew and be killed at `place`; leaves the store as the dead left it."""
        ended = self._start(place)
        assert ended.killed, f"it ended with {ended.exit_code} and was never at statement {place}"
        assert len(ended.statements) == place
        assert ended.replies == ()
        return ended

    def _start(self, place: int | None) -> Ended:
        self.store.restore()
        ended = send(write, self.errand, self.operations, place)
        self.store.settle()
        return ended

    def _look(self) -> Pair:
        left = self.store.read()
        later = Errand(url=self.errand.url, now=self.errand.now + LATER)
        runs = sorted(row["id"] for row in left["holdfast_run"])
        ended = send(recover, later, runs)
        assert ended.exit_code == 0, "it could not be recovered"
        diagnosis = examined_alone(self.errand.url)
        return Pair(left=left, recovered=self.store.read(), diagnosis=diagnosis)


@contextmanager
def prepared(url: str, plan: Plan, *, leaks: bool = False) -> Iterator[Explorer]:
    """Bring a new store to where the plan begins, leave it, and keep a copy."""
    day = ManualClock()
    with closing(Engine(url, clock=day, randomness=SeededRandomness(7))) as engine:
        engine.commits.start()
        operations = tuple(plan(World(engine=engine, day=day, number=1)))
    errand = Errand(url=url, now=day.now(), leaks=leaks)
    with entered(url) as store:
        yield Explorer(errand=errand, operations=operations, store=store)


def _places(statements: Sequence[str]) -> list[int]:
    """Where it matters: behind one that only reads, the store is as it was one place before."""
    last = len(statements)
    ends = {0, last - 1, last}
    return [place for place in range(last + 1) if place in ends or _writes(statements[place - 1])]


def _writes(statement: str) -> bool:
    return _WRITE.search(_LOCK.sub("", statement)) is not None


def _explain(statements: Sequence[str], place: int, found: Pair, expected: Pair) -> str:
    where = f"before {statements[place]}" if place < len(statements) else "after COMMIT"
    lines = [f"killed {where} (statement {place} of {len(statements)})"]
    for when in ("left", "recovered"):
        lines += [f"{when}:", *differences(getattr(found, when), getattr(expected, when))]
    lines.append(f"the doctor says: {found.diagnosis}")
    return "\n".join(lines)
