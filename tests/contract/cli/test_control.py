"""Steering with the command line: what it does, what it refuses, and what it says to type next."""

from __future__ import annotations

import json
import re

from holdfast.engine.engine import Engine
from holdfast.model.retry import RetryPolicy
from holdfast.model.run import NewRun
from holdfast.model.status import Status
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.model.workflow.reference import Reference
from holdfast.model.workflow.step import OnFailure
from tests.contract.cli.command_line import Typed
from tests.contract.engine.state.loops.test_loops import begin, loop, work_off
from tests.contract.task_states import FORK, bring, create, finish, start, take

MERGE = Workflow.define(
    "merge",
    (Step(id="plan"), Step(id="approve", needs=("plan",), approval="Merge it?")),
)

CHECKS = Workflow.define(
    "checks",
    (
        Step(
            id="build",
            for_each=Reference.parse("for_each", "input.names"),
            parallel=2,
            steps=(
                Step(
                    id="check",
                    retry=RetryPolicy(max_attempts=1),
                    on_failure=OnFailure(action="ask"),
                ),
            ),
        ),
    ),
)


def test_a_verb_that_changes_nothing_says_so_and_is_no_error(engine: Engine, typed: Typed) -> None:
    run, lone = start(engine), create(engine)
    before = " (as before)\n"
    for verb, state in (
        ("pause", "running (held: paused)"),
        ("resume", "running"),
        ("cancel", "cancelled"),
        ("retry", "running"),
    ):
        said = f"chain {run.id} is {state}"
        assert typed.ok(verb, run.id) == f"{said}\n"
        assert typed.ok(verb, run.id) == said + before
    for words in (("cancel",), ("retry",), ("task", "reset"), ("plan", "start")):
        once = typed.ok(*words, lone).strip()
        assert typed.ok(*words, lone) == once + before


def test_items_of_a_loop_are_told_apart(engine: Engine, typed: Typed) -> None:
    run = begin(engine, loop("input", body=(Step(id="one"),), parallel=2), given=["a", "b"])
    (item,) = (each.id for each in engine.runs.tasks(run) if each.item == 1 and each.step != "one")
    assert typed.ok("pause", item) == f"build.2 {item} is held (paused)\n"
    listed = typed.ok("tasks", "--run", run)
    assert re.findall(r"t_\S+ +(\S+)", listed) == [
        "build.2.one",
        "build.1.one",
        "build.2",
        "build.1",
        "build",
    ]
    assert "(build.1.one, queued), " in typed.refused(2, "why", "t_0")


def test_cancel_of_what_has_ended_otherwise_says_how(engine: Engine, typed: Typed) -> None:
    run = start(engine)
    run.finish("plan", "work", "review")
    told = typed.refused(1, "cancel", run.id)
    assert f"{run.id} is unchanged (already_terminal): the run has ended completed; " in told
    assert f"next:  holdfast show {run.id}" in told
    assert "hf." not in told


def test_several_runs_and_tasks_are_cancelled_together_or_none_when_one_is_not_there(
    engine: Engine, typed: Typed
) -> None:
    run, lone = start(engine), create(engine)
    typed.refused(2, "cancel", run.id, "r_7zzz")
    assert run.status == "running"
    typed.ok("cancel", run.id, lone)
    assert (run.status, engine.tasks.get(lone).status) == ("cancelled", "cancelled")


def test_a_run_that_refuses_does_not_keep_the_others_from_being_steered(
    engine: Engine, typed: Typed
) -> None:
    over = start(engine)
    over.finish("plan", "work", "review")
    for verb, kept in (("pause", ["paused"]), ("resume", []), ("cancel", [])):
        run, last = start(engine), start(engine)
        if verb == "resume":
            typed.ok("pause", run.id, last.id)
        said = typed(verb, run.id, over.id, last.id)
        assert said.code == 1
        assert [line.split()[1] for line in said.out.splitlines()] == [run.id, last.id]
        assert said.err.count("error: ") == 1
        assert f"{over.id} is unchanged" in said.err
        assert (run.holds, last.holds) == (kept, kept)
        status = "cancelled" if verb == "cancel" else "running"
        assert (run.status, last.status) == (status, status)


def test_a_pause_says_before_what_it_would_stop(engine: Engine, typed: Typed) -> None:
    run, lone = start(engine), create(engine)
    engine.work.claim_by_id(run.steps["plan"], "worker")
    for verb, other in (("pause", "resume"), ("resume", "pause")):
        said = typed.ok(verb, run.id, lone, "--dry-run").splitlines()
        assert said[0] == f"would {verb} {run.id}: 2 tasks"
        assert said[3] == f"would {verb} {lone}: 1 task"
        assert typed.json(other, run.id, "--dry-run")["tasks"] == []
        assert typed.json(other, lone, "--dry-run")["tasks"] == []
        typed.ok(verb, run.id, lone)
    typed.ok("cancel", run.id, lone)
    assert typed.refused(1, "pause", run.id, "--dry-run") == typed.refused(1, "pause", run.id)


def test_a_dry_run_says_what_would_change_and_changes_nothing(engine: Engine, typed: Typed) -> None:
    run = start(engine)
    run.finish("plan")
    before = typed.json("show", run.id)
    said = typed("cancel", run.id, "--dry-run")
    assert said.out.splitlines()[0] == f"would cancel {run.id}: 2 tasks"
    assert f"Do it: holdfast cancel {run.id}" in said.err
    told = typed.json("cancel", run.id, "--dry-run")
    assert [each["step"] for each in told["tasks"]] == ["work", "review"]
    again = typed("retry", run.id, "--from", "work", "--dry-run")
    assert again.out.startswith(f"would retry {run.id} --from work: 2 tasks")
    assert typed.json("show", run.id) == before


def test_retry_takes_up_what_failed_and_from_a_step_what_follows(
    engine: Engine, typed: Typed
) -> None:
    run = start(engine)
    run.finish("plan")
    run.break_for_good("work")
    assert run.status == "failed"
    assert typed.json("retry", run.id, "--dry-run")["tasks"][0]["step"] == "work"
    typed.ok("retry", run.id)
    assert run.statuses == {"plan": "done", "work": "queued", "review": "queued"}
    typed.ok("retry", run.id, "--from", "plan")
    assert run.statuses["plan"] == "queued"
    told = typed.refused(2, "retry", run.id, "--from", "nope")
    assert "unknown_step" in told
    assert "the steps there are plan, work, review" in told
    typed.refused(2, "retry", run.id, "--again")
    typed.refused(2, "retry", run.steps["plan"], "--from", "plan")


def test_retry_from_a_step_in_a_loop_is_typed_as_it_is_looked_at(
    engine: Engine, typed: Typed
) -> None:
    body = (Step(id="one"), Step(id="two", needs=("one",)))
    steps = (loop("input", body=body), Step(id="last", needs=("build",)))
    run = begin(engine, *steps, given=["a", "b"])
    work_off(engine, run)
    for more in ([], ["--dry-run"]):
        told = typed.refused(2, "retry", run, "--from", "two", *more)
        assert f"holdfast retry {run} --from build.1.two" in told
    told = typed("retry", run, "--from", "build.2.two", "--dry-run").out
    assert told.startswith(f"would retry {run} --from build.2.two: 2 tasks, and 2 others change")
    typed.ok("retry", run, "--from", "build.2.two")
    assert work_off(engine, run) == ["two 1", "last"]


def test_a_task_that_is_done_is_done_again_only_when_told_so(engine: Engine, typed: Typed) -> None:
    stage = bring(engine, Status.DONE)
    told = typed.refused(1, "retry", stage.task_id)
    assert "invalid_transition" in told
    assert typed.ok("retry", "--again", stage.task_id).endswith("is ready\n")


def test_pause_and_resume_hold_a_run_or_a_task(engine: Engine, typed: Typed) -> None:
    run, lone = start(engine), create(engine)
    assert typed.ok("pause", run.id, lone).count("paused)") == 2
    assert run.holds == ["paused"]
    assert "(as before)" in typed.ok("pause", run.id)
    typed.ok("resume", run.id, lone)
    assert run.holds == []
    assert engine.tasks.get(lone).state == "ready"


def test_a_run_that_is_resumed_says_which_of_its_tasks_stay_on_hold_and_what_to_type(
    engine: Engine, typed: Typed
) -> None:
    run = start(engine, FORK)
    asked = run.take("plan")
    assert engine.work.ask(asked.task_id, asked.token, "which?").ok
    left, right = run.steps["left"], run.steps["right"]
    typed.ok("pause", run.id, left, right)
    said = typed("resume", run.id)
    assert said.out == f"fork {run.id} is running\n"
    assert said.err.splitlines()[:4] == [
        "3 of its tasks stay on hold:",
        f"  plan  held: question   holdfast answer {asked.task_id} '<answer>'",
        f"  left  held: paused   holdfast resume {left}",
        f"  right  held: paused   holdfast resume {right}",
    ]
    typed.ok("answer", asked.task_id, "this")
    typed.ok("resume", right)
    assert typed("resume", run.id).err.startswith("1 of its tasks stays on hold:\n  left  ")
    assert typed.json("resume", run.id).keys() == {"ok", "repeated", "run"}
    typed.ok("resume", left)
    assert "on hold" not in typed("resume", run.id).err


def test_the_first_of_many_tasks_that_stay_on_hold_are_named(engine: Engine, typed: Typed) -> None:
    run = start(engine, Workflow.define("many", tuple(Step(id=f"s{n}") for n in range(7))))
    typed.ok("pause", run.id, *run.steps.values())
    told = typed("resume", run.id).err.splitlines()
    assert told[0] == "7 of its tasks stay on hold:"
    assert told[6] == f"  and 2 more: holdfast why {run.id}"


def test_a_limit_that_stays_is_told_with_the_time_it_lifts(engine: Engine, typed: Typed) -> None:
    run = start(engine)
    held = run.take("plan")
    assert engine.work.reach_limit(held.task_id, held.token, "1h").ok
    typed.ok("pause", run.id)
    line = typed("resume", run.id).err.splitlines()[1]
    assert line.startswith("  plan  held: limit, lifts in ")
    assert line.endswith(f"   holdfast why {held.task_id}")


def test_comments_on_files_are_typed_with_a_rejection_and_with_a_message(
    typed: Typed, engine: Engine
) -> None:
    back = OnFailure(action="goto", step="plan", max_rounds=1)
    gate = Step(id="approve", needs=("plan",), approval="Merge it?", on_failure=back)
    run = start(engine, Workflow.define("gated", (Step(id="plan"), gate)))
    run.finish("plan")
    comments = ["--comment", "src/a.py:3 Why?", "--comment", "b.md: Say: more"]
    typed.ok("reject", "@last", "--reason", "not yet", *comments)
    told = [
        {"file": "src/a.py", "line": 3, "text": "Why?"},
        {"file": "b.md", "text": "Say: more"},
    ]
    plan = engine.tasks.get(run.steps["plan"])
    assert plan.feedback == {"reason": "not yet", "comments": told}
    run.finish("plan")
    typed.ok("continue", "@last:plan", *comments)
    plan = engine.tasks.get(run.steps["plan"])
    assert plan.feedback == {"reason": None, "comments": told}
    run.finish("plan")
    assert "message" in typed.refused(2, "continue", "@last:plan")
    assert "names no file" in typed.refused(2, "continue", "@last:plan", "--comment", "why?")


def test_an_approval_is_settled_by_its_run_and_no_other_word_is_taken(
    engine: Engine, typed: Typed
) -> None:
    run = start(engine, MERGE)
    approval = run.steps["approve"]
    told = typed.refused(2, "approve", run.id)
    assert f"nothing of {run.id} waits for a person; `holdfast why {run.id}`" in told
    told = typed.refused(1, "approve", approval)
    assert f"it cannot be settled yet: what it needs is not done; holdfast why {approval}" in told
    finish(engine, run.steps["plan"])
    assert f"holdfast approve {approval}" in typed.ok()
    told = typed.refused(1, "answer", run.id, "yes")
    assert f"it waits for approval: holdfast approve {approval}" in told
    assert typed.json("approve", "@last", "--note", "good")["task"]["output"] == "good"
    assert run.status == "completed"


def test_each_of_several_waiting_tasks_is_told_with_its_place_its_reason_and_what_to_type(
    engine: Engine, typed: Typed
) -> None:
    run = engine.runs.start(NewRun(workflow=CHECKS, input={"names": ["a", "b"]})).id
    first, second = (task.id for task in engine.runs.tasks(run) if task.step == "check")
    attempt = take(engine, first)
    assert engine.work.fail(first, attempt.token, "red").ok
    attempt = take(engine, second)
    assert engine.work.ask(second, attempt.token, "which host?").ok
    lone = create(engine, "Deploy")
    assert engine.tasks.hold(lone, "approval").ok
    failed = "it failed with red; approve has it tried again, reject has it fail"
    needs = typed.ok().partition("Needs you\n")[2].partition("next:")[0]
    assert needs.splitlines() == [
        f"  ◆ {run}:build.1.check  {failed}",
        f"    holdfast approve {first}",
        f"  ◆ {run}:build.2.check  which host?",
        f"    holdfast answer {second} '<answer>'",
        "  ◆ Deploy  it waits for approval",
        f"    holdfast approve {lone}",
    ]
    assert typed.refused(2, "reject", run).splitlines() == [
        f"error: task: several tasks of {run} wait for a person; name one:",
        f"  holdfast reject {first}   {run}:build.1.check  {failed}",
        f"  holdfast answer {second} '<answer>'   {run}:build.2.check  which host?",
    ]
    assert typed.json()["needs_you"][0]["address"] == f"{run}:build.1.check"
    assert typed.ok("approve", f"{run}:build.1.check").startswith("build.1.check ")


def test_a_rejection_says_why(engine: Engine, typed: Typed) -> None:
    run = start(engine, MERGE)
    finish(engine, run.steps["plan"])
    typed.ok("reject", run.id, "--reason", "not yet")
    assert run.status == "failed"
    assert run.task("approve").error == "not yet"


def test_an_ended_task_is_continued_with_a_message(engine: Engine, typed: Typed) -> None:
    lone = create(engine)
    assert "invalid_transition" in typed.refused(1, "continue", lone, "more")
    finish(engine, lone)
    assert typed.ok("continue", lone, "also the docs") == f"task {lone} is ready\n"
    (got,) = engine.work.claim_by_id(lone, "w", agents=["default"])
    assert got.feedback == "also the docs"


def test_a_question_is_answered_with_text_or_json(engine: Engine, typed: Typed) -> None:
    for answer, kept in (("blue", "blue"), ('{"n": 1}', {"n": 1})):
        lone = create(engine, "painter")
        (taken,) = engine.work.claim_by_id(lone, "worker")
        assert engine.work.ask(lone, taken.token, "Which colour?").ok
        assert "Which colour?" in typed.ok()
        assert f"holdfast answer {lone} '<answer>'" in typed.ok()
        typed.ok("answer", lone, answer)
        assert engine.tasks.get(lone).feedback == kept


def test_a_signal_is_sent_once_under_one_key(engine: Engine, typed: Typed) -> None:
    run = start(engine)
    arguments = ("signal", run.id, "courier.arrived", '{"at": "noon"}', "--key", "k")
    assert typed.ok(*arguments) == f"{run.id} got courier.arrived\n"
    assert typed.ok(*arguments) == f"{run.id} got courier.arrived before\n"
    told = typed.refused(1, "signal", run.steps["plan"], "courier.arrived")
    assert f"holdfast signal {run.id} courier.arrived" in told


def test_an_agent_at_its_limit_goes_on_when_somebody_says_so(engine: Engine, typed: Typed) -> None:
    held = take(engine, create(engine, agent="writer"))
    assert engine.work.reach_limit(held.task_id, held.token, "1h").ok
    assert "holdfast resume --agent writer" in typed.ok("why", held.task_id)
    late = create(engine, agent="writer")
    (row,) = [line for line in typed.ok("tasks").splitlines() if late in line]
    assert re.search(r"  held .*  held: limit, lifts in ", row)
    assert "  held: limit, lifts in " in typed.ok("show", late)
    would = typed("resume", "--agent", "writer", "--dry-run")
    assert would.out.startswith("would resume --agent writer: 2 tasks\n")
    assert "Nothing was changed. Do it: holdfast resume --agent writer" in would.err
    alone = typed.json("resume", held.task_id, "--dry-run")
    assert [task["id"] for task in alone["tasks"]] == [held.task_id]
    told = typed.ok("resume", "--agent", "writer")
    assert told == "writer goes on, with 2 tasks that waited for it\n"
    assert typed.ok("resume", "--agent", "writer") == "writer is not at a limit\n"
    assert json.loads(typed.ok("resume", "--agent", "writer", "--json"))["repeated"]
    would_not = {"dry_run": True, "agent": "writer", "tasks": []}
    assert typed.json("resume", "--agent", "writer", "--dry-run") == would_not
    assert "agent: ''" in typed.refused(2, "resume", "--agent", "", "--dry-run")
    assert engine.tasks.hold(held.task_id, "limit", until="1h").ok
    assert "is ready" in typed.ok("resume", held.task_id)
    assert "takes nothing else" in typed.refused(2, "resume", held.task_id, "--agent", "writer")
    assert "name a run or a task" in typed.refused(2, "resume")
