"""Single tasks and plans by the command line."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from holdfast.engine.engine import Engine
from tests.contract.cli.command_line import Typed
from tests.contract.task_states import create, finish, start, take

GREET = """
name: greet
input: {name: string, loud: {type: boolean, default: false}}
agents: {writer: {external: true}}
steps: [{id: write, agent: writer, prompt: "Greet {{ input.name }}"}]
"""


def test_a_task_is_added_with_all_its_fields(engine: Engine, typed: Typed) -> None:
    need = create(engine, "first")
    told = typed.json(
        *("task", "add", "Tidy the shed", "--agent", "developer", "--payload", '{"shed": 1}'),
        *("--needs", need, "--priority", "5", "--tag", "gpu", "--tag", "eu", "--key", "shed"),
        *("--max-attempts", "7", "--max-lost", "2", "--timeout", "2m", "--at", "10m"),
    )
    assert told["created"]
    task = engine.tasks.get(told["id"])
    assert (task.title, task.agent, task.payload) == ("Tidy the shed", "developer", {"shed": 1})
    assert (task.priority, task.tags, task.key) == (5, ("eu", "gpu"), "shed")
    assert (task.retry.max_attempts, task.retry.max_lost, task.timeout) == (7, 2, 120.0)
    assert not task.due
    assert told["blocked_by"] == [need]


def test_the_same_key_is_the_same_task_and_other_arguments_are_refused(
    engine: Engine, typed: Typed
) -> None:
    first = typed.json("task", "add", "once", "--key", "k")
    again = typed.json("task", "add", "once", "--key", "k")
    assert (again["id"], again["created"]) == (first["id"], False)
    assert "already exists, and is ready" in typed.ok("task", "add", "once", "--key", "k")
    other = ("twice", "--priority", "3", "--max-attempts", "9", "--at", "1h", "--key", "k")
    assert typed.json("task", "add", *other) == again
    told = typed.refused(2, "task", "add", "once", "--payload", '{"a": 1}', "--key", "k")
    assert told.endswith(f"next:  holdfast show {first['id']}\n")
    assert len(engine.tasks.list()) == 1


def test_a_task_goes_in_the_queue_first_in_line_back_and_away(engine: Engine, typed: Typed) -> None:
    lone = typed.json("task", "add", "lone", "--no-enqueue")["id"]
    assert typed.ok("task", "enqueue", lone) == f"lone {lone} is ready\n"
    typed.ok("task", "run-now", lone)
    assert engine.tasks.get(lone).run_now
    assert typed.ok("task", "reset", lone) == f"lone {lone} is idle\n"
    assert typed.ok("task", "delete", lone) == f"{lone} is deleted\n"
    typed.refused(2, "show", lone)
    needed = create(engine)
    create(engine, needs=(needed,))
    told = typed.refused(1, "task", "delete", needed)
    assert "needed_by_others): other tasks need it or belong to it" in told


def test_an_edit_changes_what_was_given_and_only_at_its_version(
    engine: Engine, typed: Typed
) -> None:
    lone = create(engine, "lone")
    told = typed.json("task", "edit", lone, "--title", "both", "--priority", "3", "--version", "1")
    assert (told["task"]["title"], told["task"]["priority"]) == ("both", 3)
    told = typed.refused(1, "task", "edit", lone, "--title", "third", "--version", "1")
    assert "version_conflict): it is at version 2, not 1" in told
    assert f"next:  holdfast show {lone} --json" in told
    assert "nothing to change was given" in typed.refused(2, "task", "edit", lone)
    finish(engine, lone)
    assert "invalid_transition" in typed.refused(1, "task", "edit", lone, "--title", "late")


def test_a_plan_is_made_of_prompts_keys_and_needs_and_put_in_another_order(
    engine: Engine, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = typed.json("task", "add", "shed", "--no-enqueue", "--agent", "dev")["id"]
    typed.ok("plan", "start", plan)
    walls = typed.json("plan", "add", plan, "walls", "--key", "walls", "--prompt", "Build walls.")
    assert (walls["payload"], walls["key"]) == ({"prompt": "Build walls."}, "walls")
    again = typed.json("plan", "add", plan, "walls", "--key", "walls", "--prompt", "Build walls.")
    assert (again["id"], again["created"]) == (walls["id"], False)
    monkeypatch.setattr("sys.stdin", io.StringIO("Build a\nroof."))
    roof = typed.json("plan", "add", plan, "roof", "--needs", "walls", "--prompt", "-")
    assert (roof["payload"], roof["blocked_by"]) == ({"prompt": "Build a\nroof."}, [walls["id"]])
    paint = typed.json("plan", "add", plan, "paint", "--payload", '{"colour": "red"}')
    typed.ok("plan", "reorder", plan, paint["id"], "walls", roof["id"])
    titles = [task.title for task in engine.tasks.children(plan)]
    assert titles == ["paint", "walls", "roof"]
    for wrong, reason in (
        (("plan", "reorder", plan, "walls"), "name every child of the plan"),
        (("plan", "reorder", plan, "wals"), "order: 'wals' is the key of no task"),
        (("plan", "add", plan, "x", "--needs", "rof"), "needs: 'rof' is the key of no task"),
        (("plan", "add", plan, "x", "--prompt", " "), "prompt: is empty; say what is to be done"),
        (
            ("plan", "add", plan, "x", "--prompt", "a", "--payload", "[1]"),
            "payload: must be an object beside a prompt, not list",
        ),
        (
            ("plan", "add", plan, "x", "--prompt", "a", "--payload", '{"prompt": "b"}'),
            "payload: has another prompt in it",
        ),
    ):
        assert reason in typed.refused(2, *wrong)
    typed.ok("task", "edit", walls["id"], "--prompt", "Build four walls.")
    assert engine.tasks.get(walls["id"]).payload == {"prompt": "Build four walls."}
    typed.ok("plan", "finalize", plan, "--graph", "walls:", "--graph", f"{roof['id']}:walls")
    assert engine.tasks.get(walls["id"]).state == "ready"
    assert typed.json("show", roof["id"])["blocked_by"] == [walls["id"]]


def test_a_child_is_only_added_to_a_plan_and_is_for_its_agent(typed: Typed) -> None:
    plan = typed.json("task", "add", "feature", "--no-enqueue", "--agent", "developer")["id"]
    told = typed.refused(2, "plan", "add", plan, "first")
    begin = f"holdfast plan start {plan}"
    assert f"{plan} is no plan, and nothing would start a part of it; {begin}" in told
    assert typed.json("tasks", "--parent", plan)["items"] == []
    typed.ok(*begin.split()[1:])
    assert typed.json("plan", "add", plan, "first")["agent"] == "developer"
    assert "default: the plan's" in " ".join(typed.ok("plan", "add", "--help").split())


def test_a_plan_is_made_of_children_that_follow_each_other(engine: Engine, typed: Typed) -> None:
    plan = typed.json("task", "add", "feature", "--no-enqueue", "--agent", "developer")["id"]
    typed.ok("plan", "start", plan)
    first = typed.json("plan", "add", plan, "first")
    second = typed.json("plan", "add", plan, "second", "--agent", "reviewer")
    assert (first["agent"], second["agent"]) == ("developer", "reviewer")
    assert (first["position"], second["position"], second["status"]) == (0, 1, "idle")
    would = typed.ok("plan", "finalize", plan, "--dry-run")
    assert would.startswith(f"would plan finalize {plan}: 2 tasks")
    assert engine.tasks.get(first["id"]).status == "idle"
    assert typed.json("plan", "finalize", plan)["task"]["state"] == "in progress 0/2"
    assert typed.json("show", second["id"])["blocked_by"] == [first["id"]]
    told = typed.refused(1, "plan", "start", plan)
    assert "invalid_transition" in told


def test_a_child_of_a_plan_is_put_where_it_is_said(engine: Engine, typed: Typed) -> None:
    plan = typed.json("task", "add", "feature", "--no-enqueue")["id"]
    typed.ok("plan", "start", plan)
    places = {"first": ("5",), "second": (), "zero": ("0",), "front": ("-1",), "last": ()}
    for title, place in places.items():
        typed.ok("plan", "add", plan, title, *(["--position", *place] if place else []))
    shown = [each.title for each in engine.tasks.children(plan)]
    assert shown == ["front", "zero", "first", "second", "last"]


def test_a_plan_may_be_a_graph(engine: Engine, typed: Typed) -> None:
    plan = typed.json("task", "add", "feature", "--no-enqueue")["id"]
    typed.ok("plan", "start", plan)
    ids = [typed.json("plan", "add", plan, title)["id"] for title in ("a", "b", "c")]
    graph = (f"{ids[2]}:{ids[0]},{ids[1]}",)
    typed.ok("plan", "finalize", plan, "--graph", *graph)
    assert [engine.tasks.get(each).blocked for each in ids] == [False, False, True]


def test_keys_with_colons_are_put_in_quotes_in_a_graph(typed: Typed) -> None:
    plan = typed.json("task", "add", "feature", "--no-enqueue")["id"]
    typed.ok("plan", "start", plan)
    keys = ("order:7:pay", 'say "go", now', "ship")
    ids = [typed.json("plan", "add", plan, each, "--key", each)["id"] for each in keys]
    pay, go, ship = '"order:7:pay"', r'"say \"go\", now"', "ship"
    told = typed.refused(2, "plan", "finalize", plan, "--graph", "order:7:pay:ship")
    assert (
        """put keys with colons or commas in double quotes, as in --graph '"x:2":"x:1"'""" in told
    )
    graph = (f"{ship}:{pay},{go}", f"{go}:{pay}", f"{pay}:")
    links = [word for each in graph for word in ("--graph", each)]
    would = typed.ok("plan", "finalize", plan, *links, "--dry-run")
    assert f"--graph '{graph[0]}'" in would
    typed.ok("plan", "finalize", plan, *links)
    waiting = [typed.json("show", each).get("blocked_by", []) for each in ids]
    assert waiting == [[], ids[:1], ids[:2]]


def test_the_needs_of_a_child_may_be_told_in_parts_and_must_be_told(
    engine: Engine, typed: Typed
) -> None:
    plan = typed.json("task", "add", "feature", "--no-enqueue")["id"]
    typed.ok("plan", "start", plan)
    a, b, c = [typed.json("plan", "add", plan, title)["id"] for title in ("a", "b", "c")]
    for dry in ([], ["--dry-run"]):
        told = typed.refused(2, "plan", "finalize", plan, "--graph", f"{c}:{a}", "--graph", b, *dry)
        assert f"graph: '{b}' does not say what it needs: write CHILD:NEED" in told
        assert f"`{b}:` for a child that needs nothing" in told
    assert engine.tasks.get(plan).planning_phase == "active"
    graph = [part for need in (f"{c}:{a}", f"{c}:{b}", f"{b}:") for part in ("--graph", need)]
    typed.ok("plan", "finalize", plan, *graph)
    assert typed.json("show", c)["blocked_by"] == [a, b]
    assert [engine.tasks.get(each).blocked for each in (a, b)] == [False, False]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--payload", "{bad"], "payload: is not JSON"),
        (["--payload", "NaN"], "payload: is not JSON (NaN is not a number that JSON can hold)"),
        (["--payload", "[1e999]"], "payload: is not JSON (1e999 is not a number"),
        (["--at", "soon"], "scheduled_for: 'soon' is not a time; write a time such as 2030-"),
        (["--at", "2000-01-01"], "is before 2001"),
        (["--at", "0001-01-01"], "scheduled_for: "),
        (["--timeout", "²"], "timeout: '²' is not a duration"),
        (["--timeout", "9" * 400], "timeout: "),
        (["--timeout", "never"], "timeout: 'never' is not a duration"),
        (["--needs", "t_7zzz"], "there is no such task"),
        (["--agent", "no such name"], "agent: 'no such name' is not a name"),
        (["--max-attempts", "0"], "max_attempts: must be between"),
        (["--key", "schedule:x"], "key: keys that begin with 'schedule:'"),
    ],
)
def test_bad_fields_are_refused_and_nothing_is_made(
    engine: Engine, typed: Typed, arguments: list[str], said: str
) -> None:
    assert said in typed.refused(2, "task", "add", "x", *arguments)
    assert engine.tasks.list() == []


def test_a_task_is_linked_to_another_and_let_go(engine: Engine, typed: Typed) -> None:
    first, second, third = (create(engine, name) for name in ("first", "second", "third"))
    told = typed.json("task", "block", third, "--needs", first, "--needs", second)["task"]
    assert told["blocked_by"] == [first, second]
    assert "third" in typed.ok("task", "unblock", third, "--needs", first)
    assert typed.json("show", third)["blocked_by"] == [second]
    assert f"third {third} is ready" in typed.ok("task", "unblock", third)
    assert typed.ok("task", "block", third, "--needs", second) == f"third {third} is blocked\n"


def test_the_order_of_a_workflow_is_kept_and_a_link_asked_for_twice_is_as_before(
    engine: Engine, typed: Typed
) -> None:
    run, second = start(engine), create(engine, "second", needs=(create(engine, "first"),))
    plan, work = run.steps["plan"], run.steps["work"]
    for more in ((), ("--needs", plan)):
        kept = typed.refused(1, "task", "unblock", work, *more)
        assert f"its workflow has it wait for plan {plan}; holdfast why {plan} says how" in kept
    assert typed.ok("task", "block", work, "--needs", plan).endswith("is blocked (as before)\n")
    assert typed.json("task", "unblock", second)["repeated"] is False
    assert typed.json("task", "unblock", second)["repeated"] is True


def test_a_link_that_cannot_be_says_why(engine: Engine, typed: Typed) -> None:
    first, second = create(engine, "first"), create(engine, "second")
    typed.ok("task", "block", second, "--needs", first)
    circle = typed.refused(2, "task", "block", first, "--needs", second)
    assert f"needs: {first} would need itself through {second}: that is a cycle" in circle
    assert "would need itself" in typed.refused(2, "task", "block", first, "--needs", first)
    assert "no such task" in typed.refused(2, "task", "block", first, "--needs", "t_zzz")
    assert "needs: is missing" in typed.refused(2, "task", "block", first)
    apart = start(engine)
    other = typed.refused(2, "task", "block", first, "--needs", apart.steps["plan"])
    assert "belongs to another run" in other
    kept = typed.refused(1, "task", "delete", first)
    assert f"second {second}; holdfast task unblock {second} --needs {first} lets it go" in kept
    token = take(engine, first).token
    running = typed.refused(1, "task", "block", first, "--needs", create(engine))
    assert "invalid_transition): it has begun, and waits for nothing more" in running
    assert engine.work.complete(first, token).ok
    for words in (("block", first, "--needs", create(engine)), ("unblock", first)):
        ended = typed.refused(1, "task", *words)
        assert "invalid_transition): it has ended done, and waits for nothing" in ended


def test_a_part_may_be_a_run_of_a_workflow(engine: Engine, typed: Typed, tmp_path: Path) -> None:
    (tmp_path / "greet.yaml").write_text(GREET)
    typed.refused(2, "task", "add", "x", "--workflow", "greet.yaml", "-i", "nam=Ada")
    assert typed.json("workflow", "list")["items"] == []
    typed.ok("workflow", "add", "greet.yaml")
    plan = typed.json("task", "add", "morning", "--no-enqueue")["id"]
    typed.ok("plan", "start", plan)
    call = ("--workflow", "greet", "-i", "name=Ada")
    by_file = typed.json("task", "add", "x", "--workflow", "greet.yaml", "-i", "name=5")
    assert (by_file["calls"], by_file["payload"]["name"]) == ("greet", "5")
    part = typed.json("plan", "add", plan, "greet", *call)
    assert (part["kind"], part["payload"]) == ("group", {"name": "Ada", "loud": False})
    typed.ok("plan", "finalize", plan)
    run = engine.tasks.get(part["id"]).waits_for
    assert engine.runs.get(str(run)).input == {"name": "Ada", "loud": False}
    assert f"it ends with greet {run} (running)" in typed.ok("why", part["id"])
    assert f"called by {part['id']}" in typed.ok("show", str(run))
    for wrong, reason in (
        (("--workflow", "great"), "did you mean 'greet'?"),
        (("--workflow", "greet", "-i", "nam=Ada"), "nam"),
        (("-i", "name=Ada"), "is that of a workflow; name it in 'workflow' besides"),
        ((*call, "--prompt", "x"), "prompt: is not for a task that is a run"),
        ((*call, "--tag", "gpu"), "tags: is not for a task that is a run of a workflow"),
    ):
        assert reason in typed.refused(2, "task", "add", "x", *wrong)
