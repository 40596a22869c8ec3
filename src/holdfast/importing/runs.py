"""Imports of runs: tables of runs and steps become runs of workflows with steps in a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike

from holdfast.api.holdfast import Holdfast
from holdfast.engine.surroundings.imports import PastRun, PastTask
from holdfast.errors import InvalidInput
from holdfast.importing.import_writer import check_target, take_over_runs
from holdfast.importing.loops import (
    STEP_STATUSES,
    STORY_STATUSES,
    Contradiction,
    ImportedStep,
    describe_missing_verifier,
    order_steps,
    read_config,
)
from holdfast.importing.report import ImportReport, Remark
from holdfast.importing.rows import (
    FAILED_BEFORE,
    ImportMistakes,
    Row,
    digest_rows,
    row_as_json,
    sort_key,
)
from holdfast.model.run import NewRun
from holdfast.model.status import TERMINAL, Status
from holdfast.model.task import NewTask
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.store.sqlite.foreign_file import read_foreign_tables

TABLES = {
    "runs": ("id", "workflow_id", "status"),
    "steps": ("id", "run_id", "step_id", "step_index", "status"),
    "stories": ("id", "run_id", "story_index", "status"),
}
RUN_STATUSES = ("running", "completed", "failed", "cancelled")
STATUSES = {"runs": RUN_STATUSES, "steps": tuple(STEP_STATUSES), "stories": STORY_STATUSES}
INDEXES = {"steps": "step_index", "stories": "story_index"}


@dataclass(frozen=True, kw_only=True, slots=True)
class OldRun:
    row: Row
    steps: tuple[Row, ...]
    stories: tuple[Row, ...]

    @property
    def id(self) -> str:
        return str(self.row["id"])

    @property
    def status(self) -> str:
        return str(self.row["status"])


def import_runs(
    source: str | PathLike[str], *, into: Holdfast, name: str = "runs", dry_run: bool = False
) -> ImportReport:
    """Take over the tables `runs` and `steps` of an older file, and its `stories` if it has any.

    The file is only read. Importing it again makes nothing twice: runs are known by `name` and
    their ids there. A run that contradicts itself is left out, and the report says why. A `dry_run`
    reports what would be made, and makes nothing.
    """
    path = check_target(source, into)
    runs = _read(read_foreign_tables(path, TABLES, optional=("stories",)))
    left_out: list[Remark] = []
    remarks: list[Remark] = []
    past: list[PastRun] = []
    was: dict[str, str] = {}
    mistakes = ImportMistakes("runs")
    for run in runs:
        try:
            links = _check_run_status(run, order_steps(run.steps, run.stories), remarks)
            past.append(_make_past_run(run, links, f"import:{name}:{run.id}"))
            if (reason := describe_missing_verifier(run.steps)) is not None:
                remarks.append(Remark(old=run.id, reason=reason))
        except Contradiction as contradiction:
            left_out.append(Remark(old=run.id, reason=str(contradiction)))
        except InvalidInput as error:
            mistakes.add(run.id, str(error))
        else:
            was |= {run.id: run.status} | {f"{run.id}/{link.name}": link.was for link in links}
    mistakes.raise_if_any()
    report = take_over_runs(into, past, was, dry_run=dry_run)
    return replace(report, left_out=tuple(left_out), remarks=tuple(remarks))


def _read(tables: Mapping[str, Sequence[Row]]) -> list[OldRun]:
    every = {table: ImportMistakes(table) for table in tables}
    for table, mistakes in every.items():
        ids = [
            mistakes.identifier(f"row {number}", "id", row["id"])
            for number, row in enumerate(tables[table], start=1)
        ]
        mistakes.unique(ids, "its id is there twice")
        for row in tables[table]:
            mistakes.status(row["id"], row["status"], STATUSES[table])
    for row in tables["runs"]:
        every["runs"].identifier(row["id"], "workflow_id", row["workflow_id"])
    below = {table: _group_by_run(every[table], tables, table) for table in INDEXES}
    found = [mistake for mistakes in every.values() for mistake in mistakes.found]
    every["runs"].found = found
    every["runs"].raise_if_any()
    return [
        OldRun(
            row=row,
            steps=tuple(below["steps"].get(row["id"], [])),
            stories=tuple(below["stories"].get(row["id"], [])),
        )
        for row in sorted(tables["runs"], key=_age_key)
    ]


def _age_key(row: Row) -> tuple[object, ...]:
    return (sort_key(row.get("created_at")), sort_key(row["id"]))


def _group_by_run(
    mistakes: ImportMistakes, tables: Mapping[str, Sequence[Row]], table: str
) -> dict[object, list[Row]]:
    """The rows of each run in order; two rows with the same index are a mistake."""
    column = INDEXES[table]
    runs = {row["id"] for row in tables["runs"]}
    found: dict[object, list[Row]] = {}
    for row in tables[table]:
        if row["run_id"] not in runs:
            mistakes.add(row["id"], f"its run {row['run_id']} is not there")
        if not isinstance(row[column], int):
            mistakes.add(row["id"], f"{column} is {row[column]!r}, not a whole number")
        if row.get("type") == "loop" and not _is_config(row):
            mistakes.add(row["id"], f"loop_config {row.get('loop_config')!r} is no JSON object")
        found.setdefault(row["run_id"], []).append(row)
    for run, rows in found.items():
        places = [str(row[column]) for row in rows]
        mistakes.unique((f"{run}: {place}" for place in places), f"this {column} is there twice")
        rows.sort(key=lambda row: sort_key(row[column]))
    return found


def _is_config(loop: Row) -> bool:
    try:
        read_config(loop)
    except (TypeError, ValueError):
        return False
    return True


def _check_run_status(
    run: OldRun, links: list[ImportedStep], remarks: list[Remark]
) -> list[ImportedStep]:
    """The steps of a run, checked against its status; a contradiction raises `Contradiction`."""
    unfinished = [place for place, link in enumerate(links) if link.status is not Status.DONE]
    if not links:
        raise Contradiction("it has no steps")
    if run.status == "completed" and unfinished:
        link = links[unfinished[0]]
        raise Contradiction(f"it is completed, and its step {link.name} is {link.was}")
    if run.status in {"failed", "cancelled"} and not unfinished:
        raise Contradiction(f"it is {run.status}, and every step of it is done")
    if run.status == "failed" and not any(link.status is Status.FAILED for link in links):
        place = unfinished[0]
        reason = f"it has failed, and none of its steps: {links[place].name} is failed for it"
        remarks.append(Remark(old=run.id, reason=reason))
        links[place] = replace(links[place], status=Status.FAILED, result=FAILED_BEFORE)
    return links


def _make_past_run(run: OldRun, links: Sequence[ImportedStep], key: str) -> PastRun:
    names = [link.name for link in links]
    before = [(), *((name,) for name in names)]
    steps = tuple(
        Step(id=link.name, needs=needs, agent=link.agent)
        for link, needs in zip(links, before, strict=False)
    )
    workflow = Workflow.define(str(run.row["workflow_id"]), steps)
    return PastRun(
        run=NewRun(workflow=workflow, input=row_as_json(run.row), key=key),
        tasks=tuple(_chain_tasks(links)),
        body=digest_rows([run.row, *run.steps, *run.stories]),
        cancelled=run.status == "cancelled",
    )


def _chain_tasks(links: Sequence[ImportedStep]) -> Iterator[PastTask]:
    """The tasks: each needs the step before it and the last unfinished step before that.

    A need of a step that ended although the need was not done is kept as a late need. A done step
    may come after an unfinished one: the steps after both need both.
    """
    before: ImportedStep | None = None
    unfinished: ImportedStep | None = None
    for link in links:
        first = [each for each in (before, unfinished) if each is not None]
        early = [each for each in first if each.status is not Status.DONE]
        late = early if link.status in TERMINAL else []
        yield PastTask(
            name=link.name,
            task=NewTask(title=link.name, agent=link.agent, payload=link.payload),
            status=link.status,
            needs=tuple(dict.fromkeys(each.name for each in first if each not in late)),
            late=tuple(dict.fromkeys(each.name for each in late)),
            result=link.result,
        )
        before = link
        unfinished = unfinished if link.status is Status.DONE else link
