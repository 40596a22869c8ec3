"""Ready work is handed to the workers of a process in the commit that makes it ready."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from holdfast import StoreError
from holdfast.engine.claims.standing_claims import StandingClaim
from holdfast.engine.core.operation import CreateTasks
from holdfast.engine.engine import Engine
from holdfast.engine.input import validation
from holdfast.ids import Ids
from holdfast.model.budget import Budget
from holdfast.model.run import NewRun
from holdfast.model.task import Assignment, NewTask
from holdfast.model.workflow.declarations import WorkflowDeclarations
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from holdfast.store.database import Transaction
from holdfast.worker.attempt.execution import ReportAnswer, ReportEntry
from tests.contract import task_states
from tests.contract.engine.state.plans.test_plans import plan
from tests.contract.raw_store import raw
from tests.engines import healthy

CHAIN = Workflow.define("chain", (Step(id="plan"), Step(id="build", needs=("plan",))))


class Hand:
    """Takes up to `room` tasks, and keeps them."""

    def __init__(self, engine: Engine, room: int, *, bare: bool = True) -> None:
        self.engine = engine
        self.room = room
        self.trouble: Exception | None = None
        self.held: list[Assignment] = []
        self.standing_claim: StandingClaim = engine.work.standing_claim(
            "anna",
            agents=["default"],
            tags=[],
            room=self.left,
            passing=self._passing,
            deliver=lambda claimed: self.held.extend(claimed.read()),
        )
        self.standing_claim.bare = bare
        self.let_go = engine.work.add_standing_claim(self.standing_claim)

    def left(self) -> int:
        return self.room - len(self.held)

    def _passing(self) -> tuple[str, ...]:
        if self.trouble is not None:
            raise self.trouble
        return ()

    def complete(self) -> None:
        each = self.held.pop(0)
        self.engine.work.complete.submit(each.task.id, each.token)

    @property
    def titles(self) -> list[str]:
        return [each.task.title for each in self.held]


@pytest.fixture
def quiet(store_url: str) -> Iterator[Engine]:
    """An engine that writes a group only when it is told to."""
    engine = Engine(store_url)
    with healthy(engine):
        yield engine


def create(engine: Engine, *titles: str) -> None:
    for title in titles:
        engine.tasks.create.submit(NewTask(title=title))


def test_a_new_task_is_created_and_claimed_by_one_commit(quiet: Engine) -> None:
    hand = Hand(quiet, room=2)
    create(quiet, "one")
    assert quiet.commits.step() == 1
    assert hand.titles == ["one"]
    (held,) = hand.held
    assert quiet.tasks.get(held.task.id).status == "running"
    hand.complete()
    quiet.commits.step()


def test_a_bare_task_passes_a_worker_that_takes_none_and_goes_to_one_that_does(
    quiet: Engine,
) -> None:
    program, anyone = Hand(quiet, room=2, bare=False), Hand(quiet, room=2)
    create(quiet, "bare")
    quiet.tasks.create.submit(NewTask(title="named", step="pack"))
    quiet.commits.step()
    assert (program.titles, anyone.titles) == (["named"], ["bare"])
    program.complete()
    anyone.complete()
    quiet.commits.step()


def test_the_end_of_a_step_starts_the_next_step_in_the_same_commit(quiet: Engine) -> None:
    hand = Hand(quiet, room=1)
    started = quiet.runs.start.submit(NewRun(workflow=CHAIN))
    commits: list[str | None] = []
    while quiet.commits.step():
        commits += [each.task.step for each in hand.held] or [None]
        if hand.held:
            hand.complete()
    assert commits == ["plan", "build", None]
    assert quiet.runs.get(started.result().id).status == "completed"


def test_a_new_child_of_a_plan_gets_what_the_plan_needed_with_the_commit_that_makes_it(
    engine: Engine,
) -> None:
    top, (first, inner) = plan(engine, "first", "inner")
    assert engine.tasks.start_planning(inner).ok
    one = task_states.create(engine, "one", parent=inner, enqueue=False)
    for each in (inner, top):
        assert engine.tasks.finalize_plan(each).ok
    task_states.finish(engine, first, output="found")
    task_states.take(engine, one)
    hand = Hand(engine, room=1)
    task_states.create(engine, "late", parent=inner)
    assert hand.titles == ["late"]
    assert hand.held[0].needs == {first: "found"}
    hand.let_go()


def test_a_queued_task_comes_with_the_report_that_makes_room_for_it(quiet: Engine) -> None:
    hand = Hand(quiet, room=1)
    create(quiet, "one", "two", "three")
    quiet.commits.step()
    for title in ("one", "two", "three"):
        assert hand.titles == [title]
        hand.complete()
        quiet.commits.step()
    assert hand.titles == []


def test_a_worker_that_has_no_room_or_has_gone_is_given_no_work(quiet: Engine) -> None:
    full, gone = Hand(quiet, room=0), Hand(quiet, room=1)
    gone.let_go()
    create(quiet, "one")
    quiet.commits.step()
    assert full.held == gone.held == []


def test_a_worker_that_found_nothing_is_asked_again_only_when_something_may_be_ready(
    quiet: Engine,
) -> None:
    hand = Hand(quiet, room=1)
    create(quiet, "one")
    quiet.commits.step()
    hand.complete()
    quiet.commits.step()
    assert not hand.standing_claim.may_have_more
    hand.trouble = RuntimeError("asked in vain")
    quiet.runs.advance.submit("r_01jxt21q003hd76a96tg")
    quiet.commits.step()
    pulled = quiet.work.pull.submit(hand.standing_claim)
    quiet.commits.step()
    assert pulled.exception() is hand.trouble


def test_a_claim_that_fails_costs_nobody_else_anything(quiet: Engine) -> None:
    hand = Hand(quiet, room=2)
    hand.trouble = RuntimeError("nobody can tell what to pass by")
    created = [quiet.tasks.create.submit(NewTask(title=title)) for title in ("one", "two")]
    pulled = quiet.work.pull.submit(hand.standing_claim)
    quiet.commits.step()
    assert all(each.result().created for each in created)
    assert pulled.exception() is hand.trouble
    hand.trouble = None
    quiet.work.pull.submit(hand.standing_claim)
    quiet.commits.step()
    assert hand.titles == ["one", "two"]
    create(quiet, "three")
    hand.room = 3
    quiet.commits.step()
    assert hand.titles == ["one", "two", "three"]
    while hand.held:
        hand.complete()
    quiet.commits.step()


def test_a_single_operation_is_written_though_the_claim_beside_it_fails(quiet: Engine) -> None:
    hand = Hand(quiet, room=1)
    hand.trouble = RuntimeError("nobody can tell what to pass by")
    created = quiet.tasks.create.submit(NewTask(title="one"))
    quiet.commits.step()
    assert created.result().created


def test_a_completion_is_written_though_the_claim_that_would_be_sent_ahead_fails(
    quiet: Engine,
) -> None:
    hand = Hand(quiet, room=1)
    create(quiet, "one")
    quiet.commits.step()
    assert hand.standing_claim.may_have_more
    hand.trouble = RuntimeError("nobody can tell what to pass by")
    held = hand.held.pop()
    completed = quiet.work.complete.submit(held.task.id, held.token)
    quiet.commits.step()
    assert completed.result().ok


def test_a_worker_that_cannot_tell_its_room_is_given_nothing_and_stops_nobody(
    quiet: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    hand = Hand(quiet, room=1)
    hand.standing_claim.room = lambda: int("many")
    created = quiet.tasks.create.submit(NewTask(title="one"))
    quiet.commits.step()
    assert created.result().created
    assert hand.held == []
    assert "anna cannot tell how many tasks it takes" in caplog.text


class Listener:
    """Hears what is said to a report, and never sends it again."""

    def __init__(self, answers: list[object]) -> None:
        self._answers = answers

    def send(self, entry: ReportEntry) -> None:
        raise AssertionError(entry)

    def in_time(self) -> bool:
        return False

    def on_answer(self, answer: ReportAnswer, *, last: bool) -> None:
        assert last
        self._answers.append(answer)


def test_a_place_is_free_only_in_the_group_of_the_report_that_gives_it_up(quiet: Engine) -> None:
    hand = Hand(quiet, room=1)
    create(quiet, "one", "two")
    quiet.commits.step()
    (held,) = hand.held
    report = quiet.work.reports.complete(quiet.work.reports.read_token(held.task.id, held.token))
    answers: list[object] = []

    def returns_just_now() -> int:
        hand.standing_claim.room = hand.left
        quiet.work.tell(ReportEntry(report, Listener(answers), last=True), hand.held.clear)
        return 0

    hand.standing_claim.room = returns_just_now
    quiet.work.pull.submit(hand.standing_claim)
    quiet.commits.step()
    assert (hand.held, answers) == ([], [])
    quiet.commits.step()
    assert (hand.titles, len(answers)) == (["two"], 1)
    hand.complete()
    quiet.commits.step()


def test_a_group_that_is_written_one_by_one_gives_nobody_more_than_there_is_room(
    quiet: Engine,
) -> None:
    hand = Hand(quiet, room=1)
    create(quiet, "one", "two", "three")
    row = validation.new_task(
        NewTask(title="odd"), Ids(quiet.clock, quiet.randomness), max_payload=100, now=lambda: 0
    )
    culprit = quiet.commits.submit(
        CreateTasks(tasks=(replace(row, status="unheard of"),), actor="user")
    )
    quiet.commits.step()
    assert isinstance(culprit.exception(), StoreError)
    assert hand.titles == ["one"]


@pytest.mark.parametrize("budget", [None, Budget(attempts=9)], ids=["key", "budget"])
def test_each_step_of_a_run_with_a_key_or_a_budget_is_written_by_one_transaction(
    quiet: Engine, monkeypatch: pytest.MonkeyPatch, budget: Budget | None
) -> None:
    def define(name: str) -> Workflow:
        key = Concurrency(key=name) if budget is None else None
        declared = WorkflowDeclarations(budget=budget)
        steps = (Step(id="work"), Step(id="beside"))
        return Workflow.define(name, steps, concurrency=key, declared=declared)

    hand = Hand(quiet, room=1, bare=False)
    runs = [quiet.runs.start.submit(NewRun(workflow=define(name))) for name in ("a", "b", "c", "d")]
    quiet.commits.step()
    tries = count_tries(quiet, monkeypatch)
    for _ in range(2 * len(runs)):
        hand.complete()
        quiet.commits.step()
    assert len(tries) == 2 * len(runs)
    assert {quiet.runs.get(each.result().id).status for each in runs} == {"completed"}


def count_tries(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[Transaction]:
    """The tries of the transactions that the engine's writer writes from now on."""
    tries: list[Transaction] = []
    transact = engine.database.transact

    def counted(work: Callable[[Transaction], object], *, patience: float | None = None) -> object:
        def attempt(tx: Transaction) -> object:
            tries.append(tx)
            return work(tx)

        return transact(attempt, patience=patience)

    monkeypatch.setattr(engine.database, "transact", counted)
    return tries


@pytest.mark.parametrize("first", ["x", "y"])
def test_a_task_locked_by_another_process_hides_no_task_of_another_agent(
    postgres_store_url: str, first: str
) -> None:
    engine = Engine(postgres_store_url)
    with healthy(engine), raw(postgres_store_url) as rival:
        engine.commits.start()
        tasks = {agent: engine.tasks.create(NewTask(title="job", agent=agent)) for agent in "xy"}
        rival("BEGIN")
        rival("SELECT 1 FROM holdfast_task WHERE agent = ? FOR UPDATE", first)
        (held,) = engine.work.claim("anna", agents=["x", "y"])
        assert held.task.agent != first
        rival("ROLLBACK")
        assert engine.work.complete(held.task.id, held.token).ok
        assert engine.tasks.get(tasks[first].id).state == "ready"
