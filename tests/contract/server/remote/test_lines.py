"""Lines of commits through a server: a worker elsewhere is told what one beside the store is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.engine.engine import engine_of
from holdfast.errors import InvalidInput
from holdfast.model.result import Refusal
from holdfast.model.task import Assignment
from holdfast.model.workflow.line import Draft, NewHead
from holdfast.worker.remote.assignment_format import Prefetch
from holdfast.worker.remote.remote_store import RemoteStore
from tests.contract.engine.read.test_step_texts import begin
from tests.contract.engine.state.test_lines import BASE, FLOW, LOOP, TWINS, A, B, C, take
from tests.contract.server.local_server import Served

AROUND = Prefetch(effects={}, needed={}, secrets=frozenset(), trace_id="a" * 32)


@pytest.fixture
def far(quick_server: Served) -> Iterator[RemoteStore]:
    store = RemoteStore(quick_server.url, quick_server.tokens["worker"])
    yield store
    store.close()


def held_by(far: RemoteStore, assignment: Assignment) -> Assignment:
    """Have the worker elsewhere hold what was claimed beside the store."""
    far._sender.held.add(assignment, AROUND)  # noqa: SLF001 - as its poller does
    return assignment


def tell(far: RemoteStore, report: Any) -> Any:  # noqa: ANN401 - whichever report
    return far._sender.submit(report).result(20)  # noqa: SLF001 - as its reports are sent


def test_a_worker_elsewhere_opens_and_moves_a_line(quick_server: Served, far: RemoteStore) -> None:
    engine = engine_of(quick_server.hf)
    begin(engine, LOOP)
    plan = held_by(far, take(engine))
    unknown = far.work.open_line(plan.task_id, plan.token)
    assert (unknown.answer.ok, unknown.line) == (True, None)
    opened = far.work.open_line(plan.task_id, plan.token, BASE, "/work/shop", "laptop")
    assert opened.line == engine.work.open_line(plan.task_id, plan.token).line
    assert opened.line is not None
    held, reports = far.work.reports.read_token(plan.task_id, plan.token), far.work.reports
    new = NewHead(line=opened.line.id, number=0, base=BASE, sha=A)
    assert tell(far, reports.complete(held, {"stories": ["one"], "commit": A}, commit=new)).ok
    (line,) = far.work.lines_of_host("laptop")
    assert [line] == engine.work.lines_of_host("laptop")
    assert (line.head, line.number) == (A, 1)
    one = held_by(far, take(engine))
    item = far.work.open_line(one.task_id, one.token).line
    assert item == engine.work.open_line(one.task_id, one.token).line
    assert item is not None
    assert item.around is not None
    stale = NewHead(line=item.id, number=3, base=A, sha=B)
    held = reports.read_token(one.task_id, one.token)
    moved = tell(far, reports.complete(held, {}, commit=stale))
    assert (moved.reason, moved.status) == (Refusal.HEAD_MOVED, "running")


def test_drafts_and_what_is_left_are_told_through_a_server(
    quick_server: Served, far: RemoteStore
) -> None:
    engine = engine_of(quick_server.hf)
    begin(engine, TWINS)
    first = held_by(far, take(engine))
    task, reports = first.task_id, far.work.reports
    assert far.work.open_line(task, first.token, BASE).line is not None
    draft = Draft(base=BASE, sha=A)

    def again() -> tuple[Assignment, Any]:
        ((held,)) = engine.work.claim_by_id(task, "me", agents=["dev"])
        held_by(far, held)
        return held, reports.read_token(task, held.token)

    held = reports.read_token(task, first.token)
    assert tell(far, reports.release(held, draft=draft)).ok
    for sha, give in (
        (B, lambda held, draft: reports.ask(held, "which?", draft=draft)),
        (C, lambda held, draft: reports.reach_limit(held, "1h", draft=draft)),
    ):
        assignment, held = again()
        opened = far.work.open_line(task, assignment.token).line
        assert opened is not None
        assert opened.draft == draft
        draft = Draft(base=BASE, sha=sha)
        assert tell(far, give(held, draft)).ok
        engine.tasks.answer(task, "this")
    engine.tasks.lift_limit("dev")
    assignment, held = again()
    aside = far.work.keep_aside(task, assignment.token, 1, BASE, A)
    assert (aside.ok, aside.repeated) == (True, False)
    assert far.work.keep_aside(task, assignment.token, 1, BASE, A).repeated
    left = Draft(base=BASE, sha=B)
    assert tell(far, reports.fail(held, "broken", left=left)).ok
    stale = far.work.open_line(task, assignment.token)
    assert stale.answer.reason is not None
    rows = engine.database.view(lambda tx: tx.read("commits_of_tasks", ids=[task]))
    assert [(row["attempt"], row["kind"], row["sha"]) for row in rows] == [
        (1, "draft", A),
        (1, "left", A),
        (2, "draft", B),
        (3, "draft", C),
        (4, "left", B),
    ]


def test_a_token_of_some_agents_is_refused_rather_than_told_of_no_line(
    quick_server: Served,
) -> None:
    engine = engine_of(quick_server.hf)
    begin(engine, FLOW)
    plan = take(engine)
    assert engine.work.open_line(plan.task_id, plan.token, BASE, "/work/shop", "laptop").line
    made = quick_server().post(
        "/tokens", json={"name": "other", "role": "worker", "agents": ["other"]}
    )
    with quick_server.client(made.json()["token"]) as narrow:
        told = narrow.post("/claims/lines", json={"host": "laptop"})
    assert (told.status_code, told.json()["code"]) == (403, "forbidden")


@pytest.mark.parametrize(
    "lie",
    [
        {"head": "HEAD"},
        {"head": None},
        {"number": -1},
        {"id": 7},
        {"draft": {"base": BASE}},
        {"around": {"line": "x", "number": 1, "sha": "; rm"}},
        {"subject": "--upload-pack=x"},
    ],
)
def test_a_line_that_a_server_makes_up_is_no_line(
    quick_server: Served,
    far: RemoteStore,
    monkeypatch: pytest.MonkeyPatch,
    lie: dict[str, Any],
) -> None:
    engine = engine_of(quick_server.hf)
    begin(engine, TWINS)
    plan = held_by(far, take(engine))
    assert engine.work.open_line(plan.task_id, plan.token, BASE, "/work/shop", "laptop").line
    post = far.client.post

    def lying(path: str, body: dict[str, Any], /, **shape: type) -> dict[str, Any]:
        told = post(path, body, **shape)
        return {**told, "line": {**told["line"], **lie}}

    monkeypatch.setattr(far.client, "post", lying)
    with pytest.raises(InvalidInput, match="line"):
        far.work.open_line(plan.task_id, plan.token)
