"""Lines of commits: opened by attempts, moved by the reports of attempts, each under its fence.

A line has numbered heads. A report that brings a new head is accepted only while the head that its
commit descends from is the newest: otherwise the answer is `head_moved`, and nothing changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from holdfast.engine.core.context import EngineContext
from holdfast.engine.core.operation import Complete, Fail, HeldTask, Report
from holdfast.engine.core.sync_async import operation, reading
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.core.workflow_cache import WorkflowCache
from holdfast.engine.input import validation
from holdfast.engine.read.report_refusals import answer_renewal, answer_report, refuse
from holdfast.engine.read.step_texts import build_known_variables, is_step
from holdfast.model.moment import to_datetime
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.retry import MICROSECONDS
from holdfast.model.text import clean_text
from holdfast.model.workflow.line import (
    Draft,
    Head,
    HostLine,
    LineState,
    OpenedLine,
    clean_sha,
    is_sha,
)
from holdfast.store.database import Row, Transaction

KEPT_SECONDS = 3 * 24 * 60 * 60.0
LONGEST_KEPT = 90 * 24 * 60 * 60
LINES_AT_ONCE = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenLine(Report):
    """Open the line of a task; with a `base` the line of its run begins there, if it is new."""

    base: str | None = None
    repository: str | None = None
    host: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class KeepAside(Report):
    """Record what a former attempt of the task left."""

    former: int
    base: str
    sha: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """The lines that a task stands in: of the run, then of the items around it, outermost first."""

    lines: tuple[str, ...]
    landing: bool

    @property
    def own(self) -> str:
        return self.lines[-1]

    @property
    def around(self) -> str | None:
        return self.lines[-2] if len(self.lines) > 1 else None

    @property
    def moved(self) -> str | None:
        """The line that the task may give a new head."""
        return self.around if self.landing else self.own


def open_line(work: UnitOfWork, report: OpenLine) -> OpenedLine:
    """Open the line of a task, and those around it; the first of several that do so begins it."""
    if not work.tx.read("live_attempts", rows=[(report.task_id, report.fence)]):
        return OpenedLine(answer=answer_renewal(report, _read_attempt(work, report)))
    (task,) = work.tx.read("tasks_by_id", ids=[report.task_id])
    place = _find_place(work, task)
    if place is None:
        detail = "this task works in no workspace; its step has to say so in its workflow file"
        return OpenedLine(answer=refuse(Refusal.INVALID_TRANSITION, task["status"], detail))
    _insert_lines(work, report, task["run_id"], place)
    states = _read_states(work.tx, place.lines)
    answer = TransitionResult(ok=True, status="running")
    if place.own not in states:
        return OpenedLine(answer=answer)
    return OpenedLine(answer=answer, line=_describe_line(work, task, place, states))


def _insert_lines(work: UnitOfWork, report: OpenLine, run_id: str, place: _Place) -> None:
    if report.base is not None:
        work.tx.write(
            "insert_run_line",
            task_id=report.task_id,
            fence=report.fence,
            base=report.base,
            repository=report.repository,
            host=report.host,
            branch=_name_branch(work, run_id),
        )
    for around, line in pairwise(place.lines):
        work.tx.write(
            "insert_item_line",
            task_id=report.task_id,
            fence=report.fence,
            line=line,
            around=around,
        )


def _describe_line(work: UnitOfWork, task: Row, place: _Place, states: dict[str, Row]) -> LineState:
    own, top = states[place.own], states[task["run_id"]]
    around = None if place.around is None else states[place.around]
    drafts = work.tx.read("draft_of", task_id=task["id"])
    return LineState(
        id=own["id"],
        run_id=task["run_id"],
        base=own["base"],
        head=own["head"],
        number=own["number"],
        branch=top["branch"],
        repository=top["repository"],
        host=top["host"],
        draft=Draft(base=drafts[0]["base"], sha=drafts[0]["sha"]) if drafts else None,
        subject=_find_subject(work, task, own["head"]),
        around=None
        if around is None
        else Head(line=around["id"], number=around["number"], sha=around["head"]),
        around_base=None if around is None else around["base"],
    )


def _find_subject(work: UnitOfWork, task: Row, head: str) -> str | None:
    """The commit that the verified step ended with; of a loop, the head of the line."""
    if task["verifies"] is None:
        return None
    (subject,) = work.tx.read("tasks_by_id", ids=[task["verifies"]])
    output = json.loads(subject["output"]) if subject["output"] else None
    commit = output.get("commit") if isinstance(output, dict) else None
    return str(commit) if is_sha(commit) else head


def _find_place(work: UnitOfWork, task: Row) -> _Place | None:
    """The lines around a task; None for a task whose step works in no workspace."""
    if task["run_id"] is None or not is_step(task):
        return None
    run = work.run_cache.read_facts(work.tx, (task["run_id"],))[task["run_id"]]
    scripted = work.workflow_cache.scripted(work.tx, run.workflow, run.version)
    step = scripted.get(task["step"])
    if step is None or step.workspace is None or not step.work.in_workspace:
        return None
    parallel = {each.line for each in scripted.values()} - {None}
    above = work.tx.read("ancestors", task_id=task["id"]) if parallel else []
    items = [row["id"] for row in above if row["item"] is not None and row["step"] in parallel]
    return _Place(lines=(run.id, *reversed(items)), landing=step.work.landing)


def _name_branch(work: UnitOfWork, run_id: str) -> str:
    run = work.run_cache.read_facts(work.tx, (run_id,))[run_id]
    workspace = work.workflow_cache.workspace(work.tx, run.workflow, run.version)
    return str(build_known_variables(run, workspace)["run"]["branch"])


def _read_states(tx: Transaction, lines: Sequence[str]) -> dict[str, Row]:
    return {row["id"]: row for row in tx.read("line_states", ids=lines)}


def _read_attempt(work: UnitOfWork, report: Report) -> Row:
    return work.tx.read("attempt_records", rows=[(report.task_id, report.fence)])[0]


def insert_heads(work: UnitOfWork, reports: Sequence[Complete]) -> set[str]:
    """Record the new heads that reports bring; the tasks whose commit is now a head."""
    rows = [
        (r.task_id, r.fence, r.head.line, r.head.number, r.head.base, r.head.sha)
        for r in sorted(reports, key=lambda each: each.task_id)
        if r.head is not None and r.head.line == _find_moved_line(work, r)
    ]
    return {row["task_id"] for row in work.tx.write("insert_heads", rows=rows)} if rows else set()


def _find_moved_line(work: UnitOfWork, report: Complete) -> str | None:
    tasks = work.tx.read("tasks_by_id", ids=[report.task_id])
    place = _find_place(work, tasks[0]) if tasks else None
    return None if place is None else place.moved


def explain_completion(work: UnitOfWork) -> Callable[[Complete, Row], TransitionResult]:
    """How a completion is answered that changed nothing: also where its line has moved on."""

    def explain(report: Complete, record: Row) -> TransitionResult:
        live = record["status"] == "running" and record["attempt"] == report.fence
        if not live or report.head is None:
            return answer_report(report, record)
        states = _read_states(work.tx, [report.head.line])
        state = states.get(report.head.line)
        if state is None or report.head.line != _find_moved_line(work, report):
            detail = f"{report.head.line} is no line that this task may move"
            return refuse(Refusal.INVALID_TRANSITION, "running", detail)
        if state["number"] == report.head.number:
            detail = "it judges a step, so it gives the line no new commit"
            return refuse(Refusal.INVALID_TRANSITION, "running", detail)
        detail = f"the line is at {state['head']} now, number {state['number']}; merge with it"
        return refuse(Refusal.HEAD_MOVED, "running", detail)

    return explain


class DraftedReport(Protocol):
    """The report of an attempt that gives its task back."""

    @property
    def task_id(self) -> str: ...
    @property
    def fence(self) -> int: ...
    @property
    def draft(self) -> Draft | None: ...


def record_drafts(work: UnitOfWork, reports: Sequence[DraftedReport]) -> None:
    """Record the drafts of attempts that give their tasks back."""
    _insert_drafts(work, "draft", [(r.task_id, r.fence, r.draft) for r in reports if r.draft])


def record_leavings(work: UnitOfWork, reports: Sequence[Fail]) -> None:
    """Record what failed attempts left, and begin the lines anew whose landing met a conflict."""
    _insert_drafts(work, "left", [(r.task_id, r.fence, r.left) for r in reports if r.left])
    for report in (each for each in reports if each.anew):
        tasks = work.tx.read("tasks_by_id", ids=[report.task_id])
        place = _find_place(work, tasks[0]) if tasks else None
        if place is not None and place.landing:
            work.tx.write(
                "begin_line_anew",
                task_id=report.task_id,
                fence=report.fence,
                line=place.own,
                around=place.around,
            )


def _insert_drafts(work: UnitOfWork, kind: str, given: Sequence[tuple[str, int, Draft]]) -> None:
    if not given:
        return
    ids = [task_id for task_id, _, _ in given]
    tasks = {row["id"]: row for row in work.tx.read("tasks_by_id", ids=ids)}
    places = {each: _find_place(work, task) for each, task in tasks.items()}
    rows = [
        (task_id, fence, kind, place.own, draft.base, draft.sha)
        for task_id, fence, draft in given
        if (place := places.get(task_id)) is not None
    ]
    if rows:
        work.tx.write("insert_drafts", rows=rows)


def keep_aside(work: UnitOfWork, report: KeepAside) -> TransitionResult:
    if not work.tx.read("live_attempts", rows=[(report.task_id, report.fence)]):
        return answer_renewal(report, _read_attempt(work, report))
    (task,) = work.tx.read("tasks_by_id", ids=[report.task_id])
    place = _find_place(work, task)
    if place is None or not 0 < report.former < report.fence:
        detail = f"attempt {report.former} is no former attempt of this task in a workspace"
        return refuse(Refusal.INVALID_TRANSITION, task["status"], detail)
    kept = work.tx.write(
        "keep_aside",
        task_id=report.task_id,
        fence=report.fence,
        former=report.former,
        line=place.own,
        base=report.base,
        sha=report.sha,
    )
    return TransitionResult(ok=True, repeated=not kept, status="running")


class LineOperations:
    """The part of the worker's protocol that is about lines of commits."""

    _context: EngineContext
    # Reads the task and the fence that a token proves.
    _held: Callable[[str, str], HeldTask]

    @operation
    def open_line(
        self,
        task_id: str,
        token: str,
        base: str | None = None,
        repository: str | None = None,
        host: str | None = None,
    ) -> Future[OpenedLine]:
        """Open the line that a task works on; an answer without a line asks for a base.

        The line of a run begins at the first `base` that one of its attempts gives, with the
        `repository` and, for a folder, the `host` that has it. Lines of items begin at the head of
        the line around them.
        """
        return self._context.submit(
            OpenLine(
                **self._held(task_id, token),
                base=None if base is None else clean_sha("base", base),
                repository=None if repository is None else clean_text("repository", repository),
                host=None if host is None else clean_text("host", host),
            )
        )

    @operation
    def keep_aside(
        self, task_id: str, token: str, attempt: int, base: str, sha: str
    ) -> Future[TransitionResult]:
        """Record the commit of what a former attempt of the task left, once, for people."""
        return self._context.submit(
            KeepAside(
                **self._held(task_id, token),
                former=validation.number("attempt", attempt, least=1),
                base=clean_sha("base", base),
                sha=clean_sha("sha", sha),
            )
        )

    @reading
    def lines_of_host(self, host: str) -> list[HostLine]:
        """The lines of runs in repositories of a host whose branches may have to be moved."""
        wanted, graphs = clean_text("host", host), WorkflowCache()

        def read(tx: Transaction) -> list[HostLine]:
            found, longest = [], LONGEST_KEPT * MICROSECONDS
            for row in _read_lines_of_host(tx, wanted, longest):
                workspace = graphs.workspace(tx, row["workflow"], row["workflow_version"])
                said = None if workspace is None else workspace.keep
                line = _read_host_line(row, KEPT_SECONDS if said is None else said)
                ended = row["finished_at"]
                if ended is None or row["now"] - ended < line.keep * MICROSECONDS:
                    found.append(line)
            return found

        return self._context.view(read)


def _read_lines_of_host(tx: Transaction, host: str, longest: int) -> Iterator[Row]:
    """All lines, however many: one that is not told of would be taken for that of a removed run."""
    before: str | None = None
    while True:
        rows = tx.read(
            "lines_of_host", host=host, longest=longest, before=before, count=LINES_AT_ONCE
        )
        yield from rows
        if len(rows) < LINES_AT_ONCE:
            return
        before = rows[-1]["run_id"]


def _read_host_line(row: Row, keep: float) -> HostLine:
    ended = row["finished_at"]
    return HostLine(
        run_id=row["run_id"],
        repository=row["repository"],
        branch=row["branch"],
        base=row["base"],
        head=row["head"],
        number=row["number"],
        keep=keep,
        ended_at=None if ended is None else to_datetime(ended),
    )
