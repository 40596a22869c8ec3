"""The commands of `bus`: relays, groups and their lag, messages, and parked messages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app.command_registry import Store, command, group
from holdfast.cli.app.options import Json, Limit
from holdfast.cli.app.session import chosen_bus, chosen_store, format_url, open_service, with_store
from holdfast.cli.app.terminal import escape, paint, print_json, print_line, print_note, print_table
from holdfast.cli.render.formats import format_count, format_since, one_line
from holdfast.errors import BusUnreachable

if TYPE_CHECKING:
    from holdfast.service.admin.bus import BusAdmin

bus = group("bus", "Show relays, groups, lag and waiting messages.", alone=True)

ChannelName = Annotated[
    str, typer.Argument(metavar="CHANNEL", help="A channel, e.g. workflow.events.")
]
GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="A consumer group.")]
HandlerName = Annotated[
    str, typer.Argument(metavar="HANDLER", help="GROUP/NAME, as `bus parked` lists it.")
]
MessageId = Annotated[
    str, typer.Argument(metavar="MESSAGE", help="The message_id, as `bus parked` lists it.")
]
_ENVELOPE = (
    '{"message_id": "order-7", "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", '
    '"type": "run.start", "created_at": "2026-01-31T12:00:00Z", '
    '"payload": {"workflow": "shop", "input": {}}}'
)
_HEARING = (
    "`holdfast up --hear`, with the same HOLDFAST_BUS or none, hears what comes from then on."
)
_READERS = {
    "workflow.commands": _HEARING,
    "agent.results": _HEARING,
    "agent.tasks": "It waits for the first; agents have theirs: holdfast.bus.Claimant(…)",
}
_STATES = {
    "parked": "parked",
    "replayed": "replayed, for the next consumer",
    "retrying": "tried again later",
    "behind": "waits behind another",
}


@contextmanager
def _open_bus_admin() -> Iterator[BusAdmin]:
    with chosen_bus() as url:
        try:
            with open_service() as service, service.bus(url) as buses:
                yield buses
        except BusUnreachable as error:
            where = f"HOLDFAST_BUS is {format_url(url or '')}"
            fix = "start that server or mend the variable; without it the bus is in the store"
            raise BusUnreachable(f"{error} {where}: {fix}") from error


@bus.callback(invoke_without_command=True)
def show_bus(context: typer.Context, db: Store = None, json: Json = False) -> None:
    if context.invoked_subcommand is not None:
        return
    chosen_store.set(db or chosen_store.get())
    with _open_bus_admin() as buses:
        told = buses.status()
        if told["ok"] and json:
            print_json(told)
        elif not json:
            _print_status(told)
        if not told["ok"]:
            raise BusUnreachable(told["detail"])


def _print_status(told: dict[str, Any]) -> None:
    where = "Redis" if told["bus"] == "redis" else "the store"
    print_line(f"messages are in {where}, which {'answers' if told['ok'] else 'does not answer'}")
    wanted = {"retention", *told["relays"], *({"relay/redis"} if told["bus"] == "redis" else ())}
    for duty in sorted(wanted | told["duties"].keys()):
        nobody = f"nobody: {with_store('holdfast worker')} does it"
        holder = told["duties"].get(duty, nobody)
        print_line(f"{escape(duty)}  {escape(holder)}")
    if told["items"]:
        _print_groups(told)


@command("groups", of=bus, example="holdfast bus groups")
def groups(json: Json = False) -> None:
    """List the groups of each channel: their lag, and who reads each since when."""
    with _open_bus_admin() as buses:
        page = buses.groups()
    if json:
        print_json(page)
    elif page["items"]:
        _print_groups(page)
    else:
        print_note("No groups. A program makes one: holdfast.bus.Consumer(…)")


def _print_groups(page: dict[str, Any]) -> None:
    rows = [
        [each["channel"], escape(each["group"])]
        + [str(each[name]) for name in ("lag", "waiting", "parked")]
        + [_describe_readers(each["readers"])]
        for each in page["items"]
    ]
    print_table(("CHANNEL", "GROUP", "LAG", "WAITING", "PARKED", "READ BY"), rows)


def _describe_readers(readers: list[dict[str, Any]]) -> str:
    """The live consumers of a group, each with the time since which it has read."""
    told = [
        f"{escape(each['name'])} ({format_since(each.get('since'))}, "
        f"{format_count(each['partitions'], 'partition')})"
        for each in readers
    ]
    return ", ".join(told) or paint("nobody", "yellow")


@command("lag", of=bus, example="holdfast bus lag workflow.events accounting")
def lag(channel: ChannelName, name: GroupName, json: Json = False) -> None:
    """Print how many messages a group has not acknowledged."""
    with _open_bus_admin() as buses:
        told = buses.lag(channel, name)
    if json:
        print_json(told)
        return
    print_line(str(told["lag"]))
    _note_waiting(told, "of this group")


@command("forget", of=bus, example="holdfast bus forget workflow.events accounting")
def forget_group(channel: ChannelName, name: GroupName, json: Json = False) -> None:
    """Remove a group (or relay/NAME) whose service is gone; nothing more is kept for it."""
    with _open_bus_admin() as buses:
        told = buses.forget(channel, name)
    print_json(told) if json else print_line(f"{escape(name)} is forgotten")


@command("tail", of=bus, example="holdfast bus tail workflow.events -n 20")
def tail(channel: ChannelName = "workflow.events", limit: Limit = 20, json: Json = False) -> None:
    """Print the latest messages of a channel, newest last."""
    with _open_bus_admin() as buses:
        page = buses.tail(channel, limit)
    if json:
        print_json(page)
        return
    for each in page["items"]:
        about = each.get("task_id") or each.get("run_id") or ""
        said = f"{each['created_at']}  {each['type']}  {about}  {each['message_id']}"
        print_line(escape(said))
    _note_waiting(page, "of this channel")


def _note_waiting(told: dict[str, Any], whose: str) -> None:
    if told["waiting"]:
        waiting = f"{format_count(told['waiting'], 'message')} {whose} in the store"
        listed = with_store("holdfast bus parked --all")
        print_note(f"{waiting}, {told['parked']} of them parked: {listed}")


@command("publish", of=bus, example=f"echo '{_ENVELOPE}' | holdfast bus publish workflow.commands")
def publish(
    channel: Annotated[
        str,
        typer.Argument(metavar="CHANNEL", help="workflow.commands, agent.results or agent.tasks."),
    ],
    json: Json = False,
) -> None:
    """Publish an envelope (JSON on stdin) to a channel of HOLDFAST_BUS or of the store."""
    with _open_bus_admin() as buses:
        told = buses.publish(channel, sys.stdin.read())
    if json:
        print_json(told)
        return
    print_line(f"{escape(told['message_id'])} is on {escape(channel)}")
    if not told["groups"]:
        from holdfast.service.queries.command_lines import describe_text

        print_note(f"No group reads {channel}. {describe_text(_READERS[channel], with_store)}")


@command("parked", of=bus, example="holdfast bus parked")
def parked(
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="Include messages that will be retried and those waiting behind them."
        ),
    ] = False,
    limit: Limit = 100,
    json: Json = False,
) -> None:
    """List messages parked after too many failures, and those replayed since."""
    with open_service() as service:
        page = service.parked_messages.page(everything=everything, limit=limit)
    if json:
        print_json(page)
    elif page["items"]:
        headings = ("HANDLER", "MESSAGE", "ABOUT", "TRIES", "", "ERROR")
        print_table(headings, [_parked_row(each) for each in page["items"]])
        replay = with_store("holdfast bus replay HANDLER MESSAGE")
        print_note(f"`{replay}` after the fix, or `{with_store('holdfast bus drop …')}`")
    else:
        print_note("Nothing is parked.")


def _parked_row(each: dict[str, Any]) -> list[str]:
    state = paint(_STATES[each["state"]], "red" if each["state"] == "parked" else "dim")
    error = one_line(each.get("error", ""))
    names = [escape(each[name]) for name in ("handler", "message_id", "about")]
    return [*names, str(each["tries"]), state, error]


@command("replay", of=bus, example="holdfast bus replay accounting/note_end t_01….3")
def replay(handler: HandlerName, message: MessageId, json: Json = False) -> None:
    """Retry a parked message; those waiting behind it follow."""
    with open_service() as service:
        told = service.parked_messages.replay(handler, message)
    print_json(told) if json else print_line(
        f"{escape(message)} is tried again by the next consumer of {escape(handler)}"
    )


@command("drop", of=bus, example="holdfast bus drop accounting/note_end t_01….3")
def drop(handler: HandlerName, message: MessageId, json: Json = False) -> None:
    """Drop a parked message for good; those waiting behind it follow."""
    with open_service() as service:
        told = service.parked_messages.drop(handler, message)
    print_json(told) if json else print_line(f"{escape(message)} is dropped")
