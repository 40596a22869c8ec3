"""Which task a worker gets: every clause, the order, and what run-now and a claim by id lift."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.moment import to_datetime
from holdfast.model.result import Refusal
from holdfast.model.task import NewTask
from tests.contract.task_states import CHAIN, create, finish, start, take


def titles(engine: Engine, count: int = 50, **request: Any) -> list[str]:
    return [each.task.title for each in engine.work.claim("worker", count=count, **request)]


def test_a_claim_gives_attempt_token_lease_and_what_the_task_needs(
    engine: Engine, clock: ManualClock
) -> None:
    run = start(engine, CHAIN, input={"repo": "here"})
    run.finish("plan")
    clock.advance(1)
    (assignment,) = engine.work.claim("ada", lease=12.5)
    assert (assignment.task.step, assignment.attempt) == ("work", 1)
    assert assignment.expires_at == to_datetime(clock.now() + 12_500_000)
    assert (assignment.workflow, assignment.workflow_version) == ("chain", CHAIN.version)
    assert assignment.input == {"repo": "here"}
    assert assignment.needs == {"plan": "plan output"}
    task = engine.tasks.get(assignment.task.id)
    assert task == assignment.task
    assert task.lease is not None
    assert task.lease.owner == "ada"
    assert task.started_at == to_datetime(clock.now())


def test_the_needs_of_a_lone_task_come_under_its_id(engine: Engine) -> None:
    need = create(engine)
    finish(engine, need, [1, 2])
    dependent = create(engine, needs=(need,))
    assignment = take(engine, dependent)
    assert assignment.needs == {need: [1, 2]}
    assert (assignment.workflow, assignment.input) == (None, None)


def test_order_is_run_now_then_priority_then_position_then_age(engine: Engine) -> None:
    create(engine, "e")
    create(engine, "f")
    create(engine, "d", position=-1)
    create(engine, "g", position=1)
    create(engine, "b", priority=1, position=5)
    create(engine, "h", priority=-1)
    create(engine, "c", priority=1, position=6)
    urgent = create(engine, "a", priority=-9, position=99)
    assert engine.tasks.run_now(urgent).ok
    assert titles(engine) == list("abcdefgh")


def test_tasks_are_claimed_one_by_one_in_that_order_too(engine: Engine) -> None:
    for priority in (1, 3, 2):
        create(engine, str(priority), priority=priority)
    assert [titles(engine, 1) for _ in range(4)] == [["3"], ["2"], ["1"], []]


def test_a_step_adds_its_priority_to_that_of_its_run(engine: Engine) -> None:
    create(engine, "lone", priority=5)
    start(engine, priority=6)
    assert [each.task.priority for each in engine.work.claim("worker", count=2)] == [6, 5]


def test_a_worker_gets_only_tasks_of_its_agents(engine: Engine) -> None:
    create(engine, "default")
    create(engine, "planner", agent="planner")
    assert titles(engine, agents=["developer"]) == []
    assert titles(engine, agents=["planner"]) == ["planner"]
    assert titles(engine) == ["default"]


def test_a_claim_for_several_agents_takes_the_first_of_them_all(engine: Engine) -> None:
    for priority, agent in enumerate("abcab"):
        create(engine, f"{priority}{agent}", agent=agent, priority=priority)
    create(engine, "other", agent="d", priority=99)
    assert titles(engine, 3, agents=["a", "b", "c"]) == ["4b", "3a", "2c"]
    assert titles(engine, 3, agents=["c", "b", "a"]) == ["1b", "0a"]


def test_a_worker_takes_tasks_whose_tags_are_all_among_its_own(engine: Engine) -> None:
    create(engine, "none")
    create(engine, "gpu", tags=("gpu",))
    create(engine, "both", tags=("gpu", "eu"))
    assert titles(engine) == ["none"]
    assert titles(engine, tags=["eu"]) == []
    assert titles(engine, tags=["gpu", "mac"]) == ["gpu"]
    assert titles(engine, tags=["mac", "eu", "gpu"]) == ["both"]


def test_a_claim_takes_the_first_of_all_tags_that_a_worker_has(engine: Engine) -> None:
    for tags, priority in (((), 1), (("gpu",), 3), (("linux",), 2), (("gpu", "linux"), 4)):
        create(engine, " ".join(tags) or "plain", tags=tags, priority=priority)
    claimed = engine.work.claim("worker", tags=["linux", "gpu"], count=3)
    assert [each.task.title for each in claimed] == ["gpu linux", "gpu", "linux"]
    assert [each.task.title for each in engine.work.claim("worker")] == ["plain"]


def test_a_claim_that_takes_bare_tasks_too_takes_the_first_tasks_of_all(engine: Engine) -> None:
    for number, step in enumerate([None, "pack", "pack", None, None, "pack"]):
        create(engine, f"{number}", step=step, priority=number // 3)
    assert titles(engine, count=4) == ["3", "4", "5", "0"]
    assert titles(engine) == ["1", "2"]


def test_a_task_to_run_now_is_seen_in_either_half_of_a_line(engine: Engine) -> None:
    bare, named = create(engine), create(engine, step="pack")
    assert engine.tasks.run_now(bare).ok
    assert engine.work.first_to_run_now(["default"]) == bare
    assert engine.work.first_to_run_now(["default"], bare=False) is None
    assert engine.tasks.run_now(named).ok
    assert engine.work.first_to_run_now(["default"], bare=False) == named


def test_a_claim_takes_bare_tasks_of_the_agents_alone_that_it_is_equipped_for(
    engine: Engine,
) -> None:
    for agent in ("dev", "critic"):
        create(engine, f"bare {agent}", agent=agent)
        create(engine, f"named {agent}", agent=agent, step="pack")
    claim: dict[str, Any] = {"agents": ["dev", "critic"], "bare": False, "equipped": ["dev"]}
    found = [each.task.title for each in engine.work.claim("worker", count=9, **claim)]
    assert found == ["bare dev", "named dev", "named critic"]
    first = engine.tasks.create(NewTask(title="first", agent="critic")).id
    assert engine.tasks.run_now(first).ok
    assert engine.work.first_to_run_now(**claim) is None
    assert engine.work.first_to_run_now(**claim | {"equipped": ["critic"]}) == first


def test_a_claim_for_every_agent_takes_the_first_tasks_of_all_below_their_limits(
    engine: Engine,
) -> None:
    for number, agent in enumerate(["a", "c", "b", "c", "a"]):
        create(engine, f"{number}", agent=agent, priority=number)
    assert titles(engine, agents=["*"], count=3) == ["4", "3", "2"]
    (last,) = engine.work.claim("worker", agents=["c"])
    assert engine.work.reach_limit(last.task_id, last.token, "1h").ok
    assert titles(engine, agents=["*"], count=9) == ["0"]
    named = create(engine, agent="d")
    (got,) = engine.work.claim_by_id(named, "worker", agents=["*"])
    assert got.task_id == named
    assert titles(engine, agents=["*"]) == []
    with pytest.raises(InvalidInput, match="stands alone"):
        engine.work.claim("worker", agents=["*", "a"])


def test_a_scheduled_task_waits_for_its_time(engine: Engine, clock: ManualClock) -> None:
    task_id = create(engine, scheduled_for=clock.now() + MICROSECONDS)
    assert engine.tasks.get(task_id).state == "scheduled"
    clock.advance(0.999_999)
    assert titles(engine) == []
    clock.advance(0.000_001)
    version = engine.tasks.get(task_id).version
    assert titles(engine) == ["task"]
    assert engine.tasks.get(task_id).version == version + 1


def test_an_idle_a_blocked_and_a_held_task_are_not_picked(engine: Engine) -> None:
    need = create(engine, agent="elsewhere")
    create(engine, "idle", enqueue=False)
    create(engine, "blocked", needs=(need,))
    held = create(engine, "held")
    assert engine.tasks.hold(held, "question").ok
    assert titles(engine) == []
    finish(engine, need)
    assert engine.tasks.unhold(held, "question").ok
    assert sorted(titles(engine)) == ["blocked", "held"]


@pytest.mark.parametrize(
    "reason", ["paused", "approval", "question", "budget", "limit", "slot", "failing", "version"]
)
def test_each_hold_stops_a_task_and_is_removed_alone(engine: Engine, reason: str) -> None:
    task_id = create(engine)
    other = "budget" if reason == "paused" else "paused"
    assert engine.tasks.hold(task_id, reason).ok
    assert engine.tasks.hold(task_id, other).ok
    assert engine.tasks.hold(task_id, reason).repeated
    assert engine.tasks.get(task_id).state == "held"
    assert set(engine.tasks.get(task_id).holds.names) == {reason, other}
    assert engine.tasks.unhold(task_id, other).ok
    assert engine.tasks.unhold(task_id, other).repeated
    assert titles(engine) == []
    assert engine.tasks.unhold(task_id, reason).ok
    assert titles(engine) == ["task"]


def test_a_limit_lifts_by_itself_at_its_time_and_costs_nothing(
    engine: Engine, clock: ManualClock
) -> None:
    task_id = create(engine)
    assert engine.tasks.hold(task_id, "limit", until=clock.now() + 60 * MICROSECONDS).ok
    clock.advance(59.9)
    engine.recovery.step()
    assert titles(engine) == []
    clock.advance(0.1)
    engine.recovery.step()
    assert titles(engine) == ["task"]
    assert [event.type for event in engine.tasks.events(task_id)] == [
        "task.created",
        "task.held",
        "task.unheld",
        "task.running",
    ]


def test_run_now_lifts_order_time_and_paused(engine: Engine, clock: ManualClock) -> None:
    create(engine, "first", priority=9)
    task_id = create(
        engine, "now", priority=-9, scheduled_for=clock.now() + MICROSECONDS, enqueue=False
    )
    assert engine.tasks.hold(task_id).ok
    assert engine.tasks.run_now(task_id).ok
    assert titles(engine) == ["now", "first"]


def test_run_now_lifts_paused_of_the_run_for_that_task_alone(engine: Engine) -> None:
    run = start(engine)
    assert engine.runs.pause(run.id).ok
    assert engine.tasks.run_now(run.steps["plan"]).ok
    assert engine.runs.hold(run.id, "budget").ok
    assert titles(engine) == []
    assert engine.runs.unhold(run.id, "budget").ok
    assert titles(engine) == ["plan"]
    assert engine.runs.get(run.id).holds.names == ("paused",)


@pytest.mark.parametrize("obstacle", ["need", "hold", "run hold", "agent", "tags"])
@pytest.mark.parametrize("by_id", [False, True])
def test_run_now_and_a_claim_by_id_lift_no_other_obstacle(
    engine: Engine, obstacle: str, *, by_id: bool
) -> None:
    run = start(engine)
    task_id = run.steps["plan"]
    match obstacle:
        case "need":
            task_id = run.steps["work"]
        case "hold":
            engine.tasks.hold(task_id, "approval")
        case "run hold":
            engine.runs.hold(run.id, "budget")
        case "agent":
            engine.tasks.edit(task_id, {"agent": "developer"})
        case "tags":
            engine.tasks.edit(task_id, {"tags": ["gpu"]})
    if by_id:
        assert engine.work.claim_by_id(task_id, "worker") == []
    else:
        assert engine.tasks.run_now(task_id).ok
        assert task_id not in [each.task.id for each in engine.work.claim("worker", count=9)]
    assert engine.tasks.get(task_id).attempt == 0


def test_a_claim_by_id_lifts_order_and_idle_but_neither_time_nor_paused(
    engine: Engine, clock: ManualClock
) -> None:
    create(engine, priority=9)
    idle = create(engine, enqueue=False, priority=-9)
    assert engine.work.claim_by_id(idle, "worker")[0].task.id == idle
    later = create(engine, scheduled_for=clock.now() + MICROSECONDS)
    assert engine.work.claim_by_id(later, "worker") == []
    paused = create(engine)
    assert engine.tasks.hold(paused).ok
    assert engine.work.claim_by_id(paused, "worker") == []
    clock.advance(1)
    assert engine.work.claim_by_id(later, "worker")[0].task.id == later


def test_an_idle_task_whose_time_has_come_can_be_claimed_by_id(
    engine: Engine, clock: ManualClock
) -> None:
    task_id = create(engine, enqueue=False, scheduled_for=clock.now() + MICROSECONDS)
    assert engine.work.claim_by_id(task_id, "worker") == []
    clock.advance(1)
    assert engine.work.claim_by_id(task_id, "worker")[0].task.id == task_id


def test_claims_give_no_more_tasks_than_asked_for_and_no_task_twice(engine: Engine) -> None:
    for _ in range(5):
        create(engine)
    first = engine.work.claim("one", count=3)
    second = engine.work.claim("two", count=3)
    ids = [each.task.id for each in first + second]
    assert (len(first), len(second), len(set(ids))) == (3, 2, 5)


def test_a_running_task_is_not_claimed_by_id_again(engine: Engine) -> None:
    task_id = create(engine)
    take(engine, task_id)
    assert engine.work.claim_by_id(task_id, "other") == []
    assert engine.tasks.run_now(task_id).reason is Refusal.INVALID_TRANSITION
