"""The command `run`: a run started by name, from a program or from a file, and then watched.

A rehearsal (`--rehearse`) plays a workflow file with stubs, in a store that is thrown away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app.command_registry import command
from holdfast.cli.app.options import (
    Inputs,
    Json,
    NewLabels,
    WorkflowName,
    read_moment,
    read_pairs,
    read_value,
)
from holdfast.cli.app.session import (
    chosen_store,
    locate_store,
    open_service,
    serve_location,
    serve_program,
    typed_arguments,
    with_store,
)
from holdfast.cli.app.terminal import escape, print_json, print_line, print_note
from holdfast.cli.render.formats import describe_start, state_of_run
from holdfast.errors import InvalidInput
from holdfast.model.labels import parse_labels
from holdfast.model.units import parse_duration

if TYPE_CHECKING:
    from holdfast.api.holdfast import Holdfast
    from holdfast.api.workflow import WorkflowBuilder
    from holdfast.cli.app.program import Program
    from holdfast.model.run import NewRun
    from holdfast.model.workflow.graph import Concurrency, Workflow
    from holdfast.service.service import Service

SHORT_VERSION = 12
WORKFLOW_FILE_SUFFIXES = {".yaml", ".yml", ".json"}
RunRequest = Callable[[list[str]], "NewRun"]


@command("run", example="holdfast run shop:checkout -i order_id=7 --wait")
def run(
    workflow: WorkflowName,
    given: Inputs = None,
    key: Annotated[str | None, typer.Option(help="Start only once under this key.")] = None,
    version: Annotated[
        str | None, typer.Option(help="A version of a stored workflow (default: the newest).")
    ] = None,
    priority: Annotated[int, typer.Option(help="Higher goes first.")] = 0,
    at: Annotated[
        str | None, typer.Option(help="Start then: 2h from now, or a time.", metavar="WHEN")
    ] = None,
    concurrency: Annotated[
        str | None,
        typer.Option(help="A key for one run at a time, or KEY=LIMIT (default: the workflow's)."),
    ] = None,
    deadline: Annotated[
        str | None, typer.Option(help="Time limit, e.g. 2h (default: the workflow's).")
    ] = None,
    label: NewLabels = None,
    app: Annotated[
        str | None, typer.Option(help="The program with its functions, as module:name.")
    ] = None,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait",
            "-w",
            help="Show the run until it ends or needs you; brings a worker if none serves it.",
        ),
    ] = False,
    rehearsal: Annotated[
        bool, typer.Option("--rehearse", help="Play a workflow file with stubs, at no cost.")
    ] = False,
    json: Json = False,
) -> int | None:
    """Start a run of a workflow, by name, file or module:name."""
    from holdfast.service.commands.request_errors import rename_fields

    with prepare_request(workflow, app, version=version) as (service, request, program):
        wanted = replace(
            request(given or []),
            key=key,
            priority=priority,
            scheduled_for=read_moment("at", at),
            concurrency=_read_concurrency(concurrency),
            labels=parse_labels("label", label) or {},
        )
        if deadline is not None:
            wanted = replace(wanted, deadline=parse_duration("deadline", deadline))
        if rehearsal:
            return rehearse(wanted, json=json)
        with rename_fields(scheduled_for="at"):
            started = service.commands.start(wanted)
        if not json:
            _note_kept_version(started)
        if json and not wait:
            print_json(started)
        elif not wait:
            print_line(_describe_started(started))
            _print_following(started)
            from holdfast.cli.app.temporary_workers import note_unserved_steps

            note_unserved_steps(service, started, None if program is None else program.name)
        else:
            return _watch(service, started["id"], wanted.workflow, program, json=json)
    return None


def _read_concurrency(text: str | None) -> Concurrency | None:
    """The limit of a run as it is typed: `KEY` for one at a time, or `KEY=LIMIT`."""
    if text is None:
        return None
    from holdfast.model.workflow.step import Concurrency

    key, _, limit = text.rpartition("=")
    limited = key and limit.isdecimal()
    # No more digits than make a number that is refused as too large.
    return Concurrency(key=key, limit=int(limit[:20])) if limited else Concurrency(key=text)


def _watch(
    service: Service, run_id: str, workflow: Workflow, program: Program | None, *, json: bool
) -> int:
    from holdfast.cli.app.temporary_workers import workers_beside_run
    from holdfast.cli.render.live_view import waits_for_person, watch_run

    if json:
        print_note(f"{escape(workflow.name)} {run_id}")
    with workers_beside_run(service, workflow, program) as workers:
        code = watch_run(service, run_id, workers=workers, quiet=json)
    if json:
        run = service.queries.run(run_id)
        print_json(run | {"needs_you": waits_for_person(run)})
    return code


@contextmanager
def prepare_request(
    workflow: str, app: str | None, *, version: str | None
) -> Iterator[tuple[Service, RunRequest, Program | None]]:
    """The service on the store of the run, a function from inputs to the run, and the program."""
    if app is None and Path(workflow).suffix in WORKFLOW_FILE_SUFFIXES:
        from holdfast.definition.workflow_file import read_workflow_file

        read = read_workflow_file(Path(workflow))
        with open_service(begins=True) as service:
            known = service.commands.attach_called(read)
            yield service, lambda pairs: request_of_workflow(known, pairs), None
    elif app is None and ":" not in workflow:
        with open_service() as service:
            known = service.commands.find_workflow(workflow, version)
            yield service, lambda pairs: request_of_workflow(known, pairs), None
    else:
        from holdfast.cli.app.program import load_program

        program = load_program(workflow, app)
        with _serve_store_of(program.holdfast) as service:
            yield service, lambda pairs: _request_of_builder(program.workflow, pairs), program


def request_of_workflow(workflow: Workflow, pairs: list[str]) -> NewRun:
    """The run of a stored workflow or of a file; its input types mark texts and paths."""
    from holdfast.model.run import NewRun
    from holdfast.model.workflow.run_input import make_paths_absolute

    declared = None if workflow.declared is None else workflow.declared.input
    kinds = {} if declared is None else declared.get("properties", {})
    texts = {name for name, kind in kinds.items() if kind.get("type") == "string"}
    given = make_paths_absolute(workflow, _read_typed(pairs, texts), str(Path.cwd()))
    return NewRun(workflow=workflow, input=given)


def _read_typed(pairs: list[str], texts: set[str]) -> dict[str, Any]:
    """The typed inputs: text for the inputs in `texts`, for others JSON if they are JSON."""
    return read_pairs(pairs, lambda name, text: text if name in texts else read_value(text))


def _request_of_builder(builder: WorkflowBuilder, pairs: list[str]) -> NewRun:
    """The run of a program's workflow; inputs that functions declare as `str` stay text."""
    texts = {
        name
        for member in builder.known.values()
        if member.signature is not None
        for name in member.signature.inputs
        if member.signature.hints.get(name) is str
    }
    return builder.request(**_read_typed(pairs, texts))


@contextmanager
def _serve_store_of(program: Holdfast) -> Iterator[Service]:
    """The service on a program's store; commands to type next name a store other than usual."""
    from holdfast.service.project.project import is_same_store

    own, usual = program.settings.url, locate_store()
    if not is_same_store(own, usual.url):
        chosen_store.set(own)
    with program, serve_program(usual, program) as service:
        yield service


def _describe_started(run: dict[str, Any]) -> str:
    name = f"{escape(run['workflow'])} {run['id']}"
    if run["created"] and "scheduled" in run["holds"]:
        return f"{name} starts {describe_start(run)}"
    return (
        f"{name} has started" if run["created"] else f"{name} already exists: {state_of_run(run)}"
    )


def _print_following(run: dict[str, Any]) -> None:
    """Print what to type next: a run that a key has found may have ended."""
    if run["status"] in {"failed", "cancelled"}:
        from holdfast.cli.render.live_view import print_advice_on_stopped

        print_advice_on_stopped(run)
        return
    shows = f"holdfast show {run['id']}"
    if run["status"] == "completed":
        print_note(f"next:  {with_store(shows)}")
    else:
        print_note(f"watch: {with_store(shows + ' --follow')}")


def _note_kept_version(started: dict[str, Any]) -> None:
    """Note that a run that exists keeps its version of the workflow, and how to run the other."""
    if "asked_version" not in started:
        return
    from holdfast.cli.app.advice import format_typed

    kept, asked = (started[each][:SHORT_VERSION] for each in ("workflow_version", "asked_version"))
    name, key = escape(started["workflow"]), started["key"]
    print_note(f"{started['id']} keeps the version of {name} that it began with, {kept}.")
    print_note(f"What was changed since, {asked}, runs under another key:")
    print_note(f"next:  {format_typed(_replace_key(typed_arguments.get(), f'{key}-{asked}'))}")


def _replace_key(typed: Sequence[str], key: str) -> Iterator[str]:
    """Typed arguments with another key."""
    before = ""
    for each in typed:
        if before == "--key":
            yield key
        else:
            yield f"--key={key}" if each.startswith("--key=") else each
        before = each


def rehearse(run: NewRun, *, json: bool) -> int:
    """Play a run with stubs, and return its exit code."""
    import tempfile

    from holdfast.cli.render.live_view import exit_code_of_run, print_events
    from holdfast.cli.render.tree import draw_run
    from holdfast.service.project.project import StoreLocation

    if run.workflow.declared is None:
        reason = "is for workflow files: what a Python function would give, only it can say"
        raise InvalidInput("rehearse", reason)
    with tempfile.TemporaryDirectory(prefix="holdfast-rehearsal-") as folder:
        place = StoreLocation(
            url=f"sqlite:///{folder}/rehearsal.db", home=Path(folder), may_be_created=True
        )
        with serve_location(place) as service:
            run_id = service.commands.start(run)["id"]
            service.rehearse(run.workflow)
            told = service.queries.run(run_id)
            if json:
                print_json(told)
            else:
                print_events(service, told, 0)
                for line in draw_run(told):
                    print_line(line)
                print_note("A rehearsal: every step was done by a stub, and nothing of it is kept.")
    return exit_code_of_run(told) or 0
