"""A worker for a server: its token, its allowlist, its name and its files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

from holdfast.cli.app.log_output import print_announcement
from holdfast.cli.app.options import read_lease
from holdfast.cli.app.session import locate_store
from holdfast.errors import InvalidInput, StoreUnreachable
from holdfast.model.text import digest

if TYPE_CHECKING:
    from holdfast.cli.commands.workers import AllowOptions
    from holdfast.settings import AgentCommands
    from holdfast.worker.remote.client import ServerClient
    from holdfast.worker.remote.remote_store import RemoteStore

TOKEN = "HOLDFAST_TOKEN"  # noqa: S105 - the name of a variable
NOTHING_ALLOWED = (
    "This worker allows nothing, and gives back every step that it is given: start it with "
    "--allow COMMAND, --allow URL or --allow PRESET=ACCESS for each that it may run, or "
    "--allow-any for all of them."
)
NOT_FOUND = (
    "--allow {name}: there is no such command here, and every step that names it is left to "
    "others; install it, or write its path, and start the worker again."
)
NO_FOLDER = (
    "--allow-cwd {name}: there is no such folder here, and a command whose cwd is in it fails; "
    "make the folder, or start the worker again with another one."
)
LOCAL = ("127.0.0.1", "::1", "localhost")


def work_for_server(
    url: str,
    options: Mapping[str, Any],
    lease: str | None,
    allow: AllowOptions,
    commands: AgentCommands,
) -> None:
    """Claim and run steps from a server until Ctrl-C."""
    from holdfast.worker.remote.remote_store import RemoteStore

    # The admin token of the store is not used, because each step of the worker gets its token.
    token = _token_given(url) or _refuse_missing_token(
        url, "holdfast token create NAME --role worker"
    )
    given = {} if lease is None else read_lease(lease)
    with closing(RemoteStore(url, token, **given)) as remote_store:
        # The worker waits for a server that is unreachable, now as later.
        with suppress(StoreUnreachable):
            remote_store.client.check_role()
        _run_worker(remote_store, options, allow, commands)
        if remote_store.refused is not None:
            raise remote_store.refused


def _run_worker(
    remote_store: RemoteStore,
    options: Mapping[str, Any],
    allow: AllowOptions,
    commands: AgentCommands,
) -> None:
    from holdfast.worker.files.homes import HOME, make_home, usable_home
    from holdfast.worker.files.state_directory import StateDirectory
    from holdfast.worker.pool.worker import StoreWorker
    from holdfast.worker.pool.worker_options import WorkerOptions
    from holdfast.worker.remote.allowlist import Allowlist, RemoteExecutors
    from holdfast.worker.steps.agent_commands import list_own_presets

    here = Path.cwd()
    # The home of this folder keeps what a server sends, even if a store was named.
    home = usable_home(here, os.environ) or here / HOME
    make_home(home)
    root = home / "remote"
    if root.is_symlink():
        raise InvalidInput("home", f"{root} is a link, and leads elsewhere; remove it: rm {root}")
    allowed = Allowlist(
        names=allow.names,
        variables=allow.variables,
        folders=allow.folders,
        own_presets=list_own_presets(commands),
        anything=allow.anything,
    )
    executors = RemoteExecutors(remote_store, allowed, StateDirectory(root=root), commands)
    executors.begin()
    print_announcement(f"server {remote_store.settings.url}")
    if allowed.empty:
        print_announcement(NOTHING_ALLOWED)
    for name in allowed.missing:
        print_announcement(NOT_FOUND.format(name=name))
    for name in allowed.missing_folders:
        print_announcement(NO_FOLDER.format(name=name))
    with _with_worker_name(root, dict(options)) as chosen:
        StoreWorker(remote_store, executors, WorkerOptions(**chosen), executors.clean).run()


@contextmanager
def open_client(url: str) -> Iterator[ServerClient]:
    """A client for a server, with the token of the environment or of this folder's store."""
    from holdfast.worker.remote.client import ServerClient

    token = _token_given(url)
    known = (url, token) if token else _token_of_own_store(url)
    client = ServerClient(*(known or _refuse_missing_token(url, "holdfast token create")))
    try:
        yield client
    finally:
        client.close()


def _token_given(url: str) -> str | None:
    """The token for a server from the environment."""
    if not url.startswith(("http://", "https://")):
        raise InvalidInput("server", f"{url!r} is not the URL of a server, e.g. http://host:8765")
    return os.environ.get(TOKEN)


def _token_of_own_store(url: str) -> tuple[str, str] | None:
    """The address and the token of the server of this folder's store, if a URL names that server.

    Another process on this machine may listen under the URL. The token is therefore sent only to
    the address that the server itself announced.
    """
    from holdfast.service.admin.tokens import read_token
    from holdfast.service.project.server_address import find_server

    store = locate_store().url
    served = find_server(store)
    if served is None or not _is_same_server(url, served):
        return None
    token = read_token(store)
    return None if token is None else (served, token)


def _is_same_server(url: str, served: str) -> bool:
    """Whether a URL names a server of this machine, by its address or as localhost."""
    one, other = urlsplit(url), urlsplit(served)
    local = other.hostname in LOCAL and one.hostname in ("localhost", other.hostname)
    ports = [each.netloc.rpartition(":")[2] for each in (one, other)]
    return local and one.scheme == other.scheme and ports[0] == ports[1]


def _refuse_missing_token(url: str, command: str) -> NoReturn:
    reason = f"that for {url} is missing; set {TOKEN} to what `{command}` printed there"
    raise InvalidInput("token", reason)


@contextmanager
def _with_worker_name(root: Path, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The options with a name for the worker, which a file lock reserves while the worker runs.

    The system releases the lock at any end of the process; then the next worker gets the name.
    """
    from holdfast.worker.pool.worker_options import WorkerOptions

    if options.get("name") is not None:
        yield options
        return
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    here = digest(str(root.absolute()))[:4]
    for slot in count(1):
        with (root / f"worker-{slot}.lock").open("a") as held:
            try:
                flock(held, LOCK_EX | LOCK_NB)
            except OSError:
                continue
            yield options | {"name": WorkerOptions(service=f"remote-{here}").number_name(slot)}
            return
