"""The state machine: any order of anything, one at a time or several in one group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from holdfast.model.event import read_attempts
from holdfast.model.status import Hold
from tests.simulation import new_work_requests, user_requests, worker_requests
from tests.simulation.model_comparison import Ask, Bench
from tests.simulation.plain import reports
from tests.simulation.request_kinds import Kind, asked_by, picks, seconds


class Machine(RuleBasedStateMachine):
    """A subclass says what may be asked, and of which store; every kind of ask is a rule of it."""

    kinds: ClassVar[dict[str, Kind]]
    result: ClassVar[object]
    """What comes of work when nobody stands in its way."""

    new_bench: Callable[[], Bench]
    """Gives it an engine, with nothing in its store."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = self.new_bench()

    @rule(data=st.data())
    def together(self, data: st.DataObject) -> None:
        """Several operations in one group; a group holds at most one for each row."""
        asks: list[Ask] = []
        taken: set[str] = set()
        names = st.lists(st.sampled_from(sorted(self.kinds)), min_size=2, max_size=6)
        for name in data.draw(names, label="chosen"):
            kind = self.kinds[name]
            if not kind.when(self.bench):
                continue
            arguments = data.draw(st.fixed_dictionaries(kind.arguments), label=name)
            ask = kind.asked_of(self.bench, arguments)
            if taken.isdisjoint(ask.keys):
                asks.append(ask)
                taken |= ask.keys
        self.bench.perform(asks)

    @rule(count=st.integers(1, 4), rounds=st.integers(1, 3))
    def work_off(self, count: int, rounds: int) -> None:
        """A worker that serves everybody takes what is first in line and gets it done."""
        for _ in range(rounds):
            self.do(("default", "reviewer"), self.result, count)

    def do(self, agents: tuple[str, ...], output: object, count: int = 4) -> None:
        """Take what is first in line for some agents, and report one result of it all."""
        done = {"pick": 0, "live": True, "output": output}
        for _ in range(self.take(agents, count)):
            self.bench.perform([self.kinds["complete"].asked_of(self.bench, done)])

    def take(self, agents: tuple[str, ...], count: int = 4) -> int:
        """Claim what is first in line for some agents; how much that was."""
        before = len(self.bench.attempts)
        asked = {"name": "ann", "agents": agents, "tags": ("big", "gpu"), "lease": 10}
        self.bench.perform([self.kinds["claim"].asked_of(self.bench, asked | {"count": count})])
        return len(self.bench.attempts) - before

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
            bench.perform([self.kinds[name].asked_of(bench, {})])
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


def has_rules(**often: int) -> Callable[[type[Machine]], type[Machine]]:
    """Make a rule of each kind; what moves work on stands there `often`, and so is drawn."""

    def add(machine: type[Machine]) -> type[Machine]:
        for name, kind in machine.kinds.items():
            for copy in [name, *(f"{name}_{number}" for number in range(1, often.get(name, 1)))]:
                setattr(machine, copy, _rule_of(copy, kind))
        return machine

    return add


@has_rules(create=2, start=2, claim=2, complete=2, fail=2, steer=2)
class CoreMachine(Machine):
    """Lone tasks, chains and forks, keys, places and leases."""

    kinds: ClassVar[dict[str, Kind]] = asked_by(new_work_requests, user_requests, worker_requests)
    result: ClassVar[object] = "same"
