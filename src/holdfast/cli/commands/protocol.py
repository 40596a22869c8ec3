"""The commands `work` and `guard`: the worker's protocol for scripts, on a store or a server."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app.command_registry import command, group
from holdfast.cli.app.options import Agents, Json, Tags, read_json, read_moment, read_value
from holdfast.cli.app.session import chosen_server, open_service, with_store
from holdfast.cli.app.terminal import format_json, print_json, print_line, print_note
from holdfast.cli.commands.control import print_answer
from holdfast.errors import InvalidInput
from holdfast.model.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.service.protocol.protocol import Protocol
    from holdfast.service.protocol.remote_protocol import RemoteProtocol

CHUNK = 65_536
TASK, TOKEN = "HOLDFAST_TASK", "HOLDFAST_ATTEMPT_TOKEN"

work = group("work", "Claim tasks, keep their leases and report, from a script.")

Task = Annotated[
    str | None,
    typer.Argument(metavar="TASK", help=f"The task (default: ${TASK}).", show_default=False),
]
Token = Annotated[
    str | None, typer.Option("--token", help=f"The token of the attempt (default: ${TOKEN}).")
]
Lease = Annotated[str, typer.Option(help="How long the lease lasts unless renewed.")]
Usage = Annotated[str | None, typer.Option(help='What was used, as JSON, e.g. {"usd": 0.1}.')]


@dataclass(frozen=True, kw_only=True)
class ProtocolAccess:
    """The protocol of a store or a server, and the function that resolves the address of a task."""

    protocol: Protocol | RemoteProtocol
    find: Callable[[str], str]

    def attempt(self, task: str | None, token: str | None) -> tuple[str, str]:
        """The id and token of an attempt, from the arguments or from the environment of a step."""
        named = task or os.environ.get(TASK)
        secret = token or os.environ.get(TOKEN)
        if not named:
            raise InvalidInput("task", f"is missing; name it, or set {TASK}")
        if not secret:
            raise InvalidInput("token", f"is missing; `holdfast work claim` gave it, or {TOKEN}")
        return self.find(named), secret


@contextmanager
def open_protocol(*, begins: bool = False) -> Iterator[ProtocolAccess]:
    """The protocol of the server that the environment names, or else of the store."""
    server = chosen_server()
    if server is None:
        with open_service(begins=begins) as service:
            yield ProtocolAccess(protocol=service.protocol, find=service.addresses.task)
        return
    from holdfast.cli.commands.remote_worker import open_client
    from holdfast.model.text import parse_task_id
    from holdfast.service.protocol.remote_protocol import RemoteProtocol

    with open_client(server) as client:
        yield ProtocolAccess(protocol=RemoteProtocol(client), find=parse_task_id)


@command("claim", of=work, example="holdfast work claim --agent developer --lease 10m")
def claim(
    task: Annotated[
        str | None,
        typer.Argument(metavar="TASK", help="A certain task (default: the next in line)."),
    ] = None,
    agent: Agents = None,
    tag: Tags = None,
    number: Annotated[
        int, typer.Option("--max", min=1, max=1000, help="How many to claim at most.")
    ] = 1,
    lease: Lease = "30s",
    name: Annotated[str | None, typer.Option("--worker", help="The name of the worker.")] = None,
    shell: Annotated[
        bool, typer.Option("--shell", help="Print variables of one task for `eval`.")
    ] = False,
    json: Json = False,
) -> int | None:
    """Claim ready tasks; prints them with their tokens as JSON. Exits 1 if there are none."""
    from holdfast.service.protocol.protocol import ClaimTerms

    if shell and number > 1:
        raise InvalidInput("max", "must be 1 with --shell: its variables are of one task")
    if shell and json:
        raise InvalidInput("shell", "prints variables, and --json prints JSON; type one of them")

    offer = ClaimTerms(
        worker=name or f"{socket.gethostname().partition('.')[0]}-work",
        agents=agent or None,
        tags=tag or (),
        lease=parse_duration("lease", lease),
    )
    with open_protocol(begins=True) as where:
        found = None if task is None else where.find(task)
        got = where.protocol.claim(offer.offer_own_host(), most=number, task_id=found)
    if not shell:
        print_json(got)
    for each in got["assignments"] if shell else ():
        for line in _shell_variables(each):
            print_line(line)
    if not got["assignments"] and found is not None and chosen_server() is None:
        print_note(f"{found} cannot be claimed now\nnext:  {with_store(f'holdfast why {found}')}")
    return 0 if got["assignments"] else 1


def _shell_variables(claimed: dict[str, Any]) -> Iterator[str]:
    """A claim as shell lines that set the variables which the other commands read."""
    import shlex

    from holdfast.worker.steps.command_environment import SHORT_PROMPT

    task = claimed["task"]
    payload = task.get("payload")
    prompt = payload.get("prompt") if isinstance(payload, dict) else None
    for name, value in (
        ("TASK", task["id"]),
        ("TITLE", task["title"]),
        ("ATTEMPT", str(claimed["attempt"])),
        ("ATTEMPT_TOKEN", claimed["token"]),
        ("PAYLOAD", format_json(payload)),
        ("PROMPT", prompt if isinstance(prompt, str) else ""),
    ):
        # A long environment keeps programs from starting; an old value must not stay either.
        fits = len(value.encode(errors="replace")) <= SHORT_PROMPT
        yield f"export HOLDFAST_{name}={shlex.quote(value)}" if fits else f"unset HOLDFAST_{name}"


@command("renew", of=work, example="holdfast work renew t_… --token … --progress half")
def renew(
    task: Task = None,
    token: Token = None,
    lease: Lease = "30s",
    progress: Annotated[str | None, typer.Option(help="Progress to show: text or JSON.")] = None,
    usage: Usage = None,
    json: Json = False,
) -> None:
    """Renew a lease and report progress; if it is refused, stop."""
    from holdfast.model.task import Renewal

    seconds = parse_duration("lease", lease)
    with open_protocol() as where:
        task_id, secret = where.attempt(task, token)
        renewal = Renewal(
            task_id=task_id,
            token=secret,
            progress=None if progress is None else read_value(progress),
            usage=_read_option("usage", usage),
        )
        print_answer(where.protocol.renew(renewal, seconds), json=json)


@command("complete", of=work, example="holdfast work complete t_… --token … --output '{\"n\": 3}'")
def complete(
    task: Task = None,
    token: Token = None,
    output: Annotated[
        str | None, typer.Option(help="The result as JSON; - reads it from stdin.")
    ] = None,
    usage: Usage = None,
    json: Json = False,
) -> None:
    """Report the result. The same result again is accepted, another is refused."""
    result = _read_option("output", sys.stdin.read() if output == "-" else output)
    spent = _read_option("usage", usage)
    with open_protocol() as where:
        attempt = where.attempt(task, token)
        print_answer(where.protocol.complete(*attempt, result, spent), json=json)


@command("fail", of=work, example="holdfast work fail t_… --token … --error 'no disk'")
def fail(
    task: Task = None,
    token: Token = None,
    error: Annotated[str, typer.Option(help="What went wrong: text or JSON.")] = "failed",
    final: Annotated[bool, typer.Option("--final", help="Do not retry.")] = False,
    limit_until: Annotated[
        str | None,
        typer.Option(
            help="The agent is at its usage limit for this long, e.g. 2h, or until a time."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Report a failure. The task is retried while attempts are left; a usage limit costs none."""
    with open_protocol() as where:
        attempt = where.attempt(task, token)
        if limit_until is None:
            told = where.protocol.fail(*attempt, read_value(error), retryable=not final)
        else:
            from holdfast.service.commands.request_errors import rename_fields

            until = read_moment("limit-until", limit_until)
            with rename_fields(until="limit-until"):
                told = where.protocol.reach_limit(*attempt, until)
        print_answer(told, json=json)


@command("release", of=work, example="holdfast work release t_… --token … --until 10m")
def release(
    task: Task = None,
    token: Token = None,
    until: Annotated[
        str | None,
        typer.Option(help="Not to be claimed for this long, e.g. 10m, or before a time."),
    ] = None,
    json: Json = False,
) -> None:
    """Give a task back, at no cost in attempts."""
    with open_protocol() as where:
        attempt = where.attempt(task, token)
        given = read_moment("until", until)
        print_answer(where.protocol.release(*attempt, given), json=json)


@command("log", of=work, example="make 2>&1 | holdfast work log t_… --token …")
def log(
    task: Task = None,
    token: Token = None,
    text: Annotated[str | None, typer.Option(help="The text to add (default: read stdin).")] = None,
) -> None:
    """Add to the log of an attempt, from --text or stdin."""
    with open_protocol() as where:
        task_id, secret = where.attempt(task, token)
        for chunk in split_between_characters(_read_chunks(text)):
            where.protocol.log(task_id, secret, chunk)


@command("guard", example="holdfast guard && git push")
def guard(task: Task = None, token: Token = None, json: Json = False) -> None:
    """Check before a side effect that the attempt may still act. Exits 1 if it may not."""
    with open_protocol() as where:
        print_answer(where.protocol.guard(*where.attempt(task, token)), json=json)


def _read_chunks(text: str | None) -> Iterable[bytes]:
    if text is not None:
        return [text.encode() + b"\n"]
    # Each chunk is sent when it is read, because a pipe may stay open for long.
    return iter(lambda: os.read(sys.stdin.fileno(), CHUNK), b"")


def split_between_characters(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks, split between characters and not inside one: servers take logs as text."""
    import codecs

    rest = b""
    for chunk in chunks:
        data = rest + chunk
        _, whole = codecs.utf_8_decode(data, "replace", False)  # noqa: FBT003 - not the end yet
        rest = data[whole:]
        if whole:
            yield data[:whole]
    if rest:
        yield rest


def _read_option(field: str, text: str | None) -> Any:  # noqa: ANN401 - JSON is any value
    return None if text is None else read_json(field, text)
