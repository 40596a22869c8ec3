"""The commands of `schedule` and `lease`: schedules, previews of their ticks, and named leases."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import typer

from holdfast.cli.app.command_registry import command, group
from holdfast.cli.app.options import (
    After,
    Inputs,
    Json,
    Limit,
    ScheduleName,
    complete_workflow,
    read_json,
)
from holdfast.cli.app.session import actor, open_service, with_store
from holdfast.cli.app.terminal import (
    escape,
    paint,
    print_json,
    print_json_line,
    print_line,
    print_note,
    print_table,
)
from holdfast.cli.render.formats import format_ago, format_span, now, one_line
from holdfast.errors import InvalidInput
from holdfast.model.units import parse_duration

schedule = group("schedule", "Manage schedules.")
lease = group("lease", "Acquire, renew and release named locks with a time limit.")

Key = Annotated[str, typer.Argument(metavar="KEY", help="The name of the lease.")]
Token = Annotated[str, typer.Option("--token", help="The token that acquire printed.")]
Ttl = Annotated[str, typer.Option(help="How long it lasts unless renewed, e.g. 10m.")]


@command("list", of=schedule, example="holdfast schedule list")
def list_schedules(limit: Limit = 100, after: After = None, json: Json = False) -> None:
    """List schedules by name, and when each fires next."""
    with open_service() as service:
        page = service.queries.schedules(limit=limit, after=after)
    if json:
        print_json(page)
        return
    if not page["items"]:
        adding = with_store("holdfast schedule add NAME --cron … --workflow …")
        print_note(f"No schedules. Add one: {adding}")
        return
    headings = ("NAME", "CRON", "ZONE", "STARTS", "NEXT", "LAST", "")
    print_table(headings, [_schedule_row(each) for each in page["items"]])


def _schedule_row(each: dict[str, Any]) -> list[str]:
    from holdfast.service.queries.views import read_time

    upcoming = read_time(each.get("next_at"))
    soon = paint("paused", "yellow") if upcoming is None else f"in {format_span(upcoming - now())}"
    error = one_line(each["last_error"]) if "last_error" in each else ""
    starts = escape(each.get("workflow") or each.get("task") or "")
    last = format_ago(read_time(each.get("last_at")))
    return [escape(each["name"]), each["cron"], each["zone"], starts, soon, last, error]


@command(
    "add",
    of=schedule,
    example="holdfast schedule add nightly --cron '30 2 * * *' --workflow report.yaml -i days=1",
)
def add_schedule(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A name; an existing schedule of that name is replaced."
        ),
    ],
    cron: Annotated[
        str, typer.Option(help="A cron expression: minute, hour, day, month, weekday.")
    ],
    workflow: Annotated[
        str | None,
        typer.Option(
            help="The workflow to start: a name, a file, or module:name.",
            autocompletion=complete_workflow,
        ),
    ] = None,
    given: Inputs = None,
    task: Annotated[str | None, typer.Option(help="Start a task with this title instead.")] = None,
    agent: Annotated[str, typer.Option(help="For a task: the agent it is for.")] = "default",
    payload: Annotated[str | None, typer.Option(help="For a task: its payload, as JSON.")] = None,
    zone: Annotated[str, typer.Option(help="The time zone, e.g. Europe/Berlin.")] = "UTC",
    missed: Annotated[
        str, typer.Option(help="What to start for ticks that were missed: one, all or skip.")
    ] = "one",
    json: Json = False,
) -> None:
    """Start a run or a task at each tick of a cron expression."""
    from holdfast.model.cron_ticks import check_cron
    from holdfast.model.schedule import NewSchedule
    from holdfast.model.task import NewTask

    check_cron(cron, zone)
    if (workflow is None) == (task is None):
        raise InvalidInput("workflow", "say what it starts: either --workflow or --task")
    put = functools.partial(NewSchedule, name=name, cron=cron, zone=zone, missed=missed)
    if workflow is not None:
        from holdfast.cli.commands.run import prepare_request

        with prepare_request(workflow, None, version=None) as (service, request, _):
            added = service.commands.add_schedule(put(starts=request(given or [])))
    else:
        if given:
            raise InvalidInput("input", "is for a workflow; a task is given --payload")
        value = None if payload is None else read_json("payload", payload)
        starts = NewTask(title=str(task), agent=agent, payload=value)
        with open_service(begins=True) as service:
            added = service.commands.add_schedule(put(starts=starts))
    _print_added(added, json=json)


def _print_added(added: dict[str, Any], *, json: bool) -> None:
    if json:
        print_json(added)
        return
    name, cron, zone, starts, soon, *_ = _schedule_row(added)
    print_line(f"{name} starts {starts} at {cron} {zone}, next {soon}")
    print_note(with_store("A worker fires it: holdfast worker"))


@command("pause", of=schedule, example="holdfast schedule pause nightly")
def pause_schedule(name: ScheduleName, json: Json = False) -> None:
    """Pause a schedule; ticks missed meanwhile are not made up for."""
    _change_schedule(name, "pause", "is paused", json=json)


@command("resume", of=schedule, example="holdfast schedule resume nightly")
def resume_schedule(name: ScheduleName, json: Json = False) -> None:
    """Resume a schedule with its next tick."""
    _change_schedule(name, "resume", "is resumed", json=json)


@command("remove", of=schedule, example="holdfast schedule remove nightly")
def remove_schedule(name: ScheduleName, json: Json = False) -> None:
    """Remove a schedule; what it started stays."""
    _change_schedule(name, "remove", "is removed", json=json)


def _change_schedule(name: str, verb: str, said: str, *, json: bool) -> None:
    with open_service() as service:
        told = service.commands.control_schedule(name, verb)
    if json:
        print_json(told)
    else:
        print_line(f"{escape(name)} {said}" + (" (as before)" if told["repeated"] else ""))


@command(
    "preview", of=schedule, example="holdfast schedule preview '0 9 * * 1-5' --zone Europe/Berlin"
)
def preview(
    cron: Annotated[str, typer.Argument(metavar="CRON", help="Minute, hour, day, month, weekday.")],
    zone: Annotated[str, typer.Option(help="The time zone, e.g. Europe/Berlin.")] = "UTC",
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, max=1000, help="How many ticks to print.")
    ] = 5,
    json: Json = False,
) -> None:
    """Print the next ticks of a cron expression."""
    ticks = next_ticks(cron, zone, count, now())
    if json:
        print_json({"items": ticks})
        return
    for tick in ticks:
        print_line(tick)


@command("acquire", of=lease, example="holdfast lease acquire deploy --ttl 10m")
def acquire(
    key: Key,
    ttl: Ttl = "30s",
    owner: Annotated[
        str | None, typer.Option(help="Who holds it (default: your user name).")
    ] = None,
    json: Json = False,
) -> int:
    """Acquire a lease and print it as JSON. Exits 1 if somebody else holds it."""
    seconds = parse_duration("ttl", ttl)
    with open_service(begins=True) as service:
        got = service.commands.acquire_lease(key, owner or actor(), seconds)
    if got is not None:
        print_json(got)
        return 0
    told = f"{key} is held by somebody else; it ends by itself, try again"
    if json:
        print_json_line({"error": {"code": "already_claimed", "message": told, "next": None}})
    else:
        print_note(escape(told))
    return 1


@command("renew", of=lease, example="holdfast lease renew deploy --token … --ttl 10m")
def renew(key: Key, token: Token, ttl: Ttl = "30s", json: Json = False) -> None:
    """Renew a lease; refused once it has expired or changed hands."""
    seconds = parse_duration("ttl", ttl)
    with open_service() as service:
        told = service.commands.renew_lease(key, _require_token(token), seconds)
    print_json(told) if json else print_line(f"{escape(key)} is kept for {ttl}")


@command("release", of=lease, example="holdfast lease release deploy --token …")
def release(key: Key, token: Token, json: Json = False) -> None:
    """Release a lease."""
    with open_service() as service:
        told = service.commands.release_lease(key, _require_token(token))
    print_json(told) if json else print_line(f"{escape(key)} is free")


def _require_token(token: str) -> str:
    if not token:
        raise InvalidInput("token", "is empty; `holdfast lease acquire` gave one")
    return token


def next_ticks(cron: str, zone: str, count: int, now: int) -> list[str]:
    """The ticks of a cron expression after a moment, in ISO 8601; this needs no store."""
    from itertools import islice

    from holdfast.model.cron_ticks import check_cron, first_tick_after, ticks_after, to_local_time

    rule, place = check_cron(cron, zone)
    first_tick_after(rule, place, now)
    ticks = islice(ticks_after(rule, place, now), count)
    return [to_local_time(tick, place).isoformat() for tick in ticks]
