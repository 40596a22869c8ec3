"""The commands `serve`, `up`, `token`, `open` and `mcp`: servers of a store, and their tokens."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from holdfast.cli.app.command_registry import Store, command, group
from holdfast.cli.app.log_output import LogJson, logs_json, print_announcement, show_logs
from holdfast.cli.app.options import AnyAddress, Grace, HearCommands, Json
from holdfast.cli.app.session import (
    INSTALL_SERVER,
    actor,
    begin_store,
    chosen_server,
    chosen_store,
    format_url,
    is_inside_attempt,
    keep_up_store,
    locate_store,
    open_service,
    project_settings,
    serve_program,
    with_store,
    worker_settings,
)
from holdfast.cli.app.terminal import (
    escape,
    is_terminal,
    print_json,
    print_line,
    print_note,
    print_table,
)
from holdfast.cli.render.formats import format_ago, now
from holdfast.errors import InvalidInput, StoreGone, StoreUnreachable
from holdfast.model.text import is_task_id, parse_run_id
from holdfast.model.worker import EVERY_AGENT
from holdfast.service.queries.views import View, read_time

if TYPE_CHECKING:
    from holdfast.api.holdfast import Holdfast
    from holdfast.api.option_types import WorkerKeywords
    from holdfast.server.gate import GateRules
    from holdfast.server.http_server import HttpServer
    from holdfast.server.listen_address import ListenAddress
    from holdfast.service.admin.tokens import Tokens
    from holdfast.service.service import Service
    from holdfast.settings import ProjectSettings

log = logging.getLogger("holdfast.server")
# The packages of the server that an installation without extras lacks.
SERVER_PACKAGES = ("fastapi", "httptools", "prometheus_client", "uvicorn")
DEFAULT_ROLE = "viewer"
OTHER_SERVER_ADVICE = "`holdfast open --server URL` asks one that is elsewhere"
ROLES = ("planner", "worker", "operator", "viewer")
token = group(
    "token", "Print this store's admin token; create, list and revoke others.", alone=True
)

Host = Annotated[str, typer.Option(help="The address to listen on.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 picks a free one.")]
Public = Annotated[
    bool, typer.Option("--public", help="Allow an address beyond this machine; put TLS in front.")
]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option("--allow-host", help="Another host name that clients may use; repeatable."),
]
AllowedOrigins = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-origin", help="An origin whose pages may call, e.g. https://name; repeatable."
    ),
]
RateLimit = Annotated[
    int, typer.Option("--rate", min=0, help="Calls per second for each token; 0 for no limit.")
]
ProxyAddresses = Annotated[
    list[str] | None,
    typer.Option(
        "--proxy",
        envvar="HOLDFAST_PROXIES",
        help="A proxy, by address or network, whose X-Forwarded-For counts; repeatable.",
    ),
]
ConnectionLimit = Annotated[
    int,
    typer.Option("--connections", min=1, help="Connections at once, if `ulimit -n` allows them."),
]
App = Annotated[
    str | None, typer.Argument(metavar="APP", help="A program's Holdfast object, as module:name.")
]


@command("serve", example="holdfast serve --port 8765")
def serve(
    host: Host = "127.0.0.1",
    port: Port = 8765,
    public: Public = False,
    allow_host: AllowedHosts = None,
    allow_origin: AllowedOrigins = None,
    rate: RateLimit = 5_000,
    proxy: ProxyAddresses = None,
    connections: ConnectionLimit = 5_000,
    hear: HearCommands = False,
    log_json: LogJson = False,
) -> None:
    """Serve the store over HTTP until stopped, then drain."""
    show_logs(logging.INFO, json=log_json)
    bind = _listen_address(host, port, public=public)
    from holdfast.server.http_server import serve_until_signalled

    rules = _build_rules(bind, allow_host, allow_origin, rate, proxy, connections)
    with (
        _open_store(None, hear=hear) as program,
        _serve_http(program, bind, rules) as (server, service),
        stop_when_store_is_gone(service, server.stop),
    ):
        serve_until_signalled(server)


@command("up", example="holdfast up")
def up(
    app: App = None,
    host: Host = "127.0.0.1",
    port: Port = 8765,
    public: Public = False,
    agent: Annotated[
        list[str] | None,
        typer.Option("--agent", "-a", help="An agent to serve; repeatable (default: every one)."),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(help="Steps at once (default: 32 with APP, else 2)."),
    ] = None,
    grace: Grace = None,
    allow_host: AllowedHosts = None,
    allow_origin: AllowedOrigins = None,
    rate: RateLimit = 5_000,
    proxy: ProxyAddresses = None,
    connections: ConnectionLimit = 5_000,
    hear: HearCommands = False,
    log_json: LogJson = False,
) -> None:
    """Run server and worker in one process."""
    show_logs(logging.INFO, json=log_json)
    bind = _listen_address(host, port, public=public)
    from holdfast.server.http_server import serve_until_signalled

    rules = _build_rules(bind, allow_host, allow_origin, rate, proxy, connections)
    settings = worker_settings()
    if concurrency is None:
        concurrency = settings.agents if app is None else settings.functions
    options: dict[str, Any] = {
        "agents": agent or [EVERY_AGENT],
        "commands": settings.commands,
        "concurrency": concurrency,
        "least_disk": settings.least_disk,
        "grace": _read_grace(grace, settings),
    }
    chosen = {each: value for each, value in options.items() if value is not None}
    with (
        _open_store(app, hear=hear) as program,
        _serve_http(program, bind, rules, options["grace"]) as (server, service),
        program.worker(**cast("WorkerKeywords", chosen)) as worker,
        stop_when_store_is_gone(service, server.stop),
    ):
        heard_at: list[float] = []

        def hear_signal() -> None:
            heard_at.append(monotonic())
            worker.drain()

        serve_until_signalled(server, hear_signal)
        if heard_at and options["grace"] is not None:
            worker.stop(grace=max(0.0, heard_at[0] + options["grace"] - monotonic()))


def _read_grace(given: str | None, settings: ProjectSettings) -> float | None:
    """The seconds that running steps have after a signal; None for as long as they take."""
    from holdfast.model.units import parse_grace

    return settings.grace if given is None else parse_grace("grace", given)


@contextmanager
def stop_when_store_is_gone(service: Service, stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` when the file of the store is gone, and raise StoreGone when the block ends."""
    told: list[StoreGone] = []

    def end(error: StoreGone) -> None:
        told.append(error)
        stop()

    remove = service.on_gone(end)
    yield
    remove()
    if told:
        raise told[0]


def _listen_address(host: str, port: int, *, public: bool) -> ListenAddress:
    """The checked address to listen on; missing packages of the server are refused too."""
    from importlib.util import find_spec

    from holdfast.server.listen_address import ListenAddress

    missing = [each for each in SERVER_PACKAGES if not find_spec(each)]
    if missing:
        reason = f"needs {', '.join(missing)}: {INSTALL_SERVER}"
        raise InvalidInput("server", reason)
    bind = ListenAddress(host=host, port=port, public=public)
    bind.check()
    return bind


def _build_rules(
    bind: ListenAddress,
    hosts: list[str] | None,
    origins: list[str] | None,
    rate: int,
    proxies: list[str] | None,
    connections: int,
) -> GateRules:
    from holdfast.server.auth.rate_limits import Rate
    from holdfast.server.connection_limits import ConnectionLimits
    from holdfast.server.gate import LOCAL_HOSTS, GateRules
    from holdfast.server.proxies import Proxies

    own = frozenset(each.lower() for each in (*(hosts or ()), bind.host))
    rate_limit = Rate(per_second=rate, burst=2 * rate) if rate else None
    return GateRules(
        hosts=LOCAL_HOSTS | own,
        origins=frozenset(origins or ()),
        rate=rate_limit,
        proxies=Proxies.read(proxies or ()),
        connections=ConnectionLimits(connections=connections),
    )


@contextmanager
def _open_store(app: str | None, *, hear: bool) -> Iterator[Holdfast]:
    from holdfast.cli.commands.workers import open_program

    with open_program(app, None) as program:
        print_announcement(f"store {format_url(program.settings.url)}")
        with keep_up_store(program, project_settings().keep, hear=hear):
            yield program


@contextmanager
def _serve_http(
    program: Holdfast, bind: ListenAddress, rules: GateRules, grace: float | None = None
) -> Iterator[tuple[HttpServer, Service]]:
    from holdfast.server.application import Application
    from holdfast.server.http_server import DRAIN_SECONDS, HttpServer
    from holdfast.service.admin.audit import start_audit_file
    from holdfast.service.admin.tokens import token_path
    from holdfast.service.project.server_address import announce_server

    with serve_program(locate_store(), program) as service:
        drain = DRAIN_SECONDS if grace is None else min(grace, DRAIN_SECONDS)
        server = HttpServer(Application(service, rules), bind, drain_seconds=drain)
        start_audit_file(program.settings.url)
        service.tokens.ensure_own()
        with announce_server(program.settings.url, server.url):
            print_line(server.url)
            own = token_path(program.settings.url)
            print_announcement(f"token {own}   ({with_store('holdfast token')} prints it)")
            _print_browser_link(server.url, service.tokens)
            yield server, service
    log.info("ended: nothing is under way here any more")


def _print_browser_link(url: str, tokens: Tokens) -> None:
    """Print a one-time link on a terminal; a log, which is kept, gets no link."""
    if is_terminal(sys.stderr) and not logs_json():
        print_note(f"open  {url}{tokens.link_own()['path']}   (once, within 10 minutes)")
    else:
        print_announcement(f"open  {with_store('holdfast open')} lets a browser in")


@token.callback(invoke_without_command=True)
def show_token(context: typer.Context, db: Store = None) -> None:
    if context.invoked_subcommand is not None:
        return
    chosen_store.set(db or chosen_store.get())
    with begin_store() as service:
        print_line(service.tokens.ensure_own())


@command("create", of=token, example="holdfast token create ci --role worker --agent builder")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name for the token.")],
    role: Annotated[
        str | None, typer.Option(help="viewer, operator, worker or admin (default: viewer).")
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option("--agent", "-a", help="For a worker: only this agent; repeatable."),
    ] = None,
    expires: Annotated[
        str | None, typer.Option(help="How long it is valid, e.g. 30d (default: for ever).")
    ] = None,
    json: Json = False,
) -> None:
    """Create a token and print it once."""
    with begin_store() as service:
        made = service.tokens.create(
            name, role=role or DEFAULT_ROLE, agents=agent or None, expires=expires
        )
    print_json(made) if json else print_line(made["token"])
    if role is None:
        print_note(
            f"a {DEFAULT_ROLE}, which only looks; --role operator, worker or admin may do more"
        )


@command("list", of=token, example="holdfast token list")
def list_tokens(json: Json = False) -> None:
    """List tokens: names, roles and times, never the secrets."""
    with open_service() as service:
        page = service.tokens.list()
    if json:
        print_json(page)
        return
    if not page["items"]:
        print_note("No tokens.")
        return
    rows = [
        [
            escape(each["name"]),
            each["role"],
            escape(", ".join(each.get("agents", ()))),
            format_ago(read_time(each["created_at"])),
            each.get("expires_at", ""),
            _describe_end(each),
        ]
        for each in page["items"]
    ]
    print_table(("NAME", "ROLE", "AGENTS", "MADE", "EXPIRES", ""), rows)


def _describe_end(access: View) -> str:
    if "revoked_at" in access:
        return "revoked"
    expires = read_time(access.get("expires_at"))
    return "expired" if expires is not None and expires <= now() else ""


@command("revoke", of=token, example="holdfast token revoke ci")
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of a token.")],
    json: Json = False,
) -> None:
    """Revoke a token at once."""
    with open_service() as service:
        told = service.tokens.revoke(name)
    print_json(told) if json else print_line(f"{escape(name)} is revoked")


@command("open", example="holdfast open @last")
def open_browser(
    address: AnyAddress = None,
    server: Annotated[
        str | None,
        typer.Option(help="The server's URL (default: $HOLDFAST_SERVER, or this store's server)."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--print", help="Print the link instead of starting a browser.")
    ] = False,
    json: Json = False,
) -> None:
    """Open a page of Holdfast in a browser, by a one-time link."""
    named = chosen_server() if server is None else server
    page = "" if address is None else f"&to={_find_page(address, named)}"
    url, made = _link_of_store() if named is None else _link_of_server(named)
    link = url + made["path"] + page
    if json:
        print_json({"url": link, "expires_at": made["expires_at"]})
    elif show or not is_terminal() or not _open_in_browser(link):
        print_line(link)


def _find_page(address: str, server: str | None) -> str:
    """The path of the page of a run or task; a named server is not asked what an address means."""
    if server is None:
        with open_service() as service:
            found = service.addresses.find(address)
    else:
        found = address if is_task_id(address) else parse_run_id(address, field="id")
    return f"/{'tasks' if is_task_id(found) else 'runs'}/{found}"


def _link_of_store() -> tuple[str, dict[str, Any]]:
    """The URL of the store's server, and a link that is made in the store without any token."""
    from holdfast.service.project.server_address import find_server

    url = find_server(locate_store().url)
    if url is None:
        raise StoreUnreachable(
            "no server of this store runs on this machine, as far as can be seen; "
            f"`{with_store('holdfast up')}` starts one, and {OTHER_SERVER_ADVICE}"
        )
    with open_service() as service:
        return url, service.tokens.link_own()


def _link_of_server(named: str) -> tuple[str, dict[str, Any]]:
    """The URL of a named server, and a link that the server makes for the owner of a token."""
    from holdfast.cli.commands.remote_worker import open_client

    with open_client(named) as client:
        try:
            return client.url, client.post("/links", {}, path=str, expires_at=str)
        except StoreUnreachable as error:
            said = f"{error}; `holdfast up` starts a server, and {OTHER_SERVER_ADVICE}"
            raise StoreUnreachable(said) from error


def _open_in_browser(link: str) -> bool:
    import webbrowser

    return webbrowser.open(link)


@command("mcp", example="holdfast mcp --as worker")
def mcp(
    role: Annotated[
        str,
        typer.Option("--as", metavar="ROLE", help="The role: planner, worker, operator or viewer."),
    ] = "planner",
    name: Annotated[
        str | None, typer.Option("--worker", help="The name of the worker (default: HOST-mcp).")
    ] = None,
) -> None:
    """Serve MCP tools for a role on stdin/stdout."""
    from importlib.util import find_spec

    if role not in ROLES:
        raise InvalidInput("as", f"{role!r} is not one of {', '.join(ROLES)}")
    if not find_spec("mcp"):
        raise InvalidInput("mcp", "is not installed: " + INSTALL_SERVER)
    if role == "worker" and is_inside_attempt():
        reason = (
            "would report past the worker of this command, which keeps its secrets out; "
            "use `holdfast work …`, `holdfast guard` or HTTP at HOLDFAST_SERVER instead"
        )
        raise InvalidInput("as", reason)
    from holdfast.mcp.server import ToolRole, make_server
    from holdfast.mcp.tools import ToolCaller

    worker = name or f"{socket.gethostname().partition('.')[0]}-mcp"
    with begin_store() as service:
        service.actor = f"{actor()}:{role}"
        caller = ToolCaller(service=service, worker=worker, wait=service.own_long_polls.wait)
        make_server(lambda: caller, ToolRole(role)).run()
