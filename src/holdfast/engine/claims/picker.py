"""Picker: the one place that decides which task a worker gets."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from holdfast.engine.claims.claim_requests import note_claim_request, recall_claim_request
from holdfast.engine.core.operation import Claim, ClaimById, TaskLookup
from holdfast.engine.core.run_cache import RunFacts
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.read.records import read_needed_outputs, read_value
from holdfast.engine.read.step_texts import StepTexts, is_step, read_step_texts
from holdfast.engine.read.task_records import read_task
from holdfast.engine.state import slots, usage_limits
from holdfast.model.frozen_record import make_record
from holdfast.model.moment import to_datetime
from holdfast.model.retry import MICROSECONDS
from holdfast.model.task import Assignment
from holdfast.model.token import make_token
from holdfast.model.verdict import first_feedback
from holdfast.model.worker import EVERY_AGENT, serves_agent
from holdfast.model.workflow.reference import Unresolved
from holdfast.store.database import Row, Transaction

DUE_AT_ONCE = 1_000
NO_TAGS = "[]"

log = logging.getLogger("holdfast.engine")


class ReadyLine(NamedTuple):
    """The ready tasks of one agent with the same tags; a worker serves all or none of them.

    They are two halves: tasks with a function or program, and bare ones.
    """

    agent: str
    tags: str
    bare: bool = False


class TakenRows(NamedTuple):
    """The rows that one claim took, and the facts of their runs."""

    rows: list[Row]
    runs: Mapping[str, RunFacts]
    # Whether the rows were taken before, for the same request.
    repeated: bool
    look_up_task: TaskLookup | None


def claim_tasks(work: UnitOfWork, claims: Sequence[Claim]) -> list[Claimed]:
    work.tx.send_ahead("mark_due", count=DUE_AT_ONCE)
    if len(claims) == 1 and claims[0].request is None:
        _send_looks_ahead(work, claims[0])
    mark_due(work)
    return _read_claimed(work, [_take_rows(work, each) for each in claims])


def serve_standing_claim(
    work: UnitOfWork, request: Claim | None, given: list[Row], look: TaskLookup | None
) -> Claimed:
    """Claim ready tasks for a standing claim, beside `given` tasks that were started directly."""
    taken = _taken_by_direct_start(work, given, look)
    if request is not None:
        claimed = _take_rows(work, request)
        rows, runs = [*taken.rows, *claimed.rows], {**taken.runs, **claimed.runs}
        taken = claimed._replace(rows=rows, runs=runs)
    (gathered,) = _read_claimed(work, [taken])
    return gathered


def _taken_by_direct_start(work: UnitOfWork, rows: list[Row], look: TaskLookup | None) -> TakenRows:
    runs = work.run_cache.read_facts(work.tx, {row["run_id"] for row in rows})
    return TakenRows(rows, runs, repeated=False, look_up_task=look)


def claim_tasks_by_id(work: UnitOfWork, claims: Sequence[ClaimById]) -> list[Claimed]:
    mark_due(work)
    named = work.tx.read("keys_of_tasks", ids=[each.task_id for each in claims])
    slots.lock_slots(work, {row["concurrency_key"] for row in named})
    return _read_claimed(work, [_take_rows(work, each) for each in claims])


def _take_rows(work: UnitOfWork, request: Claim | ClaimById) -> TakenRows:
    known = recall_claim_request(work, request)
    if known is not None:
        rows = known
    elif isinstance(request, Claim):
        rows = _claim_ready(work, request)
    else:
        rows = _claim_by_id(work, request)
    if known is None:
        note_claim_request(work, request.request, rows)
    runs = work.run_cache.read_facts(
        work.tx, {row["run_id"] for row in rows if row["run_id"] is not None}
    )
    # At once, so that the next claim of this group sees the holds.
    usage_limits.hold_runs_at_budget(work, runs.values())
    look = request.look_up_task if isinstance(request, Claim) else None
    return TakenRows(rows, runs, repeated=known is not None, look_up_task=look)


def mark_due(work: UnitOfWork) -> None:
    if work.tx.write("mark_due", count=DUE_AT_ONCE):
        work.wake()


def _claim_ready(work: UnitOfWork, request: Claim) -> list[Row]:
    if EVERY_AGENT in request.agents:
        request = replace(request, agents=_name_agents(work.tx, request.agents))
    if work.limits:
        request = replace(request, agents=usage_limits.agents_below_limit(work, request.agents))
    claimed: list[Row] = []
    if _may_be_plain(work, request):
        send_plain_claim(work, request)
        # The statement gives nothing while tasks with a key or tags wait: these need the lines.
        plain = ReadyLine(request.agents[0], NO_TAGS)
        claimed = _claim_from(work, request, plain, request.count, peeked=False)
        if claimed or not _special_waits(work, plain):
            return claimed
    lines = _lines_served(work.tx, request)
    while lines and len(claimed) < request.count:
        first = _first_ready(work, request, lines, request.count - len(claimed))
        keys = {row["concurrency_key"] for row in first if row["concurrency_key"]}
        new = keys - work.slots
        # Before any task starts, so that the counters are right after each event.
        slots.lock_slots(work, new)
        taken = [
            row
            for line, count in Counter(map(_line_of, first)).items()
            for row in _claim_from(work, request, line, count)
        ]
        claimed += taken
        if len(taken) == len(first):
            break
        # A key may have had room for only some of the first tasks; others may stand behind them.
        if keys and (taken or new):
            continue
        # Another process has locked the first tasks of one line; those of other lines may be free.
        claimed += _claim_from_any(work, request, lines, request.count - len(claimed))
        break
    return claimed


def _may_be_plain(work: UnitOfWork, request: Claim) -> bool:
    """Whether one statement claims all that is asked for, unless tasks with a key or tags wait."""
    takes_bare = request.bare or request.equipped
    return _names_one_agent(request) and not takes_bare and not work.slots


def _send_looks_ahead(work: UnitOfWork, request: Claim) -> None:
    """Send what a claim reads first, if all that wait are tasks of one agent, without tags."""
    if not _names_one_agent(request) or not request.bare:
        return
    work.tx.send_ahead("lines", agents=list(request.agents), tags=request.tags)
    for half in slots.BARE_AND_NOT:
        plain = ReadyLine(request.agents[0], NO_TAGS, half)
        work.tx.send_ahead("peek_tasks", **_describe_peek(plain, request.tags, request.count))


def _special_waits(work: UnitOfWork, line: ReadyLine) -> bool:
    (row,) = work.tx.read("special_waits", agent=line.agent)
    return bool(row["waits"])


def send_plain_claim(work: UnitOfWork, request: Claim) -> None:
    """Send the statements of a claim from one line, which are asked for one after the other."""
    if _may_be_plain(work, request):
        plain = ReadyLine(request.agents[0], NO_TAGS)
        given = _describe_claim(work, request, plain, request.count, peeked=False)
        work.tx.send_ahead("claim_tasks", **given)
        work.tx.send_ahead("special_waits", agent=plain.agent)


def _names_one_agent(request: Claim) -> bool:
    return len(request.agents) == 1 and EVERY_AGENT not in request.agents


def _name_agents(tx: Transaction, agents: tuple[str, ...]) -> tuple[str, ...]:
    """The agents of a claim; for every agent, those that have ready tasks now."""
    if EVERY_AGENT not in agents:
        return agents
    return tuple(row["agent"] for row in tx.read("ready_agents"))


def first_to_run_now(tx: Transaction, served: Claim) -> str | None:
    """The id of the first ready task that somebody has put first by run-now."""
    for line in _lines_served(tx, served):
        rows = _peek(tx, line, served.tags, 1)
        if rows and rows[0]["run_now"]:
            return str(rows[0]["id"])
    return None


def _lines_served(tx: Transaction, served: Claim) -> list[ReadyLine]:
    agents = list(_name_agents(tx, served.agents))
    return [
        ReadyLine(row["agent"], row["tags"], half)
        for row in tx.read("lines", agents=agents, tags=served.tags)
        for half in slots.BARE_AND_NOT
        if not half or served.bare or serves_agent(served.equipped, row["agent"])
    ]


def _line_of(row: Row) -> ReadyLine:
    return ReadyLine(row["agent"], row["tags"], bool(row["bare"]))


def _peek(tx: Transaction, line: ReadyLine, tags: str, count: int) -> list[Row]:
    return tx.read("peek_tasks", **_describe_peek(line, tags, count))


def _describe_peek(line: ReadyLine, tags: str, count: int) -> dict[str, Any]:
    return {
        "agent": line.agent,
        "line": line.tags,
        "bare": line.bare,
        "tags": tags,
        "count": count,
    }


def _first_ready(
    work: UnitOfWork, request: Claim, lines: Sequence[ReadyLine], count: int
) -> list[Row]:
    """The first `count` ready tasks of all lines that a worker serves."""
    ready = [row for line in lines for row in _peek(work.tx, line, request.tags, count)]
    if len(lines) > 1:
        ready.sort(
            key=lambda row: (not row["run_now"], -row["priority"], row["position"], row["id"])
        )
    return ready[:count]


def _claim_from_any(
    work: UnitOfWork, request: Claim, lines: Sequence[ReadyLine], count: int
) -> list[Row]:
    taken: list[Row] = []
    for line in lines:
        if len(taken) < count:
            taken += _claim_from(work, request, line, count - len(taken))
    return taken


def _claim_from(
    work: UnitOfWork, request: Claim, line: ReadyLine, count: int, *, peeked: bool = True
) -> list[Row]:
    given = _describe_claim(work, request, line, count, peeked=peeked)
    rows = work.change_tasks("claim_tasks", **given)
    slots.take_slots(work, rows)
    return rows


def _describe_claim(
    work: UnitOfWork, request: Claim, line: ReadyLine, count: int, *, peeked: bool
) -> dict[str, Any]:
    return {
        "agent": line.agent,
        "line": line.tags,
        "bare": line.bare,
        "tags": request.tags,
        "count": count,
        "keys": sorted(work.slots),
        "peeked": peeked,
        "passed": request.passed,
        "worker": request.worker,
        "lease": request.lease,
    }


def _claim_by_id(work: UnitOfWork, request: ClaimById) -> list[Row]:
    agents = request.agents
    if EVERY_AGENT in agents:
        found = work.tx.read("task_by_id", task_id=request.task_id)
        agents = tuple(row["agent"] for row in found)
    rows = work.change_tasks(
        "claim_task_by_id",
        task_id=request.task_id,
        agents=usage_limits.agents_below_limit(work, agents),
        tags=request.tags,
        worker=request.worker,
        lease=request.lease,
    )
    slots.take_slots(work, rows)
    return rows


def _read_claimed(work: UnitOfWork, taken: Sequence[TakenRows]) -> list[Claimed]:
    """Claimed tasks with everything that they need to run, read together for all claims."""
    rows = [row for each in taken for row in each.rows]
    given: dict[str, list[Row]] = {}
    needy: list[str] = []
    for row in rows:
        if (known := work.given.get(row.get("need", ""))) is not None:
            given[row["entity"]] = [known]
        elif row["needy"]:
            needy.append(row["entity"])
    if needy:
        for row in work.tx.read("needed_outputs", ids=needy):
            given.setdefault(row["task_id"], []).append(row)
    around = {row["parent_id"] for row in rows if row["item"] is not None}
    groups: dict[str, list[Row]] = {}
    if around:
        for row in work.tx.read("items_around", ids=sorted(around)):
            groups.setdefault(row["root"], []).append(row)
    whole = [row["entity"] for each in taken if each.look_up_task is None for row in each.rows]
    records = WholeRecords(work.tx.read_late("tasks_by_id", ids=whole) if whole else list)
    return [
        Claimed(
            secret=work.secret,
            rows=each.rows,
            given=given,
            runs=each.runs,
            around=groups,
            records=records,
            look_up_task=each.look_up_task,
            scripts=_scripts(work, each.rows, each.runs.values()),
            repeated=each.repeated,
        )
        for each in taken
    ]


def _scripts(work: UnitOfWork, rows: list[Row], runs: Iterable[RunFacts]) -> dict[str, StepTexts]:
    """The texts of claimed tasks that are steps of workflow files."""
    steps = {
        version: work.workflow_cache.scripted(work.tx, *version)
        for version in {(run.workflow, run.version) for run in runs}
    }
    if not any(steps.values()):
        return {}
    written = {run.id: (run, steps[run.workflow, run.version]) for run in runs}
    chosen = []
    for row in rows:
        run, known = written.get(row["run_id"], (None, {}))
        if run is not None and row["step"] in known and is_step(row):
            chosen.append((row | {"id": row["entity"]}, known[row["step"]], run))
    agents = _read_agents(work, [row["id"] for row, step, _ in chosen if step.step.handed_over])
    return read_step_texts(
        work.tx,
        [(row, step.as_done_by(agents.get(row["id"])), run) for row, step, run in chosen],
    )


def _read_agents(work: UnitOfWork, ids: Sequence[str]) -> dict[str, str]:
    """The agents of some tasks, which may have been handed to another than their steps name."""
    return {row["id"]: row["agent"] for row in work.tx.read("tasks_by_id", ids=ids)} if ids else {}


class WholeRecords:
    """The whole rows of claimed tasks, as claimed; their answer comes with that of the commit."""

    def __init__(self, rows: Callable[[], list[Row]]) -> None:
        self._rows = rows

    def __getstate__(self) -> dict[str, object]:
        # For another process, which cannot ask for the rows.
        return {"by_id": self.by_id}

    @cached_property
    def by_id(self) -> dict[str, Row]:
        return {row["id"]: row for row in self._rows()}


@dataclass(frozen=True, kw_only=True)
class Claimed:
    """The tasks that a claim took, still as rows: the claimer turns them into records."""

    secret: bytes = field(repr=False)
    rows: list[Row]
    given: dict[str, list[Row]]
    runs: Mapping[str, RunFacts]
    # The groups and items around a step of a loop, the nearest first, by its parent.
    around: dict[str, list[Row]]
    # The whole rows, unless `look_up_task` reads them later.
    records: WholeRecords | None = None
    look_up_task: TaskLookup | None = None
    scripts: dict[str, StepTexts] = field(default_factory=dict)
    # Whether the tasks were claimed before, for the same request.
    repeated: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def read(self) -> list[Assignment]:
        """The assignments, in the order of the queue.

        A task whose texts could be rendered before the claim and now cannot is given to nobody:
        its lease runs out.
        """
        read = [self._assignment(row) for row in sorted(self.rows, key=_queue_order)]
        return [each for each in read if each is not None]

    def _assignment(self, row: Row) -> Assignment | None:
        identifier, run_id, timeout = row["entity"], row["run_id"], row["timeout"]
        told = {
            "task_id": identifier,
            "attempt": row["attempt"],
            "expires_at": to_datetime(row["lease_expires_at"]),
            "step": row["step"],
            "source": self,
            "row": row,
        }
        if timeout is not None:
            told["timeout"] = timeout / MICROSECONDS
        if run_id is not None:
            told |= _fields_of_run(row, self.runs[run_id])
        if (script := self.scripts.get(identifier)) is not None:
            try:
                told["work"] = script.work(self.read_field(row, "feedback"), row["attempt"])
            except Unresolved:
                log.exception("the texts of %s cannot be told", identifier)
                return None
        return make_record(Assignment, told)

    def read_field(self, row: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - JSON is any value
        match name:
            case "token":
                return make_token(self.secret, row["entity"], row["attempt"])
            case "fields" | "task":
                whole = self._record(row["entity"])
                return whole if name == "fields" else read_task(whole)
            case "input":
                run = self.runs.get(row["run_id"])
                return None if run is None else read_value(run.input)
            case "needs":
                return read_needed_outputs(self.given.get(row["entity"], ()), row["parent_id"])
            case "item" | "feedback":
                return self._read_around(row, name)
        return _read_own_field(row, name)

    def _record(self, task_id: str) -> Row:
        if self.look_up_task is not None:
            return self.look_up_task(task_id)
        if self.records is None:
            raise KeyError(task_id)
        return self.records.by_id[task_id]

    def _read_around(self, row: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - as above
        groups = self.around.get(row["parent_id"], [])
        if name == "item":
            return read_value(groups[0]["payload"]) if groups else None
        said = (row["feedback"], *(each["feedback"] for each in groups))
        return read_value(first_feedback(said))


def _fields_of_run(row: Row, run: RunFacts) -> dict[str, Any]:
    return {
        "run_id": run.id,
        "item_number": row["item"],
        "workflow": run.workflow,
        "workflow_version": run.version,
        "is_step": is_step(row),
        "usd_per_attempt": run.usd_per_attempt,
    }


def _read_own_field(row: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - as above
    if name == "name":
        return row["step"] or row["name"]
    if name == "epoch":
        return row["epoch"]
    return read_value(row["feedback" if name == "own_feedback" else name])


def _queue_order(row: Row) -> tuple[bool, int, int, str]:
    return (not row["run_now"], -row["priority"], row["position"], row["entity"])
