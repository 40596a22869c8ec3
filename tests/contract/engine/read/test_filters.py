"""Labels, and the filters by which runs and tasks are found among others."""

from __future__ import annotations

import re
from typing import Any

import pytest

from holdfast.engine.engine import Engine
from holdfast.engine.read import pages
from holdfast.errors import InvalidInput
from holdfast.model.run import NewRun
from holdfast.model.status import Status
from holdfast.model.task import NewTask
from holdfast.model.workflow.declarations import WorkflowDeclarations
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.raw_store import raw
from tests.contract.task_states import CHAIN, FORK, bring, create, start, take

LABELLED = Workflow.define(
    "letters",
    (Step(id="write", agent="writer"),),
    declared=WorkflowDeclarations(
        labels={"customer": "{{ input.customer }}", "kind": "letter", "size": "{{ input.size }}"}
    ),
)


def begin(engine: Engine, workflow: Workflow = CHAIN, **more: Any) -> str:
    return engine.runs.start(NewRun(workflow=workflow, **more)).id


def found(engine: Engine, **filters: Any) -> list[str]:
    """The runs that fit; their counts say the same."""
    runs = engine.runs.list(**filters)
    counted = {name: number for name, number in engine.runs.counts(**filters).items() if number}
    assert counted == {
        status: sum(each.status == status for each in runs)
        for status in {str(each.status) for each in runs}
    }
    return [each.id for each in runs]


def test_a_run_has_the_labels_of_its_start(engine: Engine) -> None:
    run = begin(engine, labels={"env": "prod", "customer": 7, "urgent": True, "none": None})
    assert engine.runs.get(run).labels == {"customer": "7", "env": "prod", "urgent": "true"}
    assert engine.runs.get(begin(engine)).labels == {}


def test_a_workflow_file_labels_its_runs_by_their_input(engine: Engine) -> None:
    run = begin(engine, LABELLED, input={"customer": 7, "size": None}, labels={"kind": "bill"})
    assert engine.runs.get(run).labels == {"customer": "7", "kind": "bill"}
    assert found(engine, labels={"customer": "7", "kind": "bill"}) == [run]
    missing = begin(engine, LABELLED, input={})
    assert engine.runs.get(missing).labels == {"kind": "letter"}
    with pytest.raises(InvalidInput, match=r"^labels\.customer: must be a text or a number"):
        begin(engine, LABELLED, input={"customer": ["7"]})


@pytest.mark.parametrize("few", [0, 1_000])
def test_runs_are_found_by_all_of_some_labels(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(pages, "FEW_HOLDERS", few)
    both = begin(engine, labels={"customer": "7", "env": "prod"})
    one = begin(engine, FORK, labels={"customer": "7"})
    begin(engine, labels={"customer": "70", "env": "prod"})
    begin(engine)
    assert found(engine, labels={"customer": "7"}) == [one, both]
    assert found(engine, labels={"env": "prod", "customer": "7"}) == [both]
    assert found(engine, labels={"customer": "7"}, workflow="fork") == [one]
    assert [each.id for each in engine.runs.list(labels={"customer": "7"}, after=one)] == [both]
    assert engine.runs.cancel(one).ok
    assert found(engine, labels={"customer": "7"}, status="cancelled") == [one]
    assert found(engine, labels={"nobody": "7"}) == []


def test_the_same_key_with_other_labels_is_the_same_run_and_task_untouched(engine: Engine) -> None:
    first = begin(engine, key="k", labels={"customer": "7"})
    assert begin(engine, key="k", labels={"customer": "8"}) == first
    task = engine.tasks.create(NewTask(title="a", key="t", labels={"a": "b"})).id
    assert engine.tasks.create(NewTask(title="a", key="t", labels={"a": "c"})).id == task
    assert found(engine, labels={"customer": "8"}) == []
    assert engine.tasks.list(labels={"a": "c"}) == []
    assert [each.id for each in engine.tasks.list(labels={"a": "b"})] == [task]


@pytest.mark.parametrize("few", [0, 1_000])
def test_tasks_are_found_by_their_labels_and_those_of_their_run(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(pages, "FEW_HOLDERS", few)
    run = begin(engine, labels={"customer": "7", "env": "prod"})
    lone = engine.tasks.create(NewTask(title="lone", labels={"customer": "7"})).id
    create(engine)
    listed = engine.tasks.list(labels={"customer": "7"})
    assert {each.id for each in listed} == {lone, *(task.id for task in engine.runs.tasks(run))}
    assert listed == sorted(listed, key=lambda each: each.id, reverse=True)
    assert listed[0].labels in ({"customer": "7"}, {})
    assert [each.step for each in engine.tasks.list(labels={"env": "prod"}, step="plan")] == [
        "plan"
    ]
    assert engine.tasks.list(labels={"env": "prod"}, status="running") == []
    take(engine, lone)
    (taken,) = engine.tasks.list(labels={"customer": "7"}, status="running")
    assert taken.id == lone


def test_labels_go_with_what_they_are_of(engine: Engine, store_url: str) -> None:
    task = engine.tasks.create(NewTask(title="a", labels={"a": "b", "c": "d"})).id
    begin(engine, labels={"a": "b"})
    with raw(store_url) as run:
        assert len(run("SELECT entity FROM holdfast_label")) == 3
        assert engine.tasks.delete(task).ok
        assert len(run("SELECT entity FROM holdfast_label")) == 1


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({"": "a"}, "^labels: "),
        ({"a b": "a"}, "^labels: "),
        ({"a": ""}, r"^labels\.a: "),
        ({"a": " b"}, r"^labels\.a: "),
        ({"a": "b" * 201}, r"^labels\.a: has 201 characters"),
        ({"a": {}}, r"^labels\.a: must be a text or a number, not dict"),
        ({f"a{n}": "b" for n in range(21)}, "^labels: are 21; at most 20"),
    ],
)
def test_bad_labels_are_refused_by_name(engine: Engine, labels: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        begin(engine, labels=labels)
    with pytest.raises(InvalidInput, match=said):
        engine.tasks.create(NewTask(title="a", labels=labels))
    with pytest.raises(InvalidInput, match=said):
        engine.runs.list(labels=labels)


def test_runs_are_found_by_a_step_and_an_agent_of_their_tasks(engine: Engine) -> None:
    chain, fork = begin(engine, CHAIN), begin(engine, FORK)
    letters = begin(engine, LABELLED, input={})
    assert found(engine, step="review") == [chain]
    assert found(engine, agent="writer") == [letters]
    assert found(engine, agent="default") == [fork, chain]
    assert found(engine, agent="writer", step="review") == []


def test_runs_and_tasks_are_found_by_the_text_of_an_error(engine: Engine) -> None:
    run = start(engine)
    token = take(engine, run.steps["plan"]).token
    error = {"message": '100% "WRONG"_é'}
    assert engine.work.fail(run.steps["plan"], token, error, retryable=False).ok
    lone = bring(engine, Status.FAILED).task_id
    for text in ("wrong", '100% "wrong"_', "_é", "%"):
        assert found(engine, error=text) == [run.id], text
        assert run.steps["plan"] in [each.id for each in engine.tasks.list(error=text)]
        assert lone not in [each.id for each in engine.tasks.list(error=text)]
    assert found(engine, error="right") == []
    assert found(engine, error="wrong", status="completed") == []


def test_runs_and_tasks_are_found_by_a_part_of_their_names(engine: Engine) -> None:
    chain, fork = begin(engine, CHAIN, key="Order-7"), begin(engine, FORK)
    assert found(engine, name="hai") == [chain]
    assert found(engine, name="ORDER") == [chain]
    assert found(engine, name="or") == [fork, chain]
    assert found(engine, name="r_er") == []
    task = create(engine, "Tidy the Shed")
    assert [each.id for each in engine.tasks.list(name="the shed")] == [task]
    assert [each.step for each in engine.tasks.list(name="revie")] == ["review"]


def test_runs_and_tasks_are_found_by_the_time_of_their_making(
    engine: Engine, store_url: str
) -> None:
    old, new = begin(engine), begin(engine)
    task = create(engine)
    now = engine.clock.now()
    with raw(store_url) as change:
        change("UPDATE holdfast_run SET created_at = ? WHERE id = ?", now - 600_000_000, old)
    assert found(engine, since="5m") == [new]
    assert found(engine, until="5m") == [old]
    assert found(engine, since=now - 700_000_000) == [new, old]
    assert found(engine, since="20m", until="5m") == [old]
    assert [each.id for each in engine.tasks.list(since="5m", workflow=None)][:1] == [task]
    assert engine.tasks.list(until="5m") == []
    with pytest.raises(InvalidInput, match=r"^since: "):
        engine.runs.list(since="soon")


def test_an_unknown_filter_is_refused(engine: Engine) -> None:
    looks: list[Any] = [engine.runs.list, engine.tasks.list]
    for look in looks:
        with pytest.raises(InvalidInput, match=r"^stauts: is no filter; there are .*status"):
            look(stauts="failed")


def test_counts_are_told_by_status(engine: Engine) -> None:
    for _ in range(2):
        begin(engine)
    done, cancelled = start(engine), begin(engine)
    done.finish("plan", "work", "review")
    assert engine.runs.cancel(cancelled).ok
    assert engine.runs.counts() == {"running": 2, "completed": 1, "cancelled": 1}
    assert engine.runs.counts(workflow="chain", status="running") == {"running": 2}
    assert engine.runs.counts(workflow="fork") == {}


def test_each_filter_of_the_documented_sets_is_taken(engine: Engine) -> None:
    looks: list[Any] = [engine.runs.list, engine.tasks.list]
    for look in looks:
        with pytest.raises(InvalidInput) as refused:
            look(nothing=1)
        names = re.findall(r"[a-z]+", str(refused.value).partition("there are ")[2])
        assert len(names) > 9
        assert look(**dict.fromkeys(names)) == []
