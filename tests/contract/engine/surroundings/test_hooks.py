"""What follows an end: each hook that is for it, once, from the event that recorded it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.hook import RUN_ENDS, TASK_ENDS, NewHook
from holdfast.model.moment import count_microseconds
from holdfast.model.result import Refusal
from holdfast.model.retry import RetryPolicy
from holdfast.model.status import Status
from holdfast.model.task import NewTask
from holdfast.model.workflow.declarations import WorkflowDeclarations
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from tests.contract.called_workflows import call as called
from tests.contract.engine.input.bad_values import Refuse
from tests.contract.hook_tasks import AGENT, ends, fired, hook
from tests.contract.raw_store import raw
from tests.contract.single_statements import complete
from tests.contract.task_states import (
    CHAIN,
    FORK,
    StartedRun,
    break_for_good,
    bring,
    create,
    finish,
    start,
    take,
)

STEPS = ("plan", "work", "review")


def end_run(run: StartedRun, how: str) -> None:
    match how:
        case "run.completed":
            run.finish(*STEPS)
        case "run.failed":
            run.break_for_good("plan")
        case _:
            assert run.engine.runs.cancel(run.id).ok


@pytest.mark.parametrize("how", RUN_ENDS)
def test_the_end_of_a_run_fires_each_hook_that_is_for_it_once(engine: Engine, how: str) -> None:
    others = tuple(end for end in RUN_ENDS if end != how)
    engine.hooks.register([hook("first", how), hook("second"), hook("other", *others, *TASK_ENDS)])
    run = start(engine)
    end_run(run, how)
    for name in ("first", "second"):
        assert ends(engine, name) == [(how, run.id, 1)]
    assert ends(engine, "other") == []
    (task,) = fired(engine, "first")
    recorded = engine.runs.events(run.id)
    (event,) = [each for each in recorded if each.type == how]
    moment = count_microseconds(event.at)
    told = {**asdict(event), "at": moment, "workflow": "chain", "step": None}
    del told["seq"]
    assert task.payload == {"event": told}
    assert (task.status, task.run_id, task.parent_id) == (Status.QUEUED, None, None)
    assert [(each.type, each.actor) for each in engine.tasks.events(task.id)] == [
        ("task.created", "hook")
    ]


@pytest.mark.parametrize("how", TASK_ENDS)
def test_the_end_of_a_lone_task_fires_each_hook_that_is_for_it_once(
    engine: Engine, how: str
) -> None:
    engine.hooks.register([hook("first", how), hook("second"), hook("other", *RUN_ENDS)])
    task_id = bring(engine, Status(how.removeprefix("task.")), step="send").task_id
    for name in ("first", "second"):
        assert ends(engine, name) == [(how, task_id, 1)]
    assert ends(engine, "other") == []
    (task,) = fired(engine, "first")
    event = task.payload["event"]
    assert (event["workflow"], event["step"], event["run_id"]) == (None, "send", None)


def test_a_task_lost_for_good_has_failed_and_a_retry_of_an_attempt_is_no_end(
    engine: Engine, clock: ManualClock
) -> None:
    engine.hooks.register([hook("after", "task.failed")])
    task_id = create(engine, retry=RetryPolicy(max_attempts=2, max_lost=1, backoff=0))
    token = take(engine, task_id).token
    assert engine.work.fail(task_id, token, "broken").status == "queued"
    assert ends(engine) == []
    take(engine, task_id)
    clock.advance(31)
    engine.work.recover()
    assert engine.tasks.get(task_id).status is Status.FAILED
    assert ends(engine) == [("task.failed", task_id, 1)]


def test_many_ends_in_one_commit_fire_every_hook_for_each(engine: Engine) -> None:
    engine.hooks.register([hook("first"), hook("second")])
    tasks = [create(engine) for _ in range(20)]
    tokens = [take(engine, task_id).token for task_id in tasks]
    futures = [
        engine.work.complete.submit(task_id, token, "made")
        for task_id, token in zip(tasks, tokens, strict=True)
    ]
    assert all(future.result().ok for future in futures)
    for name in ("first", "second"):
        assert ends(engine, name) == sorted(("task.done", task_id, 1) for task_id in tasks)


def test_tasks_of_a_run_and_children_of_a_task_end_without_hooks(engine: Engine) -> None:
    engine.hooks.register([hook("after", *TASK_ENDS)])
    run = start(engine)
    run.finish("plan", "work")
    assert engine.tasks.cancel(run.steps["review"]).ok
    parent = create(engine)
    finish(engine, create(engine, parent=parent))
    break_for_good(engine, create(engine, parent=parent))
    create(engine, parent=parent)
    assert ends(engine) == []
    assert engine.tasks.cancel(parent).ok
    assert ends(engine) == [("task.cancelled", parent, 1)]


def test_the_end_of_a_hooks_own_task_fires_nothing(engine: Engine) -> None:
    engine.hooks.register([hook("first"), hook("second")])
    finish(engine, create(engine))
    (first,), (second,) = fired(engine, "first"), fired(engine, "second")
    finish(engine, first.id)
    break_for_good(engine, second.id)
    assert engine.tasks.retry(second.id).ok
    assert engine.tasks.cancel(second.id).ok
    assert (len(fired(engine, "first")), len(fired(engine, "second"))) == (1, 1)


def test_a_hook_for_one_workflow_or_one_task_leaves_the_others_alone(engine: Engine) -> None:
    engine.hooks.register(
        [
            hook("fork", *RUN_ENDS, about="fork"),
            hook("send", *TASK_ENDS, about="send"),
            hook("chain", *RUN_ENDS, *TASK_ENDS, about="chain"),
        ]
    )
    fork, chain = start(engine, FORK), start(engine, CHAIN)
    for run in (fork, chain):
        assert engine.runs.cancel(run.id).ok
    send = bring(engine, Status.DONE, step="send").task_id
    bring(engine, Status.DONE, step="other")
    bring(engine, Status.DONE)
    assert ends(engine, "fork") == [("run.cancelled", fork.id, 1)]
    assert ends(engine, "send") == [("task.done", send, 1)]
    assert ends(engine, "chain") == [("run.cancelled", chain.id, 1)]


def test_a_retry_that_ends_again_fires_again_and_advance_never_does(engine: Engine) -> None:
    engine.hooks.register([hook()])
    run = start(engine)
    run.break_for_good("plan")
    engine.runs.advance(run.id)
    assert ends(engine) == [("run.failed", run.id, 1)]
    assert engine.runs.retry(run.id).ok
    run.finish(*STEPS)
    engine.runs.advance(run.id)
    assert ends(engine) == [("run.completed", run.id, 2), ("run.failed", run.id, 1)]


def test_a_run_that_a_crash_left_unsettled_fires_when_it_is_advanced(engine: Engine) -> None:
    engine.hooks.register([hook()])
    run = start(engine, Workflow.define("one", (Step(id="only"),)))
    run.take("only")
    complete(engine, run.steps["only"])
    assert ends(engine) == []
    assert engine.runs.advance(run.id).completed
    assert ends(engine) == [("run.completed", run.id, 1)]


def test_a_hooks_task_has_the_options_of_its_hook(engine: Engine) -> None:
    retry = RetryPolicy(max_attempts=7, max_lost=2, backoff=3, backoff_max=9)
    limit = Concurrency(key="files", limit=2)
    fields: dict[str, Any] = {"tags": ("disk",), "priority": 5, "timeout": 60.0}
    engine.hooks.register([hook(retry=retry, concurrency=limit, **fields)])
    finish(engine, create(engine))
    (task,) = fired(engine)
    assert (task.retry, task.concurrency_key) == (retry, "task:files")
    assert (task.tags, task.priority, task.timeout) == (("disk",), 5, 60.0)
    finish(engine, task.id)


def test_a_hook_of_another_process_is_heeded_at_once(engines: tuple[Engine, Engine]) -> None:
    one, other = engines
    finish(one, create(one))
    other.hooks.register([hook()])
    task_id = create(one)
    finish(one, task_id)
    run = start(one)
    run.finish(*STEPS)
    assert ends(one) == [("run.completed", run.id, 1), ("task.done", task_id, 1)]
    assert other.hooks.remove("after").ok
    finish(one, create(one))
    assert len(fired(one)) == 2


def test_a_hook_that_is_removed_fires_no_more_and_the_others_do(engine: Engine) -> None:
    engine.hooks.register([hook("kept"), hook("removed")])
    finish(engine, create(engine))
    assert engine.hooks.remove("removed").ok
    finish(engine, create(engine))
    assert (len(fired(engine, "kept")), len(fired(engine, "removed"))) == (2, 1)
    assert engine.hooks.remove("removed").reason is Refusal.NOT_FOUND


def test_a_hook_registered_again_is_the_same_and_its_latest_definition_stands(
    engine: Engine, clock: ManualClock
) -> None:
    engine.hooks.register([hook("after", "run.failed")])
    before = engine.hooks.list()
    clock.advance(1)
    engine.hooks.register([hook("after", "run.failed")])
    assert engine.hooks.list() == before
    assert (before[0].name, before[0].events, before[0].agent) == ("after", ("run.failed",), AGENT)
    engine.hooks.register([hook("after", "task.done", about="send")])
    (now,) = engine.hooks.list()
    assert (now.events, now.about) == (("task.done",), "send")
    assert now.created_at == before[0].created_at


def test_nobody_can_take_the_key_or_the_step_of_a_hooks_task(
    refuse: Refuse, engine: Engine
) -> None:
    refuse("key", engine.tasks.create, NewTask(title="mine", key="hook after r_1 5"))
    refuse("step", engine.tasks.create, NewTask(title="mine", step="hook after"))


def test_a_hook_that_could_never_fire_is_refused(refuse: Refuse, engine: Engine) -> None:
    refuse("events", engine.hooks.register, [hook("after", "run.ended")])
    refuse("events", engine.hooks.register, [NewHook(name="after", events=())])
    refuse("name", engine.hooks.register, [hook("after this")])
    refuse("about", engine.hooks.register, [hook("after", about="no name")])


GOOD = (
    '{"agent": "hooks", "backoff": 0, "backoff_max": 0, "capacity": 1, "concurrency_key": null,'
    ' "max_attempts": 3, "max_lost": 5, "priority": 0, "tags": "[]", "timeout": null}'
)
DAMAGE = {
    "empty": ("template", "{}", "KeyError"),
    "list": ("template", "[]", "TypeError"),
    "torn": ("template", '{"agent": ', "JSONDecodeError"),
    "never": ("template", GOOD.replace('attempts": 3', 'attempts": -1'), "InvalidInput"),
    "tags": ("template", GOOD.replace('"[]"', '"[1]"'), "InvalidInput"),
    "wide": ("template", GOOD.replace('priority": 0', 'priority": 1e300'), "InvalidInput"),
    "events": ("events", "nothing", "JSONDecodeError"),
}


def test_a_hook_that_cannot_be_read_is_told_and_keeps_nothing_from_ending(
    engine: Engine, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine.hooks.register([hook(name) for name in ("a", *DAMAGE, "z")])
    with raw(store_url) as run:
        for name, (column, text, _) in DAMAGE.items():
            run(f"UPDATE holdfast_hook SET {column} = ? WHERE name = ?", text, name)  # noqa: S608
    ended, alone = start(engine), bring(engine, Status.DONE).task_id
    ended.finish(*STEPS)
    assert ended.status == "completed"
    for name in ("a", "z"):
        assert ends(engine, name) == [("run.completed", ended.id, 1), ("task.done", alone, 1)]
    found = {each.name: each for each in engine.hooks.list()}
    assert found["a"].problem is None
    for name, (_, _, reason) in DAMAGE.items():
        assert ends(engine, name) == []
        assert str(found[name].problem).startswith(reason)
        passed = f"hook {name} was passed over after run.completed of {ended.id}"
        assert (passed in caplog.text) == (name != "events")
    engine.hooks.register([hook(name) for name in DAMAGE])
    assert all(each.problem is None for each in engine.hooks.list())


def test_a_hook_with_fields_and_events_of_a_newer_release_still_follows_its_ends(
    engine: Engine, store_url: str
) -> None:
    engine.hooks.register([hook()])
    with raw(store_url) as run:
        run(
            "UPDATE holdfast_hook SET template = replace(template, '{', ?), events = ?",
            '{"from_the_future": 1, "kind": "odd", ',
            '["run.completed", "run.paused"]',
        )
    ended = start(engine)
    ended.finish(*STEPS)
    assert ends(engine) == [("run.completed", ended.id, 1)]
    (known,) = engine.hooks.list()
    assert (known.events, known.problem) == (("run.completed", "run.paused"), None)


def test_a_run_that_a_sweep_lets_in_and_that_fails_at_once_is_followed(engine: Engine) -> None:
    engine.hooks.register([hook("after", "run.failed")])
    wanted = WorkflowDeclarations(
        input={"type": "object", "properties": {"to": {"type": "string"}}}
    )
    strict = Workflow.define("strict", (Step(id="go"),), declared=wanted)
    engine.workflows.add(strict)

    def begin(to: object, limit: int = 1) -> StartedRun:
        key = Concurrency(key="narrow", limit=limit)
        steps = (called("call", strict, {"to": "{{ input.to }}"}),)
        order = Workflow.define("order", steps, concurrency=key)
        return start(engine, order, input={"to": to})

    begin("Ulm"), begin("Bonn")
    waiting = begin(7)
    # There is room for many by now, and each start lets one in: the oldest.
    begin("Jena", limit=9)
    assert waiting.holds == ["slot"]
    engine.recovery.step()
    assert ends(engine) == [("run.failed", waiting.id, 1)]
