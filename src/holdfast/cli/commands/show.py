"""The commands `runs`, `tasks`, `show` and `why`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app.command_registry import command
from holdfast.cli.app.options import (
    Address,
    After,
    ErrorText,
    Json,
    Limit,
    OnlyLabels,
    Since,
    Until,
    read_moment,
)
from holdfast.cli.app.session import open_service, typed_arguments, with_store
from holdfast.cli.app.terminal import (
    cut,
    escape,
    paint,
    print_json,
    print_line,
    print_note,
    print_table,
    wrap_line,
)
from holdfast.cli.render.formats import (
    as_of,
    describe_error_line,
    describe_start,
    draw_lines,
    format_ago,
    format_state,
    state_of_run,
    time_since_start,
)
from holdfast.errors import InvalidInput
from holdfast.model.filters import RunFilters
from holdfast.model.labels import parse_labels

if TYPE_CHECKING:
    from holdfast.service.service import Service

View = dict[str, Any]
TITLE = 40
KEY = 24
# Where the detail of a clause begins.
CAUSE = 13
_NOTHING_BLOCKS = "Nothing stands in its way: the next worker that serves it may take it."


@command("runs", example="holdfast runs --status failed --workflow checkout")
def runs(
    status: Annotated[
        str | None, typer.Option(help="Only running, completed, failed or cancelled runs.")
    ] = None,
    workflow: Annotated[str | None, typer.Option(help="Only runs of this workflow.")] = None,
    key: Annotated[str | None, typer.Option(help="Only the run with this key.")] = None,
    label: OnlyLabels = None,
    step: Annotated[str | None, typer.Option(help="Only runs with a task of this step.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only runs with a task for this agent.")] = None,
    since: Since = None,
    until: Until = None,
    error: ErrorText = None,
    name: Annotated[
        str | None, typer.Option(help="Only with this text in the workflow's name or the key.")
    ] = None,
    held: Annotated[
        str | None, typer.Option(help="Only runs on hold for this reason, as paused.")
    ] = None,
    counts: Annotated[
        bool, typer.Option("--counts", help="Print how many there are, by status.")
    ] = False,
    called: Annotated[
        bool, typer.Option("--called", help="Include runs called by steps of other runs.")
    ] = False,
    limit: Limit = 20,
    after: After = None,
    json: Json = False,
) -> None:
    """List runs, newest first."""
    filters = RunFilters(
        status=status,
        workflow=workflow,
        key=key,
        labels=parse_labels("label", label),
        step=step,
        agent=agent,
        since=read_moment("since", since),
        until=read_moment("until", until),
        error=error,
        name=name,
        held=held,
    )
    with open_service() as service:
        page = (
            service.queries.run_counts(called=called, **filters)
            if counts
            else service.queries.runs(limit=limit, after=after, called=called, **filters)
        )
    if json:
        print_json(page)
        return
    if counts:
        print_table(("STATUS", "RUNS"), [[*map(str, each)] for each in page["statuses"].items()])
        return
    if not page["items"]:
        begin = f"No runs yet. Start one: {with_store('holdfast run WORKFLOW')}"
        print_note("No such runs." if any(filters.values()) else begin)
        return
    headings = ("ID", "WORKFLOW", "KEY", "STATUS", "DONE", "STARTED", "TOOK", "COST", "")
    print_table(headings, [_run_row(run) for run in page["items"]])
    _print_next_page(page, "runs")


@command("tasks", example="holdfast tasks --run @last --status failed")
def tasks(
    run: Annotated[str | None, typer.Option(help="Only tasks of this run.")] = None,
    parent: Annotated[
        str | None, typer.Option(help="Only the direct children of this task.")
    ] = None,
    status: Annotated[
        str | None,
        typer.Option(help="Only idle, queued, running, done, failed or cancelled tasks."),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Only tasks for this agent.")] = None,
    workflow: Annotated[
        str | None, typer.Option(help="Only tasks in runs of this workflow.")
    ] = None,
    step: Annotated[str | None, typer.Option(help="Only tasks of this step or function.")] = None,
    key: Annotated[str | None, typer.Option(help="Only the task with this key.")] = None,
    label: OnlyLabels = None,
    since: Since = None,
    until: Until = None,
    error: ErrorText = None,
    name: Annotated[
        str | None, typer.Option(help="Only with this text in the title, step or key.")
    ] = None,
    limit: Limit = 20,
    after: After = None,
    json: Json = False,
) -> None:
    """List tasks, newest first."""
    with open_service() as service:
        page = service.queries.tasks(
            limit=limit,
            after=after,
            status=status,
            agent=agent,
            run=None if run is None else service.addresses.run(run),
            parent=None if parent is None else service.addresses.task(parent),
            workflow=workflow,
            step=step,
            key=key,
            labels=parse_labels("label", label),
            since=read_moment("since", since),
            until=read_moment("until", until),
            error=error,
            name=name,
        )
        named = [] if json else [task["id"] for task in page["items"]]
        places = service.queries.name_each(named)
    if json:
        print_json(page)
        return
    if not page["items"]:
        print_note("No such tasks.")
        return
    headings = ("ID", "TASK", "STATE", "AGENT", "ATTEMPT", "RUN", "CREATED", "")
    print_table(headings, [_task_row(task, places.get(task["id"])) for task in page["items"]])
    _print_next_page(page, "tasks")


@command("show", example="holdfast show @last")
def show(
    address: Address = "@last",
    json: Json = False,
    at: Annotated[
        int | None,
        typer.Option(
            metavar="EVENT", min=1, help="A run as it stood after the event of this number."
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Watch a run until it ends.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="Unfold what is done: loops, items and calls too.")
    ] = False,
) -> int | None:
    """Show a run as a tree, or a task with children and attempts."""
    from holdfast.cli.render.tree import draw_part, draw_run, draw_task

    with open_service() as service:
        found = service.addresses.find(address)
        if at is not None:
            _show_past(service, found, at, json=json, follow=follow, everything=everything)
            return None
        if found.startswith("t_"):
            task = service.queries.task_with_attempts(found)
            lines = draw_task(task)
            if everything and "run_id" in task:
                lines += draw_part(service.queries.run(task["run_id"], brief=True), found)
            _print_view(task, lines, json=json)
            return None
        if follow:
            from holdfast.cli.render.live_view import watch_run

            return watch_run(service, found)
        run = service.queries.run(found)
        lines = draw_run(service.with_change_to_approve(run), unfolded=everything)
        _print_view(run, lines, json=json)
    return None


def _show_past(
    service: Service, found: str, at: int, *, json: bool, follow: bool, everything: bool
) -> None:
    from holdfast.cli.render.tree import draw_run
    from holdfast.service.queries.views import read_time

    if found.startswith("t_"):
        raise InvalidInput("at", "is for a run; name the run of the task")
    if follow:
        raise InvalidInput("at", "shows what is past, which --follow cannot")
    run = service.queries.past_run(found, at)
    shown = run["as_of"]
    with as_of(read_time(shown["at"]) or 0):
        lines = draw_run(run, unfolded=everything)
    begun = f"as it stood after event {shown['seq']} ({shown['type']}), {shown['at']}"
    _print_view(run, [paint(begun, "dim"), *lines], json=json)


@command("why", example="holdfast why @last:build.1.implement")
def why(
    address: Address = "@last",
    agent: Annotated[
        list[str] | None,
        typer.Option(help="Explain it for a worker that serves this agent; repeatable."),
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="Explain it for a worker with this tag; repeatable.")
    ] = None,
    json: Json = False,
) -> None:
    """Explain why a run or task is not moving, and what to type."""
    with open_service() as service:
        found = service.addresses.find(address)
        told = service.why(found, agents=agent or None, tags=tag or None)
    lines = _explain_run(told) if found.startswith("r_") else _explain_task(told)
    advised = [f"Fix:   {each}" for each in told["fixes"]]
    advised += [f"Look:  {each}" for each in told["looks"]]
    typed = [line for each in advised for line in wrap_line(paint(each, "bold"), 7, joiner=" \\")]
    _print_view(told, [*wrap_line(escape(told["summary"]), 2), *lines, *typed], json=json)


def _explain_task(told: View) -> list[str]:
    """The lines below the summary: first what stands in the way, and then all that does not."""
    if told["status"] in {"done", "running"}:
        return []
    broken = [clause for clause in told["clauses"] if not clause["ok"]]
    causes = [line for clause in broken for line in _draw_broken_clause(clause)]
    met = "   ".join(f"✓ {clause['name']}" for clause in told["clauses"] if clause["ok"])
    held = [paint(line, "green") for line in wrap_line(f"  {met}", 2)] if met else []
    served = [clause["detail"] for clause in told["clauses"] if clause["name"] == "worker"]
    free = [line for each in served for line in wrap_line(f"  {escape(each)}", 4)]
    free += wrap_line(_NOTHING_BLOCKS)
    return [*draw_lines(told.get("traceback", ())), *causes, *held, *([] if broken else free)]


def _draw_broken_clause(clause: View) -> list[str]:
    line = f"  {paint('✗', 'red')} {clause['name']:<8} {escape(clause['detail'])}".rstrip()
    more = [f"      {escape(each)}" for each in clause.get("more", ())]
    return [*wrap_line(line, CAUSE), *(each for line in more for each in wrap_line(line, 8))]


def _explain_run(told: View) -> list[str]:
    lines = []
    for each in told["tasks"]:
        lines += wrap_line(f"  {each['id']}  {escape(each['line'])}", 6)
        if "others" in each:
            lines += wrap_line(f"      {escape(each['others'])}", 8)
        for line in each.get("more", ()):
            lines += wrap_line(f"      {escape(line)}", 8)
    if told["more"]:
        listed = with_store(f"holdfast tasks --run {told['id']}")
        lines += wrap_line(f"  and {told['more']} more: {listed}", 6)
    return lines


def _run_row(run: View) -> list[str]:
    from holdfast.cli.render.formats import cost_of
    from holdfast.service.queries.views import read_time

    begun, ended = read_time(run["created_at"]), read_time(run.get("finished_at"))
    progress = run.get("progress", {"done": 0, "total": 0})
    held = run["holds"] if ended is None else ()
    later = describe_start(run) if "scheduled" in held else ""
    named = [each for each in held if each != "scheduled"]
    holds = f"held: {', '.join(named)}" if named else ""
    error = describe_error_line(run["error"]) if run.get("error") is not None else ""
    return [
        run["id"],
        escape(run["workflow"]),
        cut(escape(run.get("key", "")), KEY),
        format_state(state_of_run(run)),
        f"{progress['done']}/{progress['total']}",
        format_ago(begun),
        time_since_start(run),
        cost_of(run),
        "  ".join(part for part in (_describe_needs(run), later, holds, error) if part),
    ]


def _describe_needs(run: View) -> str:
    """What a run needs of a person: the first of its questions, and how many more there are."""
    needs = run.get("needs_you", ())
    if not needs:
        return ""
    from holdfast.cli.render.step_status import describe_waiting

    more = f" and {len(needs) - 1} more" if len(needs) > 1 else ""
    return f"needs you: {describe_waiting(needs[0])}{more}"


def _task_row(task: View, place: str | None) -> list[str]:
    from holdfast.cli.render.step_status import describe_holds
    from holdfast.service.queries.run_tree import name_task
    from holdfast.service.queries.views import read_time

    holds = describe_holds(task) if task["holds"] and "finished_at" not in task else ""
    error = describe_error_line(task["error"]) if task.get("error") is not None else ""
    marks = [each for each in ("skipped", "superseded") if task.get(each)]
    return [
        task["id"],
        cut(escape(name_task(task, place)), TITLE),
        format_state(task["state"]) + paint("".join(f" {each}" for each in marks), "dim"),
        escape(task["agent"]),
        str(task["attempt"] or ""),
        task.get("run_id", ""),
        format_ago(read_time(task["created_at"])),
        "  ".join(part for part in (holds, error) if part),
    ]


def _print_next_page(page: View, name: str) -> None:
    if "next" in page:
        print_note(f"More: {_type_next_page(page['next'], name)}")


def _type_next_page(after: str, name: str) -> str:
    """The command that was typed, for the page behind an id."""
    from holdfast.cli.app.advice import format_typed

    kept, typed = list[str](), iter(typed_arguments.get() or (name,))
    for each in typed:
        if each == "--after":
            next(typed, None)
        elif not each.startswith("--after="):
            kept.append(each)
    return format_typed([*kept, "--after", after])


def _print_view(view: View, lines: list[str], *, json: bool) -> None:
    if json:
        print_json(view)
        return
    for line in lines:
        print_line(line)
