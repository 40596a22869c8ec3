"""What Holdfast says when something is not as it should be: what it was, and what to do next."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Never, cast

import pytest

from holdfast import Holdfast, InvalidInput, NotFound, Refusal, StoreError, TaskFailed, goto
from holdfast.engine.engine import Engine, engine_of
from holdfast.engine.explain.doctor import Check, Diagnosis, Violation
from holdfast.model.advice import ANSWER, Action, Advice
from holdfast.model.result import TransitionResult
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.model.workflow.reference import Reference
from tests.contract.advised import advised
from tests.contract.read_only_folders import read_only_folder
from tests.contract.task_states import MISSING_RUN, MISSING_TASK, break_for_good, create, start

PATIENCE = 30


def test_a_url_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^url: is a NoneType; pass a text, sqlite:///file"):
        Holdfast(cast("str", None))


def test_a_store_path_that_is_no_sqlite_file_is_named(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("these are notes, and long enough to be taken for the head of a file" * 99)
    refused = {
        text: f"^{text} is not a SQLite database; name another file$",
        tmp_path: f"^{tmp_path} cannot be opened as a SQLite database; it is a folder",
        tmp_path / "none" / "a.db": "does its folder exist?",
        read_only_folder(tmp_path)
        / "a.db": r"; its folder is read-only \([^)]+\): name a file in another",
    }
    for path, reason in refused.items():
        with pytest.raises(StoreError, match=reason):
            Holdfast(f"sqlite:///{path}").doctor()


def test_a_word_that_only_stands_for_what_a_person_says_is_refused(hf: Holdfast) -> None:
    task = create(engine_of(hf))
    calls: dict[str, Callable[[], object]] = {
        "answer": lambda: hf.answer(task, "<answer>"),
        "note": lambda: hf.approve(task, "<note>"),
        "message": lambda: hf.tasks.follow_up(task, "<message>"),
        "payload": lambda: hf.signal(task, "go", "<payload>"),
        "title": lambda: create(engine_of(hf), "<title>"),
    }
    for field, call in calls.items():
        with pytest.raises(InvalidInput, match=f"^{field}: .* only stands for the {field}; write"):
            call()
    assert [each.title for each in hf.tasks.list()] == ["task"]


def test_what_users_of_a_program_have_written_is_passed_on_as_it_is(hf: Holdfast) -> None:
    task = create(engine_of(hf), "…")
    for said in ("...", "[MESSAGE]"):
        assert hf.signal(task, "chat", said)
    assert hf.tasks.get(task).title == "…"


def test_a_setting_is_a_number_or_a_duration(store_url: str) -> None:
    with Holdfast(store_url, lease="3s", renewal="500ms") as hf:
        assert (hf.settings.lease, hf.settings.renewal) == (3.0, 0.5)
    with pytest.raises(InvalidInput, match="lease: 'soon' is not a duration"):
        Holdfast(store_url, lease="soon")
    with pytest.raises(InvalidInput, match="max_attempts: must be a number, not str"):
        Holdfast(store_url, max_attempts=cast("int", "5"))


def test_a_call_that_does_not_fit_names_the_step_and_what_was_meant(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step
    def pack(order_id: int) -> int:
        return order_id

    job: Any = hf.task(name="job")(lambda when: when)
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: flow.start(oder_id=3), "^oder_id: is no input of 'flow', .*mean order_id?"),
        (lambda: flow.start(cast("Never", 7)), r"^start: inputs go by name: start\(order_id=7\)"),
        (lambda: flow.start(order_id="x"), "^order_id: Input should be .*; 'pack' takes it"),
        (
            lambda: job.enqueue(datetime.now(UTC)),
            "a datetime is not JSON .*annotate '<lambda>'.*'when'",
        ),
    ]
    for call, reason in refused:
        with pytest.raises(InvalidInput, match=reason):
            call()


def test_a_result_without_a_type_says_to_annotate_it(hf: Holdfast) -> None:
    now = hf.task(name="now")(lambda: datetime.now(UTC))
    with hf.worker(), pytest.raises(TaskFailed, match=r"a datetime is not JSON .*return type is"):
        now.enqueue().result(PATIENCE)


def test_a_function_without_a_name_is_told_to_be_given_one(hf: Holdfast) -> None:
    for nameless in (lambda: 1, functools.partial(int, "7")):
        with pytest.raises(InvalidInput, match="has no name of its own; give it one with name="):
            hf.task(nameless)
    with hf.worker():
        assert hf.task(name="one")(lambda: 1).enqueue().result(PATIENCE) == 1


def test_refusals_about_ended_runs_and_tasks_say_how_to_do_them_again(engine: Engine) -> None:
    done, failed = start(engine), start(engine)
    done.finish("plan", "work", "review")
    failed.break_for_good("plan")
    runs = engine.runs
    for run, options in ((done, (("step", "plan"),)), (failed, ())):
        for ask in (runs.pause, runs.resume, runs.cancel):
            answer = ask(run.id)
            assert answer.reason is Refusal.ALREADY_TERMINAL
            assert advised(answer) == [Advice(Action.RETRY, run.id, options)]
    task_id = create(engine)
    break_for_good(engine, task_id)
    for change in (engine.tasks.cancel, engine.tasks.hold, engine.tasks.unhold):
        assert advised(change(task_id)) == [Advice(Action.REOPEN, task_id)]


def test_an_unknown_id_is_told_as_such(engine: Engine) -> None:
    asked: list[Callable[..., Any]] = [engine.runs.cancel, engine.runs.pause, engine.runs.retry]
    answers = [ask(MISSING_RUN) for ask in asked]
    asked = [engine.tasks.cancel, engine.tasks.hold, engine.tasks.retry, engine.tasks.delete]
    answers += [ask(MISSING_TASK) for ask in asked]
    assert {(each.reason, each.detail) for each in answers} == {
        (Refusal.NOT_FOUND, "there is no such run or task in this store")
    }
    looks: list[Callable[[str], Any]] = [engine.runs.get, engine.runs.tasks, engine.runs.events]
    for look in looks:
        with pytest.raises(NotFound, match=MISSING_RUN):
            look(MISSING_RUN)


def test_a_violation_ends_with_what_to_do_about_it() -> None:
    violation = Violation(entity="t_1", detail="is wrong")
    told = str(Diagnosis(checks=(Check(name="fold_status", violations=(violation,)),)))
    assert told.startswith("fold_status: t_1 is wrong\n")
    assert "hf.tasks.events(id)" in told.splitlines()[-1]


def test_one_step_is_needed_without_a_list(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step
    def fetch() -> str:
        return "fetched"

    @flow.step(needs=fetch)
    def first() -> str:
        return "first"

    @flow.step(needs="fetch")
    def second() -> str:
        return "second"

    assert {step.id: step.needs for step in flow.graph.steps} == {
        "fetch": (),
        "first": ("fetch",),
        "second": ("fetch",),
    }


def test_a_person_whose_word_is_not_wanted_hears_why(engine: Engine) -> None:
    gate = Step(id="gate", approval="Go on?", needs=("plan",))
    run = start(engine, Workflow.define("gated", (Step(id="plan"), gate)))
    plan, approval = run.steps["plan"], run.steps["gate"]

    def refused(answer: TransitionResult) -> list[Advice]:
        assert (answer.ok, answer.reason) == (False, Refusal.INVALID_TRANSITION)
        return advised(answer)

    assert refused(engine.tasks.approve(plan)) == []
    assert refused(engine.tasks.reject(approval)) == [Advice(Action.WHY, approval)]
    attempt = run.take("plan")
    assert engine.work.ask(plan, attempt.token, "How?").ok
    assert refused(engine.tasks.approve(plan)) == [Advice(Action.ANSWER, plan, (ANSWER,))]
    assert engine.tasks.answer(plan, "so").ok
    assert refused(engine.tasks.answer(plan, "or so")) == []
    run.finish("plan")
    assert refused(engine.tasks.answer(approval, "yes")) == [Advice(Action.APPROVE, approval)]
    assert engine.runs.pause(run.id).ok
    assert refused(engine.tasks.approve(approval)) == [Advice(Action.RESUME, run.id)]
    assert engine.runs.resume(run.id).ok
    assert engine.tasks.approve(approval).ok
    assert refused(engine.tasks.approve(approval)) == []


def test_a_plan_that_is_begun_twice_says_how_far_it_is(engine: Engine) -> None:
    plan = create(engine, enqueue=False)
    assert engine.tasks.start_planning(plan).ok
    again = engine.tasks.start_planning(plan)
    assert (again.repeated, advised(again)) == (True, [Advice(Action.FINALIZE_PLAN, plan)])
    create(engine, "child", parent=plan, enqueue=False)
    assert engine.tasks.finalize_plan(plan).ok
    late = engine.tasks.start_planning(plan)
    assert (late.repeated, advised(late)) == (False, [])


def test_an_address_that_leads_nowhere_names_what_there_is(engine: Engine) -> None:
    build = Step(
        id="build", for_each=Reference.parse("for_each", "input"), steps=(Step(id="paint"),)
    )
    run = start(engine, Workflow.define("flow", (build, Step(id="ship"))), input=["a", "b"])
    wrong = {
        "nope": "the steps there are build, ship$",
        "nope.1.paint": "the steps there are build, ship$",
        "build.8": "build has 2 items, counted from 1$",
        "build.8.print": "build has 2 items, counted from 1$",
        "build.1.print": "the steps there are paint$",
        "ship.1": "there is nothing below a step$",
    }
    for address, hint in wrong.items():
        with pytest.raises(NotFound, match=f"no such task in this store; {hint}"):
            engine.runs.task(run.id, address)
    with pytest.raises(NotFound, match=f"^{MISSING_RUN}: there is no such run or task"):
        engine.runs.task(MISSING_RUN, "build")


def test_the_id_of_a_run_is_not_taken_for_that_of_a_task(engine: Engine) -> None:
    run = start(engine)
    with pytest.raises(InvalidInput, match=f"{run.id} is a run, and a task is wanted"):
        engine.tasks.approve(run.id)
    with pytest.raises(InvalidInput, match="is a task, and a run is wanted"):
        engine.runs.pause(run.steps["plan"])


def test_a_loop_and_rounds_without_a_count_are_refused_where_they_are_written(
    hf: Holdfast,
) -> None:
    flow = hf.workflow("flow")
    wrong: list[Any] = [0, -1, True, "2", 2.5, None]
    for count in wrong:
        with pytest.raises(InvalidInput, match=r"^parallel: must be"):
            flow.loop("build", over="input.stories", parallel=count)
        with pytest.raises(InvalidInput, match=r"^max_rounds: must be"):
            goto("build", max_rounds=count)
        with pytest.raises(InvalidInput, match=r"^max_rounds: must be"):
            flow.step(verifies="build", max_rounds=count)


def test_a_hook_that_is_not_there_is_told_which_are(hf: Holdfast) -> None:
    refused = hf.hooks.remove("nope")
    assert (refused.reason, refused.detail) == (
        Refusal.NOT_FOUND,
        "no hook of this store is called 'nope'; there is none at all",
    )

    @hf.on("run.failed")
    def refund(event: object) -> None: ...

    @hf.on("run.completed")
    def thank(event: object) -> None: ...

    assert hf.hooks.remove("refnd").detail.endswith("'refnd'; there are refund, thank")
    assert hf.hooks.remove("refund").ok
