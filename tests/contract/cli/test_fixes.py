"""What `why` gives as a fix is taken when it is typed, and has what stood still go on."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from holdfast.cli.app.advice import NEEDS_PERSON
from holdfast.cli.render.live_view import exit_code_of_run
from holdfast.engine.engine import Engine
from holdfast.service.queries.queries import Queries
from tests.contract.cli.command_line import Typed
from tests.contract.task_states import break_for_good, create, finish, start, take

FLAT = """
name: flat
agents: {d: {external: true}}
steps:
  - {id: one, agent: d, prompt: "one"}
  - {id: two, agent: d, prompt: "two"}
"""
LOOP = """
name: loop
agents: {d: {external: true}}
steps:
  - id: build
    for_each: "{{ input.list }}"
    steps:
      - {id: make, agent: d, prompt: "make {{ item }}"}
      - {id: pack, agent: d, prompt: "pack {{ item }}"}
"""

GATE = """
name: gate
concurrency: one
budget: {usd: 1}
agents: {d: {external: true}}
steps:
  - {id: ok, approval: "Go on?", needs: []}
  - {id: make, agent: d, prompt: "Make it", needs: []}
  - {id: pack, agent: d, prompt: "Pack it"}
"""


@pytest.fixture
def url(store_url: str) -> str:
    """On each database: what is told is read there."""
    return store_url


def begin(typed: Typed, folder: Path, text: str, *given: str) -> str:
    (folder / "w.yaml").write_text(text)
    return str(typed.json("run", "w.yaml", *given)["id"])


def at(engine: Engine, run: str, address: str) -> str:
    return engine.runs.task(run, address).id


def fixes(typed: Typed, identifier: str) -> list[str]:
    return [str(each) for each in typed.json("why", identifier)["fixes"]]


def do(typed: Typed, fix: str) -> str:
    return typed.ok(*shlex.split(fix)[1:])


def test_a_step_that_was_reset_is_put_back_in_the_queue_as_why_says(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    run = begin(typed, tmp_path, FLAT)
    one, two = at(engine, run, "one"), at(engine, run, "two")
    typed.ok("task", "reset", one)
    for each in (run, one, two):
        assert fixes(typed, each) == [f"holdfast task enqueue {one}"]
    do(typed, fixes(typed, run)[0])
    assert typed.json("show", one)["state"] == "ready"
    assert not any("enqueue" in each for each in fixes(typed, run))


def test_a_step_of_an_item_that_was_reset_waits_for_no_turn_of_its_loop(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    run = begin(typed, tmp_path, LOOP, "-i", 'list=["a", "b"]')
    pack = at(engine, run, "build.1.pack")
    typed.ok("task", "reset", pack)
    finish(engine, at(engine, run, "build.1.make"))
    told = typed.ok("why", pack)
    assert "✗ status   it is not in the queue" in told
    assert "its time comes" not in told + typed.ok("why", run)
    assert "its loop starts it when its turn has come" in typed.ok(
        "why", at(engine, run, "build.2")
    )
    for each in (run, pack):
        assert fixes(typed, each) == [f"holdfast task enqueue {pack}"]
    do(typed, fixes(typed, pack)[0])
    finish(engine, pack)
    assert engine.tasks.get(at(engine, run, "build.1")).status == "done"


def test_a_step_that_asks_after_its_values_were_missing_waits_for_no_time(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    asks = '{id: two, agent: d, prompt: "{{ steps.one.x }}", on_failure: ask}'
    run = begin(typed, tmp_path, FLAT.replace('{id: two, agent: d, prompt: "two"}', asks))
    one, two = at(engine, run, "one"), at(engine, run, "two")
    finish(engine, one, {"y": 1})
    assert "its time comes" not in typed.ok("why", two) + typed.ok("why", run)
    for each in (run, two):
        assert fixes(typed, each) == [f"holdfast retry {run} --from one"]
    do(typed, fixes(typed, run)[0])
    finish(engine, one, {"x": 1})
    finish(engine, two)


def test_a_task_that_waits_for_one_outside_the_queue_says_to_put_that_one_there(
    engine: Engine, typed: Typed
) -> None:
    first = create(engine, "first", enqueue=False)
    then = create(engine, "then", needs=(first,))
    assert fixes(typed, then) == [f"holdfast task enqueue {first}"]
    do(typed, fixes(typed, then)[0])
    assert fixes(typed, then) == []
    finish(engine, first)
    finish(engine, then)


def test_an_approval_that_was_paused_alone_needs_no_more_than_the_word(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    run = begin(typed, tmp_path, "name: w\nsteps: [{id: ok, approval: Go on?}]\n")
    ok = at(engine, run, "ok")
    typed.ok("pause", ok)
    for each in (run, ok):
        assert fixes(typed, each) == [f"holdfast approve {ok}"]
    do(typed, fixes(typed, run)[0])
    assert engine.runs.get(run).status == "completed"


def test_an_approval_that_was_reset_needs_no_more_than_the_word(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    run = begin(typed, tmp_path, "name: w\nsteps: [{id: ok, approval: Go on?}]\n")
    ok = at(engine, run, "ok")
    typed.ok("task", "reset", ok)
    for each in (run, ok):
        assert fixes(typed, each) == [f"holdfast approve {ok}"]
    do(typed, fixes(typed, run)[0])
    assert engine.runs.get(run).status == "completed"


def test_a_plan_around_a_plan_without_children_says_to_add_some(
    engine: Engine, typed: Typed
) -> None:
    top = create(engine, "top", enqueue=False)
    typed.ok("plan", "start", top)
    inner = typed.json("plan", "add", top, "inner")["id"]
    typed.ok("plan", "start", inner)
    typed.ok("plan", "add", top, "later")
    typed.ok("plan", "finalize", top)
    for each in (top, inner):
        assert fixes(typed, each) == [f"holdfast plan add {inner} '<title>'"]
    do(typed, fixes(typed, top)[0].replace("<title>", "Dig"))
    for each in (top, inner):
        assert fixes(typed, each) == [f"holdfast plan finalize {inner}"]
    do(typed, fixes(typed, top)[0])


def test_show_says_how_to_put_a_step_back_in_the_queue(engine: Engine, typed: Typed) -> None:
    run = start(engine)
    plan = run.steps["plan"]
    typed.ok("task", "reset", plan)
    assert typed.ok("show", run.id).splitlines()[1:3] == [
        "○ plan  idle",
        f"  └ holdfast task enqueue {plan}",
    ]


def test_an_approval_of_a_run_without_a_slot_or_budget_is_shown_with_what_comes_first(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    first = begin(typed, tmp_path, GATE)
    second = begin(typed, tmp_path, GATE)
    waiting = at(engine, second, "ok")
    typed.refused(1, "approve", waiting)
    early = f"holdfast approve {waiting}   (when it is held no more: `holdfast why {second}`)"
    assert f"└ {early}\n" in typed.ok("show", second)
    typed.ok("cancel", first)
    assert f"└ holdfast approve {waiting}\n" in typed.ok("show", second)
    claim = take(engine, at(engine, second, "make"))
    assert engine.work.complete(claim.task_id, claim.token, {}, usage={"usd": 2}).ok
    typed.refused(1, "approve", waiting)
    raised = f"holdfast resume {second} --add-usd 2"
    late = f"holdfast approve {waiting}   (after `{raised}`)"
    assert f"└ {late}\n" in typed.ok("show", second)
    followed = typed("show", second, "--follow")
    assert (followed.code, followed.err) == (4, f"needs you: {raised}\nneeds you: {late}\n")
    do(typed, raised)
    typed.ok("approve", waiting)


def test_a_run_that_waits_for_its_turn_asks_nothing_of_a_person_yet(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    begin(typed, tmp_path, GATE)
    queries = Queries(engine.database.view, lambda: engine)
    second = begin(typed, tmp_path, GATE)
    assert exit_code_of_run(queries.run(second)) is None
    typed.ok("pause", second)
    assert exit_code_of_run(queries.run(second)) == NEEDS_PERSON


def test_a_task_that_counts_no_more_says_so_and_names_the_task_in_its_place(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    run = begin(typed, tmp_path, LOOP, "-i", 'list=["a", "b"]')
    places = ("build.1", "build.1.make")
    old = {place: at(engine, run, place) for place in places}
    typed.ok("retry", run, "--from", "build")
    asked = (
        ("retry",),
        ("retry", "--again"),
        ("task", "reset"),
        ("task", "run-now"),
        ("task", "enqueue"),
        ("resume",),
    )
    for place, task in old.items():
        new = at(engine, run, place)
        look = f"holdfast why {new}"
        over = "it was made in an epoch that is over, and counts no more; "
        over += f"{run}:{place} {new} (queued) stands in its place"
        assert f"✗ status   {over}" in typed.ok("why", task)
        assert (fixes(typed, task), typed.json("why", task)["looks"]) == ([], [look])
        do(typed, look)
        for verb in asked:
            refused = typed.refused(1, *verb, task)
            assert f"{over}: {look}\n" in refused
            assert refused.endswith(
                (f"next:  holdfast why {task}\n", f"next:  holdfast show {task}\n")
            )
        assert f"{over}: {look}\n" in typed.refused(1, "continue", task, "more")
        cancelled = typed.json("cancel", task)
        assert (cancelled["repeated"], cancelled["task"]["status"]) == (True, "cancelled")


def test_a_task_that_counts_no_more_and_has_no_successor_says_so_alone(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    steps = 'steps:\n  - {id: plan, agent: d, prompt: "plan"}\n  - id: build\n'
    text = LOOP.replace("steps:\n  - id: build\n", steps).replace("input.list", "steps.plan.list")
    run = begin(typed, tmp_path, text)
    finish(engine, at(engine, run, "plan"), {"list": ["a"]})
    old = at(engine, run, "build.1.make")
    typed.ok("retry", run, "--from", "plan")
    assert fixes(typed, old) == []
    over = "it was made in an epoch that is over, and counts no more\n"
    assert over in typed.ok("why", old)
    assert over in typed.refused(1, "retry", old)


def test_a_retry_of_what_counts_no_more_leaves_a_failed_run_as_it_is(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    run = begin(typed, tmp_path, LOOP, "-i", 'list=["a"]')
    old = at(engine, run, "build.1.make")
    typed.ok("retry", run, "--from", "build")
    break_for_good(engine, at(engine, run, "build.1.make"))
    assert "counts no more" in typed.refused(1, "retry", old)
    assert engine.runs.get(run).status == "failed"


LACKS = {
    "prompt": '{id: b, agent: d, prompt: "{{ steps.a.x }}"}',
    "approval": '{id: b, approval: "{{ steps.a.x }} ok?"}',
    "condition": '{id: b, agent: d, prompt: b, when: "{{ steps.a.x }}"}',
    "list": '{id: b, for_each: "{{ steps.a.x }}", steps: [{id: m, agent: d, prompt: m}]}',
    "no list": '{id: b, for_each: "{{ steps.a.y }}", steps: [{id: m, agent: d, prompt: m}]}',
    "within": '{id: b, agent: d, prompt: "{{ steps.a.y.z }}"}',
    "subject": '{id: b, agent: d, verifies: a, prompt: "{{ subject.x }}"}',
    "call": '{id: b, workflow: kid, input: {n: "{{ steps.a.x }}"}}',
}
GIVES = "name: {}\nagents: {{d: {{external: true}}}}\nsteps:\n"
FIRST = '  - {id: a, agent: d, prompt: "a"}\n'


@pytest.mark.parametrize("lacks", LACKS)
def test_a_step_that_lacks_the_value_of_another_is_tried_again_from_that_other_step(
    engine: Engine, typed: Typed, tmp_path: Path, lacks: str
) -> None:
    (tmp_path / "kid.yaml").write_text(GIVES.format("kid") + FIRST)
    last = '  - {id: c, agent: d, prompt: "c"}\n'
    run = begin(typed, tmp_path, f"{GIVES.format('w')}{FIRST}  - {LACKS[lacks]}\n{last}")
    a, b, c = (at(engine, run, step) for step in ("a", "b", "c"))
    finish(engine, a, {"y": "text"})
    assert engine.runs.get(run).status == "failed"
    again = typed("retry", run)
    assert again.code == 1
    assert "is failed" in again.out
    assert "It failed again at once: " in again.err
    assert again.err.endswith(f"next:  holdfast why {run}\n")
    assert typed("retry", b, "--json").code == 1
    for each in (run, b, c):
        assert fixes(typed, each) == [f"holdfast retry {run} --from a"]
    do(typed, fixes(typed, run)[0])
    finish(engine, a, {"x": ["one"], "y": {"z": "text"} if lacks == "within" else ["one"]})
    assert engine.runs.get(run).status == "running"
    assert engine.tasks.get(b).status in {"queued", "done"}


def test_a_step_that_lacks_a_value_in_an_item_is_tried_again_from_the_step_of_that_item(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    text = LOOP.replace("pack {{ item }}", "pack {{ steps.make.x }}")
    run = begin(typed, tmp_path, text, "-i", 'list=["a"]')
    finish(engine, at(engine, run, "build.1.make"), {})
    pack = at(engine, run, "build.1.pack")
    for each in (run, pack):
        assert fixes(typed, each) == [f"holdfast retry {run} --from build.1.make"]
    do(typed, fixes(typed, pack)[0])
    finish(engine, at(engine, run, "build.1.make"), {"x": 1})
    finish(engine, pack)
    assert engine.runs.get(run).status == "completed"


def test_a_step_that_lacks_a_value_in_a_called_run_is_tried_again_from_the_call(
    engine: Engine, typed: Typed, tmp_path: Path
) -> None:
    lacks = f"  - {LACKS['prompt']}\n"
    (tmp_path / "kid.yaml").write_text(GIVES.format("kid") + FIRST + lacks)
    run = begin(typed, tmp_path, GIVES.format("w") + "  - {id: call, workflow: kid}\n")
    kid = str(engine.runs.task(run, "call").waits_for)
    finish(engine, at(engine, kid, "a"), {})
    assert engine.runs.get(run).status == "failed"
    b = at(engine, kid, "b")
    for each in (run, at(engine, run, "call"), kid, b):
        assert fixes(typed, each) == [f"holdfast retry {run} --from call"]
    do(typed, fixes(typed, b)[0])
    anew = str(engine.runs.task(run, "call").waits_for)
    assert anew != kid
    finish(engine, at(engine, anew, "a"), {"x": 1})
    finish(engine, at(engine, anew, "b"))
    assert engine.runs.get(run).status == "completed"
