"""Looking with the command line: lists, one run, one task, events, why; as text and as JSON."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from holdfast.cli.render.tree import draw_task
from holdfast.engine.engine import Engine
from holdfast.engine.read.pages import PAGE_SIZE
from holdfast.model.retry import RetryPolicy
from holdfast.model.status import Status
from holdfast.model.task import NewTask, Renewal
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.model.workflow.reference import Reference
from tests.contract.cli.command_line import Typed
from tests.contract.engine.state.loops.test_loops import begin, loop
from tests.contract.task_states import bring, create, finish, start, take

RUN = {
    *("id", "workflow", "workflow_version", "status", "holds", "input", "progress", "version"),
    *("generation", "created_at"),
}
TASK = {
    *("id", "kind", "run_id", "step", "title", "agent", "status", "state", "planning_phase"),
    *("blocked_by", "holds", "skipped", "attempt", "failures", "max_attempts", "lost", "max_lost"),
    *("round", "generation", "priority", "position", "tags", "version", "created_at"),
}
LOOP = Workflow.define(
    "stories",
    (Step(id="plan"), Step(id="merge", needs=("plan",), approval="Merge it?")),
)

ASKING = """\
name: asking
agents: {cook: {external: true}}
steps:
  - {id: make, agent: cook, prompt: "Make it"}
  - {id: serve, run: [echo, "{{ steps.make }}"]}
"""


@pytest.fixture
def url(store_url: str) -> str:
    """On each database: these are the queries of the service."""
    return store_url


def test_the_traceback_of_a_function_is_shown_and_explained(engine: Engine, typed: Typed) -> None:
    task_id = create(engine, retry=RetryPolicy(max_attempts=1))
    lines = ["Traceback (most recent call last):", '  File "shop.py", line 7, in pay', "Oh: no\x1b"]
    error = {"type": "Oh", "message": "no", "traceback": lines}
    engine.work.fail(task_id, take(engine, task_id).token, error)
    shown = "".join(f"    {line}\n" for line in lines).replace("\x1b", "\\x1b")
    assert shown in typed.ok("show", task_id)
    assert shown in typed.ok("why", task_id)
    assert typed.json("why", task_id)["traceback"] == lines
    assert "    Oh: no" in str(engine.why(task_id))
    assert "traceback" not in typed.json("why", create(engine))


def test_a_run_and_its_tasks_hold_what_they_are_said_to_hold(engine: Engine, typed: Typed) -> None:
    run = start(engine, input={"n": 1})
    run.finish("plan")
    taken = run.take("work")
    told = typed.json("show", run.id)
    assert told.keys() == RUN | {"tasks"}
    assert told["progress"] == {"done": 1, "total": 3}
    plan, work, review = told["tasks"]
    assert plan.keys() == TASK | {"output", "started_at", "finished_at"}
    assert work.keys() == TASK | {"lease", "started_at"}
    assert work["lease"]["owner"] == "worker"
    assert review.keys() == TASK
    assert (review["state"], review["blocked_by"]) == ("blocked", [work["id"]])
    assert work["started_at"].endswith("Z")
    assert taken.token not in str(told)


def test_the_output_and_the_usage_of_a_run_are_shown_with_it(engine: Engine, typed: Typed) -> None:
    run = start(engine)
    run.finish("plan", "work")
    first = run.take("review")
    assert engine.work.fail(first.task.id, first.token, "no", usage={"usd": 0.5}).ok
    assert engine.tasks.run_now(first.task.id).ok
    second = run.take("review")
    output = {"good": True}
    assert engine.work.complete(second.task.id, second.token, output, usage={"usd": 0.25}).ok
    (told,) = typed.json("runs")["items"]
    assert (told["status"], told["output"], told["usage"]) == ("completed", output, {"usd": 0.75})
    assert "$0.75" in typed.ok("runs")
    shown = typed.ok("show")
    assert f"chain {run.id} · completed · $0.75" in shown
    assert "attempt 2 (1 failed)" in shown


def test_lists_go_page_by_page_and_by_status(engine: Engine, typed: Typed) -> None:
    runs = [start(engine).id for _ in range(3)]
    assert engine.runs.cancel(runs[0]).ok
    first = typed.json("runs", "--limit", "2")
    assert [each["id"] for each in first["items"]] == [runs[2], runs[1]]
    rest = typed.json("runs", "--limit", "2", "--after", first["next"])
    assert [each["id"] for each in rest["items"]] == [runs[0]]
    assert "next" not in rest
    more = f"More: holdfast runs -n 2 --after {runs[1]}"
    assert typed("runs", "-n", "2").err.strip() == more
    (ended,) = typed.json("runs", "--status", "cancelled", "--workflow", "chain")["items"]
    assert ended["id"] == runs[0]
    assert typed("runs", "--workflow", "other", "--status", "failed").err == "No such runs.\n"
    open_tasks = typed.json("tasks", "--run", runs[1], "--status", "queued", "--limit", "2")
    assert [each["step"] for each in open_tasks["items"]] == ["review", "work"]
    assert open_tasks["next"] == open_tasks["items"][-1]["id"]


def test_tasks_below_another_are_listed_by_it(engine: Engine, typed: Typed) -> None:
    parent = create(engine, "parent", enqueue=False)
    assert engine.tasks.start_planning(parent).ok
    child = create(engine, "child", parent=parent, enqueue=False)
    create(engine, "elsewhere")
    assert [each["id"] for each in typed.json("tasks", "--parent", parent)["items"]] == [child]
    assert engine.tasks.finalize_plan(parent).ok
    assert typed.json("show", parent)["state"] == "in progress 0/1"
    assert "in progress 0/1" in typed.ok("tasks")


def test_a_task_shows_each_of_its_attempts(engine: Engine, typed: Typed) -> None:
    stage = bring(engine, Status.FAILED)
    told = typed.json("show", stage.task_id)
    (attempt,) = told["attempts"]
    assert (attempt["attempt"], attempt["owner"], attempt["outcome"]) == (1, "worker", "failed")
    shown = typed.ok("show", stage.task_id)
    assert f"task {stage.task_id} · failed" in shown
    assert "attempt 1  failed" in shown
    assert "by worker" in shown
    assert "attempt 1  failed" in typed.ok("logs", stage.task_id)


def test_a_task_shows_how_long_it_took_in_all_with_what_it_waited_between_attempts(
    engine: Engine, typed: Typed
) -> None:
    stage = bring(engine, Status.DONE)
    times = {"started_at": "2030-01-01T00:00:00Z", "finished_at": "2030-01-01T00:14:00Z"}
    head, *_, attempt = draw_task(typed.json("show", stage.task_id) | times)
    assert head == f"task {stage.task_id} · done · 14m 00s"
    assert "14m" not in attempt
    assert typed.ok("show", create(engine)).splitlines()[0].endswith(" · ready")


def test_a_plan_shows_its_children_in_their_order(engine: Engine, typed: Typed) -> None:
    parent = create(engine, "parent", enqueue=False)
    assert engine.tasks.start_planning(parent).ok
    second = create(engine, "second", parent=parent, position=2, enqueue=False)
    first = create(engine, "first", parent=parent, position=1, enqueue=False)
    assert engine.tasks.finalize_plan(parent).ok
    children = typed.json("show", parent)["children"]
    assert [each["id"] for each in children] == [first, second]
    shown = typed.ok("show", parent)
    assert f"  {first}  first · ready\n  {second}  second · blocked\n" in shown
    assert "children" not in typed.json("show", first)


def test_a_task_that_was_given_a_title_is_called_by_it_wherever_it_is_listed(
    engine: Engine, typed: Typed
) -> None:
    lone = [create(engine, title, step="fetch") for title in ("A", "fetch")]
    assert [line.split()[1] for line in typed.ok("tasks").splitlines()] == ["TASK", "fetch", "A"]
    assert typed.ok("cancel", lone[0]) == f"A {lone[0]} is cancelled\n"
    run = start(engine, Workflow.define("gathering", (Step(id="gather"),)))
    taken = run.take("gather")
    wanted = [NewTask(title=title, step="fetch") for title in ("A", "B")]
    children = engine.work.spawn(taken.task.id, taken.token, wanted, name="parts")
    for child in children.value:
        finish(engine, child)
    listed = typed.ok("tasks", "--run", run.id).splitlines()[1:]
    assert [line.split("  ")[1] for line in listed] == [
        "gather.fetch B",
        "gather.fetch A",
        "gather",
    ]
    assert "✓ fetch A  " in typed.ok("show", run.id)
    assert engine.work.complete(taken.task.id, taken.token, "all").ok
    told = typed.ok("show", run.id, "--follow").splitlines()
    assert "gather.fetch A  done" in [line[10:] for line in told]


def test_an_attempt_is_counted_for_a_person_once_one_before_it_failed_or_was_lost(
    engine: Engine, typed: Typed
) -> None:
    one = Workflow.define("one", (Step(id="a", retry=RetryPolicy(max_attempts=9, backoff=0.0)),))
    run = start(engine, one)
    for _ in range(2):
        assert engine.work.release(run.steps["a"], run.take("a").token).ok
    taken = run.take("a")
    assert "attempt" not in typed.ok("show", run.id)
    assert engine.work.fail(run.steps["a"], taken.token, "broken").ok
    run.take("a")
    assert "attempt 4 (1 failed)" in typed.ok("show", run.id)
    assert engine.runs.cancel(run.id).ok
    lines = [line[10:] for line in typed("show", run.id, "--follow").out.splitlines()[2:]]
    assert lines == [
        *("a  running", "a  released") * 2,
        *("a  running", "a  retrying  broken", "a  running  attempt 4"),
        *("one  cancelled", "a  cancelled  attempt 4"),
    ]
    assert typed.json("show", run.id)["tasks"][0]["attempt"] == 4


def test_an_attempt_says_what_was_stopped_with_it(engine: Engine, typed: Typed) -> None:
    task_id = create(engine)
    taken = take(engine, task_id)
    assert engine.tasks.cancel(task_id).ok
    assert engine.workers.note_stop(task_id, taken.token, ended=3, left=1).ok
    (attempt,) = typed.json("show", task_id)["attempts"]
    assert (attempt["stopped"], attempt["left"]) == (3, 1)
    assert attempt["stopped_at"]
    assert "3 processes stopped, 1 could not be" in typed.ok("show", task_id)


def test_a_running_task_shows_an_earlier_error_as_one_and_the_last_line_of_its_log(
    engine: Engine, typed: Typed
) -> None:
    task_id = create(engine)
    first = take(engine, task_id)
    assert engine.work.fail(task_id, first.token, "no luck").ok
    assert engine.tasks.run_now(task_id).ok
    taken = take(engine, task_id)
    renewal = Renewal(task_id=task_id, token=taken.token, progress={"log": "half way"})
    assert engine.work.renew([renewal])[0].ok
    shown = typed.ok("show", task_id)
    assert "  progress  half way\n" in shown
    assert "  earlier   no luck\n" in shown
    assert "  error " not in shown


def test_events_come_in_order_and_go_on_after_one(engine: Engine, typed: Typed) -> None:
    run = start(engine)
    run.finish("plan")
    told = typed.json("events", run.id)["items"]
    assert told[0]["type"] == "run.started"
    assert {"seq", "type", "run_id", "version", "to", "actor", "at"} <= told[0].keys()
    done = next(each for each in told if each["type"] == "task.done")
    assert (done["from"], done["to"], done["attempt"]) == ("running", "done", 1)
    page = typed.json("events", run.id, "--after", str(done["seq"]), "--limit", "1")
    assert [each["type"] for each in page["items"]] == ["task.unblocked"]
    assert page["next"] == page["items"][0]["seq"]
    assert typed.json("events", run.steps["plan"])["items"][-1] == done
    assert typed.json("events")["items"] == told
    assert "task.done  → done  attempt 1  by worker" in typed.ok("events", run.id)


def test_an_event_names_its_place_and_its_holds_in_words(engine: Engine, typed: Typed) -> None:
    body = (Step(id="make"),)
    run = begin(engine, loop("input", body=body), given=["a", "b"])
    made = engine.runs.task(run, "build.1.make").id
    lone = create(engine, "Tidy the shed")
    assert engine.tasks.hold(made).ok
    assert engine.runs.pause(run).ok
    assert engine.tasks.hold(lone, "limit", until="10m").ok
    for words in (("events",), ("events", run), ("events", made)):
        assert f"  {made}  build.1.make  task.held  " in typed.ok(*words)
    told = typed.ok("events", run)
    assert f"  {run}  {engine.runs.get(run).workflow}  run.held  " in told
    held = [line for line in told.splitlines() if ".held" in line]
    assert [line.rpartition("  ")[2] for line in held][:2] == ["held: paused", "held: paused"]
    assert "its run held: paused" in told
    assert f"  {lone}  Tidy the shed  task.held  " in typed.ok("events", lone)
    assert "held: limit" in typed.ok("events", lone)
    assert '"holds"' not in typed.ok("events")
    assert engine.runs.cancel(run).ok
    assert f"  {made}  build.1.make  task.cancelled  " in typed.ok("events", run, "--follow")
    plain = [each["data"] for each in typed.json("events", made)["items"] if "data" in each]
    assert 1 in [each.get("holds") for each in plain]


def test_a_run_that_has_ended_is_followed_to_its_end(engine: Engine, typed: Typed) -> None:
    run = start(engine)
    run.finish("plan", "work", "review")
    lines = typed.ok("events", run.id, "--follow").splitlines()
    assert "run.completed" in lines[-1]
    *_, end, output = typed.ok("show", run.id, "--follow").splitlines()
    assert (end.partition("  ")[2], output) == ("chain  completed", "review output")


def test_an_approval_is_found_by_its_run_however_many_older_ones_wait(
    engine: Engine, typed: Typed
) -> None:
    older = Workflow.define("many", tuple(Step(id=f"s{n}", approval="?") for n in range(PAGE_SIZE)))
    start(engine, older)
    run = start(engine, Workflow.define("one", (Step(id="approve", approval="Merge it?"),)))
    typed.ok("approve", run.id)
    assert run.status == "completed"


def test_an_approval_of_a_paused_run_is_told_with_the_command_that_comes_before(
    engine: Engine, typed: Typed
) -> None:
    run = start(engine, Workflow.define("one", (Step(id="approve", approval="Merge it?"),)))
    typed.ok("pause", run.id)
    approve = f"holdfast approve {run.steps['approve']}"
    shown = f"{approve}   (after `holdfast resume {run.id}`)"
    assert f"  └ {shown}\n" in typed.ok("show", run.id)
    assert typed("show", run.id, "--follow").err == f"needs you: {shown}\n"
    assert "Needs you" not in typed.ok()
    refused = f"its run is held: paused; holdfast resume {run.id} has it go on\n"
    for address in (run.steps["approve"], run.id):
        assert refused in typed.refused(1, "approve", address)
    typed.ok("resume", run.id)
    assert typed("show", run.id, "--follow").err == f"needs you: {approve}\n"
    typed.ok("approve", run.id)
    assert run.status == "completed"


@pytest.mark.usefixtures("engine")
def test_a_store_with_nothing_in_it_says_how_to_begin(typed: Typed) -> None:
    assert typed("runs").err == "No runs yet. Start one: holdfast run WORKFLOW\n"
    assert typed("tasks").err == "No such tasks.\n"
    assert typed.json("runs") == {"items": []}
    assert typed.json("events") == {"items": []}
    refused = typed.refused(2, "show")
    assert "nothing was ever run; `holdfast run WORKFLOW` starts one" in refused
    assert "holdfast run WORKFLOW --wait" in typed.ok()


def test_why_of_a_waiting_run_names_the_worker_that_is_missing(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    (tmp_path / "asking.yaml").write_text(ASKING)
    typed.ok("run", "asking.yaml")
    shown = typed.ok("why", "@last")
    left = (
        "its workflow file gives it no program: it waits for a worker with a command for agent "
        "'cook' in its holdfast.yaml, or for whoever claims it"
    )
    assert f"make is queued, not running (ready): {left}\n" in shown
    assert "serve is queued, not running (blocked): waits for make (queued)\n" in shown
    assert shown.endswith("Fix:   holdfast work claim --agent cook\n")
    # A worker of its agent's name is no help.
    engine.workers.register("w", agents=["cook"])
    assert typed.ok("why", "@last") == shown
    told = typed.json("why", "@last:make")
    assert told["clauses"][-1] == {"name": "worker", "ok": False, "detail": left}
    assert told["fixes"] == ["holdfast work claim --agent cook"]


def test_the_command_that_starts_a_workflow_names_the_input_it_must_be_given(
    typed: Typed, tmp_path: Path
) -> None:
    file = tmp_path / "asking.yaml"
    file.write_text(ASKING + "input: {topic: string, size: {type: int, default: 3}, extra: int?}\n")
    said = typed("workflow", "show", "asking.yaml")
    assert said.err == "start: holdfast run asking.yaml -i topic=… --wait\n"


def test_why_says_which_command_helps(engine: Engine, typed: Typed) -> None:
    run = start(engine, LOOP)
    finish(engine, run.steps["plan"])
    approval = run.steps["merge"]
    told = typed.json("why", run.id)
    assert told["fixes"] == [f"holdfast approve {approval}"]
    shown = typed.ok("why", approval)
    assert "✗ kind     a person settles it: Merge it?" in shown
    assert f"Fix:   holdfast approve {approval}" in shown
    lone = create(engine, "lone", step="lone", agent="developer", tags=("gpu",))
    shown = typed.ok("why", lone)
    assert "lone is queued, not running (ready)" in shown
    assert "Fix:   holdfast worker MODULE:NAME --agent developer --tag gpu" in shown
    assert "it is for agent 'developer'" in typed.ok("why", lone, "--agent", "planner")
    assert '✗ worker   0 of 0 live workers serve "developer" with gpu' in shown
    engine.workers.register("w", agents=["developer"], tags=["gpu"])
    told = typed.json("why", lone)
    served = '1 of 1 live worker serves "developer" with gpu: w (1 of 1 slots free)'
    assert told["clauses"][-1]["detail"] == served
    assert told["fixes"] == []
    free = "Nothing stands in its way: the next worker that serves it may take it."
    assert f"  {served}\n{free}" in typed.ok("why", lone)
    taken = take(engine, lone)
    said = r"lone is running: attempt 1, leased by worker for \d+s"
    assert re.match(said, typed.ok("why", lone))
    assert taken.token not in typed.ok("show", lone, "--json")
    engine.work.release(lone, taken.token)
    told = typed.json("why", lone)
    assert told["summary"].endswith("; attempt 1 was given back")
    assert (told["fixes"], told["looks"]) == ([], [f"holdfast logs {lone}"])


def test_a_run_of_the_functions_of_a_program_wants_a_worker_of_that_program(
    engine: Engine, typed: Typed, url: str
) -> None:
    run = start(engine)
    there = f"holdfast worker MODULE:NAME --db {shlex.quote(url)}\n"
    for asked in (run.id, run.steps["plan"]):
        assert typed.ok("why", asked, "--db", url).endswith(f"Fix:   {there}")
    typed.ok("pause", run.id)
    assert typed("resume", run.id, "--db", url).err.endswith(there)
    assert engine.tasks.hold(run.steps["plan"], "version").ok
    shown = typed.ok("why", run.steps["plan"], "--db", url)
    assert "has no function 'plan' of chain@" in shown
    assert shown.endswith(f"Fix:   {there}")


def test_a_task_that_names_no_function_is_for_whoever_claims_it(
    engine: Engine, typed: Typed
) -> None:
    task_id = typed.json("task", "add", "Call mum")["id"]
    engine.workers.register("w", agents=["default"])
    shown = typed.ok("why", task_id)
    assert "✗ worker   it names no function: it waits for a worker with a command for" in shown
    assert shown.endswith("Fix:   holdfast work claim --agent default\n")
    assert engine.tasks.hold(task_id, "version").ok
    assert typed.json("why", task_id)["fixes"] == [f"holdfast resume {task_id}"]
    assert len(typed.json("resume", task_id, "--dry-run")["tasks"]) == 1
    typed.ok("resume", task_id)
    (assignment,) = json.loads(typed.ok("work", "claim", "--agent", "default"))["assignments"]
    assert assignment["task"]["id"] == task_id


def test_colours_are_left_out_and_other_control_characters_written_out(
    engine: Engine, typed: Typed
) -> None:
    evil = "red\x1b[31m \x07bell \u202egnp.exe\u009b1m\ncolumn"
    task_id = create(engine, evil)
    assert engine.tasks.edit(task_id, {"payload": evil}).ok
    for shown in (typed.ok("tasks"), typed.ok("show", task_id), typed.ok("why", task_id)):
        assert "red \\x07bell \\u202egnp.exe\\ncolumn" in shown
        assert not {*"\x1b\x07\u202e\u009b"} & {*shown}
    raw = typed.ok("show", task_id, "--json")
    assert not {*"\x1b\x07\u202e\u009b"} & {*raw}
    assert typed.json("show", task_id)["title"] == evil


def test_an_item_whose_verdict_is_next_is_shown_as_verifying(engine: Engine, typed: Typed) -> None:
    steps = (Step(id="implement"), Step(id="verify", verifies="implement"))
    over = Reference.parse("for_each", "input")
    build = Step(id="build", for_each=over, steps=steps)
    run = start(engine, Workflow.define("verified", (build,)), input=["SAML"])
    finish(engine, engine.runs.task(run.id, "build.1.implement").id)
    loop, item, implement, verify = typed.ok("show").splitlines()[1:]
    assert loop.startswith("▾ build  0/1")
    assert item.split()[:3] == ["▾", "1", "SAML"]
    assert item.endswith("verifying")
    assert implement.endswith("verifying")
    assert verify.split() == ["○", "verify"]
    states = {each["id"]: each["state"] for each in typed.json("tasks")["items"]}
    assert states[engine.runs.task(run.id, "build.1").id] == "verifying"
    assert "verifying" in typed.ok("show", "@last:build.1")
    assert "build.1 is queued, not running (verifying)" in typed.ok("why", "@last:build.1")


def test_a_run_is_shown_as_it_stood_after_an_event(engine: Engine, typed: Typed) -> None:
    run = start(engine)
    begun = typed.json("events", run.id)["items"][-1]["seq"]
    run.finish("plan", "work", "review")
    past = typed.ok("show", run.id, "--at", str(begun)).splitlines()
    assert past[0].startswith(f"as it stood after event {begun} (task.created), 2")
    assert "running" in past[1]
    assert [line.split()[:2] for line in past[2:3]] == [["○", "plan"]]
    told = typed.json("show", run.id, "--at", str(begun))
    assert [each["status"] for each in told["tasks"]] == ["queued"] * 3
    assert "completed" in typed.ok("show", run.id, "--at", "1000000")
    assert "before the run began" in typed.refused(2, "show", start(engine).id, "--at", "1")
    assert "is for a run" in typed.refused(2, "show", run.steps["plan"], "--at", "3")
    assert "--follow cannot" in typed.refused(2, "show", run.id, "--at", "3", "--follow")
