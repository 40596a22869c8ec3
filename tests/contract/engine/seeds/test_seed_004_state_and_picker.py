"""One service for every transition of a task, and one picker: their state and picker tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.status import Status
from tests.contract.raw_store import dump
from tests.contract.task_states import FORK, Stage, bring, create, finish, start, take

Move = Callable[[Engine, Stage], TransitionResult]


def start_running(engine: Engine, stage: Stage) -> TransitionResult:
    if engine.work.claim_by_id(stage.task_id, "override"):
        return TransitionResult(ok=True, status="running")
    status = engine.tasks.get(stage.task_id).status.value
    return TransitionResult(ok=False, reason=Refusal.INVALID_TRANSITION, status=status)


MOVES: dict[str, Move] = {
    "enqueue": lambda engine, stage: engine.tasks.enqueue(stage.task_id),
    "start_running": start_running,
    "complete": lambda engine, stage: engine.work.complete(stage.task_id, stage.token, "result"),
    "fail": lambda engine, stage: engine.work.fail(
        stage.task_id, stage.token, "error", retryable=False
    ),
    "cancel": lambda engine, stage: engine.tasks.cancel(stage.task_id),
    "reset_to_idle": lambda engine, stage: engine.tasks.reset(stage.task_id),
    "requeue": lambda engine, stage: engine.tasks.retry(stage.task_id),
}
# The moves of a single task that are asked for by name; every other pair is refused.
ALLOWED = {
    "enqueue": {"idle": "queued"},
    "start_running": {"idle": "running", "queued": "running"},
    "complete": {"running": "done"},
    "fail": {"running": "failed"},
    "cancel": {"idle": "cancelled", "queued": "cancelled", "running": "cancelled"},
    "reset_to_idle": dict.fromkeys(("queued", "done", "failed", "cancelled"), "idle"),
    "requeue": {"failed": "queued", "cancelled": "queued"},
}
HAPPY = [(move, source) for move, sources in ALLOWED.items() for source in sources]
REJECTED = [
    (move, status.value) for move in MOVES for status in Status if status not in ALLOWED[move]
]


def titles(engine: Engine, count: int = 9) -> list[str]:
    return [each.task.title for each in engine.work.claim("queue", count=count)]


def hints(engine: Engine, happening: Callable[[], object]) -> int:
    """How often whoever waits for work was woken while something happened."""
    woken: list[None] = []
    leave = engine.on_hint(lambda: woken.append(None))
    happening()
    leave()
    return len(woken)


@pytest.mark.parametrize(("move", "source"), HAPPY)
def test_the_happy_path_of_every_transition(engine: Engine, move: str, source: str) -> None:
    stage = bring(engine, Status(source))
    version = engine.tasks.get(stage.task_id).version
    answer = MOVES[move](engine, stage)
    assert (answer.ok, answer.status) == (True, ALLOWED[move][source])
    task = engine.tasks.get(stage.task_id)
    assert (task.status.value, task.version) == (ALLOWED[move][source], version + 1)
    last = engine.tasks.events(stage.task_id)[-1]
    assert (last.source, last.target, last.version) == (source, task.status, task.version)


@pytest.mark.parametrize(("move", "source"), REJECTED)
def test_reject_for_every_other_transition_is_a_result_and_no_exception(
    engine: Engine, store_url: str, move: str, source: str
) -> None:
    stage = bring(engine, Status(source))
    store = dump(store_url)
    answer = MOVES[move](engine, stage)
    assert not answer.ok
    assert answer.reason is not None
    assert answer.status == source
    assert dump(store_url) == store


def test_two_parallel_start_running_exactly_one_wins(engines: tuple[Engine, Engine]) -> None:
    task_id = create(engines[0], enqueue=False)
    calls = [each.work.claim_by_id.submit(task_id, "override") for each in engines * 4]
    assert sum(len(call.result()) for call in calls) == 1
    assert engines[0].tasks.get(task_id).attempt == 1


def test_two_parallel_pickers_exactly_one_claims_a_row(engines: tuple[Engine, Engine]) -> None:
    task_id = create(engines[0])
    calls = [each.work.claim.submit("picker") for each in engines * 4]
    assert [each.task.id for call in calls for each in call.result()] == [task_id]


def test_any_transition_to_queued_wakes_the_queue_by_itself(engine: Engine) -> None:
    idle = create(engine, enqueue=False)
    assert hints(engine, lambda: create(engine)) == 1
    assert hints(engine, lambda: engine.tasks.enqueue(idle)) == 1
    failed = bring(engine, Status.FAILED)
    assert hints(engine, lambda: engine.tasks.retry(failed.task_id)) == 1
    assert hints(engine, lambda: engine.tasks.enqueue(idle)) == 0


def test_unblocking_changes_no_status_and_wakes_all_the_same(engine: Engine) -> None:
    run = start(engine, FORK)
    plan = run.take("plan")
    complete = engine.work.complete
    assert hints(engine, lambda: complete(plan.task.id, plan.token, "plan")) == 1
    assert run.states == {"plan": "done", "left": "ready", "right": "ready", "join": "blocked"}
    need = create(engine, agent="elsewhere")
    blocked = create(engine, needs=(need,))
    assert hints(engine, lambda: engine.tasks.unblock(blocked)) == 1


def test_the_picker_leaves_a_blocked_task(engine: Engine) -> None:
    need = create(engine, agent="elsewhere")
    create(engine, "blocked", needs=(need,))
    assert titles(engine) == []
    finish(engine, need)
    assert titles(engine) == ["blocked"]


def test_the_picker_leaves_a_task_of_a_missing_agent_or_tag(engine: Engine) -> None:
    create(engine, "planner's", agent="planner")
    create(engine, "tagged", tags=("gpu",))
    untagged = create(engine, "plain")
    assert titles(engine) == ["plain"]
    assert engine.tasks.get(untagged).agent == "default"


def test_the_picker_leaves_a_future_schedule(engine: Engine, clock: ManualClock) -> None:
    create(engine, "later", scheduled_for=clock.now() + MICROSECONDS)
    create(engine, "now", scheduled_for=clock.now())
    assert titles(engine) == ["now"]
    clock.advance(1)
    assert titles(engine) == ["later"]


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.QUEUED])
def test_the_picker_leaves_the_wrong_status(engine: Engine, status: Status) -> None:
    bring(engine, status)
    assert titles(engine) == []


def test_the_picker_orders_by_sort_order_then_created_at(
    engine: Engine, clock: ManualClock
) -> None:
    for title, position in (("c", 2), ("a", 1), ("d", 2), ("b", 1)):
        create(engine, title, position=position)
        clock.advance(1)
    assert [titles(engine, 1) for _ in range(4)] == [["a"], ["b"], ["c"], ["d"]]


def test_setup_chain_produces_the_queued_and_blocked_by_layout(engine: Engine) -> None:
    first = create(engine)
    second = create(engine, needs=(first,))
    third = create(engine, needs=(second,))
    chain = [engine.tasks.get(task_id) for task_id in (first, second, third)]
    assert [task.status for task in chain] == ["queued"] * 3
    assert [task.state for task in chain] == ["ready", "blocked", "blocked"]
    assert [engine.tasks.blocked_by(task.id) for task in chain] == [[], [first], [second]]


def test_a_finished_child_unblocks_the_next_child(engine: Engine) -> None:
    run = start(engine)
    run.finish("plan")
    assert run.states == {"plan": "done", "work": "ready", "review": "blocked"}
    run.finish("work", "review")
    assert run.status == "completed"


def test_child_failure_leaves_the_remaining_blocked_and_fails_the_parent(engine: Engine) -> None:
    run = start(engine)
    run.finish("plan")
    run.break_for_good("work")
    assert run.task("review").blocked
    assert engine.tasks.blocked_by(run.steps["review"]) == [run.steps["work"]]
    assert (run.status, run.statuses["review"]) == ("failed", "queued")


@pytest.mark.parametrize("status", [Status.IDLE, Status.FAILED, Status.DONE])
def test_deleting_a_predecessor_never_frees_the_child(
    engine: Engine, store_url: str, status: Status
) -> None:
    predecessor = bring(engine, status)
    create(engine, "child", needs=(predecessor.task_id,))
    store = dump(store_url)
    assert engine.tasks.delete(predecessor.task_id).reason is Refusal.NEEDED_BY_OTHERS
    assert dump(store_url) == store


def test_a_running_task_is_neither_deleted_edited_reset_nor_requeued(
    engine: Engine, store_url: str
) -> None:
    task_id = bring(engine, Status.RUNNING).task_id
    store = dump(store_url)
    tasks = engine.tasks
    for answer in (
        tasks.delete(task_id),
        tasks.edit(task_id, {"tags": ["agent"]}),
        tasks.reset(task_id),
        tasks.retry(task_id),
        tasks.block(task_id, [create(engine, enqueue=False)]),
    ):
        assert (answer.ok, answer.reason) == (False, Refusal.INVALID_TRANSITION)
    (kept,) = [row for row in dump(store_url)["holdfast_task"] if row["id"] == task_id]
    assert kept in store["holdfast_task"]


def test_recover_stale_running_takes_back_what_has_expired_and_nothing_else(
    engine: Engine, clock: ManualClock
) -> None:
    stale, live = create(engine), create(engine)
    take(engine, stale, lease=10)
    take(engine, live, lease=60)
    clock.advance(10)
    assert [answer.status for answer in engine.work.recover()] == ["queued"]
    assert engine.tasks.get(stale).state == "ready"
    assert engine.tasks.get(live).status == "running"


def test_block_on_and_unblock_change_what_the_picker_sees(engine: Engine) -> None:
    predecessor = create(engine, "predecessor", agent="elsewhere")
    task_id = create(engine)
    assert engine.tasks.block(task_id, [predecessor]).ok
    assert titles(engine) == []
    assert engine.tasks.unblock(task_id).ok
    assert titles(engine) == ["task"]


def test_run_now_goes_before_the_queue(engine: Engine) -> None:
    create(engine, "first", priority=9)
    urgent = create(engine, "urgent", enqueue=False)
    assert engine.tasks.run_now(urgent).ok
    assert titles(engine) == ["urgent", "first"]


def test_cancelled_is_not_failed(engine: Engine) -> None:
    for status in (Status.CANCELLED, Status.FAILED):
        task = engine.tasks.get(bring(engine, status).task_id)
        assert task.status is status
        assert task.failures == int(status is Status.FAILED)
