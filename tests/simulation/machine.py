"""The state machine: any order of anything, one at a time or several in one group."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from holdfast.model.attempts import read_attempts
from holdfast.model.status import Hold
from tests.simulation import new_work, people_asks, worker_asks
from tests.simulation.bench import Ask, Bench
from tests.simulation.kinds import KINDS, Kind, picks, seconds
from tests.simulation.plain import reports

ASKED_BY = (new_work, people_asks, worker_asks)


class Machine(RuleBasedStateMachine):
    """A subclass says which store; every kind of ask is a rule of its own."""

    @abstractmethod
    def new_bench(self) -> Bench: ...

    def __init__(self) -> None:
        super().__init__()
        self.bench = self.new_bench()

    @rule(chosen=st.lists(st.sampled_from(sorted(KINDS)), min_size=2, max_size=6), data=st.data())
    def together(self, chosen: list[str], data: st.DataObject) -> None:
        """Several operations in one group; a group holds at most one for each row."""
        asks: list[Ask] = []
        taken: set[str] = set()
        for name in chosen:
            if not KINDS[name].when(self.bench):
                continue
            arguments = data.draw(st.fixed_dictionaries(KINDS[name].arguments), label=name)
            ask = KINDS[name].asked_of(self.bench, arguments)
            if taken.isdisjoint(ask.keys):
                asks.append(ask)
                taken |= ask.keys
        self.bench.perform(asks)

    @rule(count=st.integers(1, 4), rounds=st.integers(1, 3))
    def work_off(self, count: int, rounds: int) -> None:
        """A worker that serves everybody takes what is first in line and gets it done."""
        for _ in range(rounds):
            before = len(self.bench.attempts)
            asked = {"name": "ann", "agents": ("default", "reviewer"), "tags": ("big", "gpu")}
            asked_more = {"lease": 10, "count": count}
            self.bench.perform([KINDS["claim"].asked_of(self.bench, asked | asked_more)])
            done = {"pick": 0, "live": True, "output": "same"}
            for _ in range(len(self.bench.attempts) - before):
                self.bench.perform([KINDS["complete"].asked_of(self.bench, done)])

    @rule(by=seconds)
    def time_passes(self, by: int) -> None:
        self.bench.clock.advance(by)

    @rule(pick=picks, live=st.booleans())
    def guard(self, pick: int, live: bool) -> None:  # noqa: FBT001 - drawn by name
        bench = self.bench
        bench.world.now = bench.clock.now()
        who = bench.attempt(pick, live=live)
        said = bench.engine.work.guard(who.task, who.token)
        shown = ("ok" if said.ok else str(said.reason), said.status)
        assert shown == reports.guard(bench.world, who.task, who.fence)

    @rule(pick=picks)
    def explain(self, pick: int) -> None:
        """`why` calls a task claimable exactly when the next claim would take it."""
        bench = self.bench
        bench.world.now = bench.clock.now()
        task = bench.world.tasks.get(bench.task(pick))
        if task is not None:
            ready = task.status == "queued" and bench.world.startable(task)
            assert bench.engine.why(task.id).claimable == ready

    def teardown(self) -> None:
        diagnosis = self.bench.engine.doctor()
        assert diagnosis.ok, str(diagnosis)
        self._check_attempts()
        self._check_recovered()

    def _check_attempts(self) -> None:
        for task in self.bench.world.tasks.values():
            kept = read_attempts(self.bench.engine.tasks.events(task.id))
            assert [each.number for each in kept] == list(range(1, task.attempt + 1))
            ended = {each.number: each.outcome for each in kept if each.outcome is not None}
            assert ended == {fence: outcome for fence, (outcome, _) in task.endings.items()}

    def _check_recovered(self) -> None:
        """When faults stop, one look at the clock leaves no lease expired and no place unused."""
        bench = self.bench
        bench.clock.advance(1_000)
        for name in ("recover", "sweep"):
            bench.perform([KINDS[name].asked_of(bench, {})])
        assert not reports.expired(bench.world)
        for run in bench.world.runs.values():
            if run.status == "running" and Hold.SLOT in run.holds:
                assert not bench.world.room(run.slot)


def _rule_of(name: str, kind: Kind) -> Callable[..., None]:
    def perform(self: Machine, **arguments: Any) -> None:
        self.bench.perform([kind.asked_of(self.bench, arguments)])

    perform.__name__ = perform.__qualname__ = name
    allowed = precondition(lambda self: bool(kind.when(self.bench)))
    # To the type checker a strategy might stand where `rule` takes a bundle.
    draws: Callable[..., Callable[[Callable[..., None]], Callable[..., None]]] = rule
    made: Callable[..., None] = allowed(draws(**kind.arguments)(perform))
    return made


# What moves work on stands twice, so that it is drawn more often.
OFTEN = ("create", "start", "claim", "complete", "fail", "steer")
for _name, _kind in KINDS.items():
    setattr(Machine, _name, _rule_of(_name, _kind))
    if _name in OFTEN:
        setattr(Machine, f"{_name}_again", _rule_of(f"{_name}_again", _kind))
