"""One command for all runs that fit: what it changes, what it leaves, and where it goes on."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput, NotFound
from holdfast.model.filters import RunFilters
from holdfast.model.run import NewRun
from holdfast.model.workflow.graph import Workflow
from holdfast.service.commands import bulk_changes
from holdfast.service.commands.bulk_changes import BulkCommands, BulkRegistry, BulkVerb
from holdfast.service.queries.queries import Queries
from tests.contract.task_states import CHAIN, FORK, break_for_good, start
from tests.engines import opened

SEVEN = RunFilters(labels={"customer": "7"})


@pytest.fixture
def bulk(engine: Engine) -> BulkCommands:
    return BulkCommands(engine, Queries(engine.database.view, lambda: engine), "ada")


def begin(engine: Engine, customer: int = 7, workflow: Workflow = CHAIN, **more: Any) -> str:
    labels = {"customer": str(customer)}
    return engine.runs.start(NewRun(workflow=workflow, labels=labels, **more)).id


def statuses(engine: Engine) -> dict[str, str]:
    return {run.id: str(run.status) for run in engine.runs.list()}


def counts(told: dict[str, Any]) -> tuple[int, int, int, int]:
    return told["matched"], told["changed"], told["unchanged"], told["refused"]


def test_a_preview_tells_how_many_and_which_and_changes_nothing(
    engine: Engine, bulk: BulkCommands
) -> None:
    runs = [begin(engine, key=f"k{n}") for n in range(12)]
    begin(engine, customer=8)
    before = statuses(engine)
    told = bulk.preview("cancel", SEVEN)
    assert (told["dry_run"], told["matched"]) == (True, 12)
    assert [each["id"] for each in told["examples"]] == runs[:1:-1]
    assert told["examples"][0]["labels"] == {"customer": "7"}
    assert statuses(engine) == before


def test_all_that_fit_are_cancelled_by_their_actor_and_no_others(
    engine: Engine, bulk: BulkCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_changes, "RUNS_AT_ONCE", 2)
    runs = [begin(engine) for _ in range(5)]
    other, done = begin(engine, customer=8), start(engine)
    done.finish("plan", "work", "review")
    heard: list[int] = []
    told = bulk.prepare("cancel", SEVEN).carry_out(lambda view: heard.append(view["changed"]))
    assert (told["state"], counts(told), heard) == ("done", (5, 5, 0, 0), [2, 4, 5])
    expected = dict.fromkeys(runs, "cancelled") | {other: "running", done.id: "completed"}
    assert statuses(engine) == expected
    last = {engine.runs.events(run)[-1].actor for run in runs}
    assert last == {"ada"}
    again = bulk.prepare("cancel", SEVEN).carry_out()
    assert counts(again) == (0, 0, 0, 0)


def test_runs_are_paused_and_resumed(engine: Engine, bulk: BulkCommands) -> None:
    first, second = begin(engine), begin(engine, workflow=FORK)
    later = begin(engine, scheduled_for="2h")
    assert engine.runs.pause(first).ok
    assert counts(bulk.prepare("pause", SEVEN).carry_out()) == (3, 2, 1, 0)
    assert bulk.preview("resume", SEVEN)["matched"] == 3
    assert counts(bulk.prepare("resume", SEVEN).carry_out()) == (3, 3, 0, 0)
    holds = {run: list(engine.runs.get(run).holds.names) for run in (first, second, later)}
    assert holds == {first: [], second: [], later: ["scheduled"]}
    assert counts(bulk.prepare("resume", SEVEN).carry_out()) == (0, 0, 0, 0)


def test_failed_runs_are_retried_and_cancelled_ones_where_that_is_said(
    engine: Engine, bulk: BulkCommands
) -> None:
    failed, cancelled = start(engine), begin(engine)
    break_for_good(engine, failed.steps["plan"])
    assert engine.runs.cancel(cancelled).ok
    everything = RunFilters()
    assert counts(bulk.prepare("retry", everything, everything=True).carry_out())[:2] == (1, 1)
    assert statuses(engine) == {failed.id: "running", cancelled: "cancelled"}
    assert counts(bulk.prepare("retry", RunFilters(status="cancelled")).carry_out())[:2] == (1, 1)
    assert set(statuses(engine).values()) == {"running"}


def test_what_was_not_reached_is_not_done_and_the_same_call_goes_on(
    engine: Engine, bulk: BulkCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_changes, "RUNS_AT_ONCE", 2)
    for _ in range(5):
        begin(engine)
    change = bulk.prepare("cancel", SEVEN)
    told = change.carry_out(lambda _: change.stop())
    assert (told["state"], counts(told)) == ("stopped", (5, 2, 0, 0))
    assert sorted(statuses(engine).values()) == ["cancelled"] * 2 + ["running"] * 3
    assert counts(bulk.prepare("cancel", SEVEN).carry_out()) == (3, 3, 0, 0)


def test_a_run_that_ends_or_starts_meanwhile_is_left_and_told(
    engine: Engine, bulk: BulkCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_changes, "RUNS_AT_ONCE", 2)
    oldest, *_ = [begin(engine) for _ in range(4)]
    late: list[str] = []

    def meanwhile(_: object) -> None:
        """Others write between two sets: nothing is locked from one to the next."""
        if not late:
            late.append(begin(engine))
            assert engine.runs.cancel(oldest).ok

    told = bulk.prepare("pause", SEVEN).carry_out(meanwhile)
    assert counts(told) == (4, 3, 0, 0)
    assert not engine.runs.get(late[0]).holds


def test_a_refusal_is_told_with_the_run_and_the_others_are_changed(
    engine: Engine, bulk: BulkCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_changes, "TASKS_AT_ONCE", 1)
    first, second = begin(engine), begin(engine)

    def meanwhile(_: object) -> None:
        engine.runs.cancel(first)

    told = bulk.prepare("pause", SEVEN).carry_out(meanwhile)
    assert counts(told) == (2, 1, 0, 1)
    (refusal,) = told["refusals"]
    assert (refusal["id"], refusal["code"]) == (first, "already_terminal")
    assert engine.runs.get(second).holds


def test_a_set_has_few_tasks_or_one_run(
    engine: Engine, bulk: BulkCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_changes, "TASKS_AT_ONCE", 7)
    for _ in range(5):
        begin(engine)
    heard: list[int] = []
    bulk.prepare("cancel", SEVEN).carry_out(lambda view: heard.append(view["changed"]))
    assert heard == [2, 4, 5]
    monkeypatch.setattr(bulk_changes, "TASKS_AT_ONCE", 1)
    begin(engine), begin(engine)
    heard.clear()
    bulk.prepare("cancel", SEVEN).carry_out(lambda view: heard.append(view["changed"]))
    assert heard == [1, 2]


def test_a_change_that_fails_on_the_way_says_so(
    engine: Engine, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_changes, "RUNS_AT_ONCE", 1)
    runs = [begin(engine), begin(engine)]
    with opened(store_url) as other:
        other.commits.start()
        bulk = BulkCommands(other, Queries(other.database.view, lambda: other))
        told = bulk.prepare("cancel", SEVEN).carry_out(lambda _: other.close())
    assert (told["state"], counts(told)) == ("failed", (2, 1, 0, 0))
    assert told["error"]
    assert statuses(engine) == {runs[0]: "running", runs[1]: "cancelled"}


@pytest.mark.parametrize(
    ("verb", "filters", "field"),
    [
        ("cancel", {}, "all"),
        ("cancel", {"status": "failed"}, "status"),
        ("retry", {"status": "running"}, "status"),
        ("resume", {"held": "budget"}, "held"),
        ("cancel", {"since": "soon"}, "since"),
        ("cancel", {"labels": {"a": ""}}, r"labels\.a"),
    ],
)
def test_a_call_that_chooses_nothing_or_what_cannot_be_changed_is_refused(
    bulk: BulkCommands, verb: BulkVerb, filters: RunFilters, field: str
) -> None:
    for ask in (bulk.preview, bulk.prepare):
        with pytest.raises(InvalidInput, match=f"^{field}: "):
            ask(verb, filters)


def test_a_registry_keeps_the_last_and_takes_so_many_at_once(
    bulk: BulkCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_changes, "MAX_KEPT", 2)
    monkeypatch.setattr(bulk_changes, "MAX_UNDER_WAY", 2)
    registry = BulkRegistry()
    first, second, third, fourth = [bulk.prepare("cancel", SEVEN) for _ in range(4)]
    assert [registry.add(each) for each in (first, second, third)] == [True, True, False]
    first.carry_out()
    assert [registry.add(each) for each in (third, fourth)] == [True, False]
    assert [each["id"] for each in registry.list()] == [third.id, second.id]
    with pytest.raises(NotFound, match="the same call goes on"):
        registry.get(first.id)
    registry.close()
    assert registry.get(second.id).carry_out()["state"] in {"done", "stopped"}
    assert not registry.add(fourth)
