"""Allowlist: the commands and URLs that a server may have a worker elsewhere run and call."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.model.task import Assignment
from holdfast.model.workflow.declarations import HttpCall, StepWork, Workspace
from holdfast.settings import AgentCommands, OwnPreset
from holdfast.worker.attempt.context import AttemptContext
from holdfast.worker.attempt.execution import Functions, Invocation, StepFailed, UnknownFunction
from holdfast.worker.files.state_directory import StateDirectory
from holdfast.worker.problem import HttpReply
from holdfast.worker.remote.allowed_urls import AllowedUrl, parse_url
from holdfast.worker.remote.client import ServerClient
from holdfast.worker.remote.lent_presets import LentPresets, is_lent_preset
from holdfast.worker.remote.log_stream import LogStream
from holdfast.worker.remote.remote_store import RemoteStore
from holdfast.worker.secrets.secrets import SECRETS_VARIABLE, Secrets
from holdfast.worker.steps.executors import Executors
from holdfast.worker.steps.permission import NotAllowed, Permission, permit_work

# The name of the worker's own token among its secrets; commands have another HOLDFAST_TOKEN.
TOKEN = "WORKER_TOKEN"  # noqa: S105 - a name
SHOWN = 200
# With these headers a server may see another request than the one that was checked: at another URL,
# or inside of its body, when two servers disagree about its end.
_MISLEADING = frozenset({"host", "x-original-url", "x-rewrite-url", "content-length"})
_MISLEADING |= {"transfer-encoding", "te", "trailer", "connection", "upgrade"}

log = logging.getLogger("holdfast.worker")


class Allowlist(Permission):
    """The allowed commands, URLs, presets and folders of a worker, and the variables it lends.

    A command is looked up once, when the worker starts, and that file is executed. Without a `cwd`
    it runs in the folder of the worker, else in one of `folders` or below. `anything` is for a
    server that is trusted as much as the user who starts the worker.
    """

    def __init__(
        self,
        *,
        names: Iterable[str] = (),
        variables: Iterable[str] = (),
        folders: Iterable[str] = (),
        own_presets: Mapping[str, OwnPreset] = MappingProxyType({}),
        anything: bool = False,
    ) -> None:
        given = tuple(dict.fromkeys(names))
        self._presets = LentPresets([each for each in given if is_lent_preset(each)], own_presets)
        names = [each for each in given if not is_lent_preset(each)]
        self.anything = anything
        self.variables = frozenset(variables)
        self._folders = {each: Path(os.path.realpath(each)) for each in folders}
        self._addresses = tuple([AllowedUrl(each) for each in names if "://" in each])
        self._files_by_name = {each: _find_program(each) for each in names if "://" not in each}
        self._files = {str(each) for each in self._files_by_name.values() if each is not None}

    @property
    def empty(self) -> bool:
        named = self._addresses or self._files_by_name or self._presets
        return not (self.anything or named)

    @property
    def missing(self) -> list[str]:
        """The commands that are missing on this machine, or that this user may not run."""
        missing = [name for name, file in self._files_by_name.items() if file is None]
        return missing + self._presets.missing

    @property
    def missing_folders(self) -> list[str]:
        return [name for name, folder in self._folders.items() if not folder.is_dir()]

    def readable_environment(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        """The variables that a server may have read, and the one that names the file of secrets."""
        kept = {*self.variables, SECRETS_VARIABLE}
        return {n: value for n, value in environment.items() if self.anything or n in kept}

    def check_variable(self, name: str) -> None:
        if not self.anything and name not in self.variables:
            raise NotAllowed(
                f"the variable {quote(name)} is not among those of its own that this worker lets "
                f"workflows name, and the step is left to others; {_advice('--allow-env', name)}"
            )

    def secrets(self, names: frozenset[str]) -> frozenset[str]:
        """Only the allowed ones of some secret names, so that commands keep all other variables."""
        return names if self.anything else names & self.variables

    def check(self, work: StepWork) -> StepWork:
        if self.anything:
            return work
        for name in work.env:
            if name not in self.variables:
                raise NotAllowed(
                    f"the step sets the variable {quote(name)}, which is not among those that this "
                    f"worker lets workflows set, and is left to others; "
                    f"{_advice('--allow-env', name)}"
                )
        if work.use is not None:
            self._presets.check(work.use)
        command = None if work.command is None else self._check_command(work.command)
        http = None if work.http is None else self._check_call(work.http)
        workspace = None if work.workspace is None else self._check_workspace(work.workspace)
        # In a workspace the folder lies below its worktree, wherever that is.
        inside = work.access is not None
        cwd = work.cwd if work.cwd is None or inside else self._check_folder(work.cwd)
        return replace(work, command=command, http=http, cwd=cwd, workspace=workspace)

    def _check_command(self, command: tuple[str, ...]) -> tuple[str, ...]:
        name = command[0]
        file = name if name in self._files else self._files_by_name.get(name)
        if file is not None:
            return (str(file), *command[1:])
        if name in self._files_by_name:
            raise NotAllowed(
                f"the command {quote(name)} was not found when this worker started, and the step "
                "is left to others; install it, and start the worker again"
            )
        raise self._refuse(name, "command")

    def _check_workspace(self, workspace: Workspace) -> Workspace:
        """A repository below an allowed folder or at an allowed URL, and an allowed setup."""
        setup = self._check_command(workspace.setup) if workspace.setup else ()
        if "://" in workspace.git:
            call = self._check_call(HttpCall(url=workspace.git))
            return replace(workspace, git=call.url, setup=setup)
        return replace(workspace, git=self._check_folder(workspace.git), setup=setup)

    def _check_folder(self, cwd: str) -> str:
        """The folder without links, so that nothing leads out of the allowed one."""
        folder = Path(os.path.realpath(cwd))
        if any(folder.is_relative_to(each) for each in self._folders.values()):
            return str(folder)
        raise NotAllowed(
            f"the folder {quote(cwd)} is not below one that this worker was told to allow, and the "
            f"step is left to others; {_advice('--allow-cwd', cwd)}"
        )

    def _check_call(self, http: HttpCall) -> HttpCall:
        try:
            url = parse_url(http.url)
        except ValueError as error:
            raise NotAllowed(
                f"the address {quote(http.url)} is not called by a worker that allows only some: "
                f"{error}; the step is left to others"
            ) from error
        if not any(each.allows(url) for each in self._addresses):
            raise self._refuse(http.url, "address")
        for name in http.headers:
            if name.strip().lower() in _MISLEADING:
                raise NotAllowed(
                    f"the step sets the header {quote(name)}, by which a server may find another "
                    "request than its address says, and is left to others; only --allow-any "
                    "allows that"
                )
        # The checked URL is sent, so that nothing reads the text differently after the check.
        return replace(http, url=str(url))

    def _refuse(self, what: str, kind: str) -> NotAllowed:
        return NotAllowed(
            f"the {kind} {quote(what)} is not among those that this worker was told to allow, and "
            f"is left to others; {_advice('--allow', what)}"
        )


def _find_program(name: str) -> Path | None:
    """The file of a command, as a shell in this folder would find it."""
    file = shutil.which(name)
    return None if file is None else Path(file).absolute()


def quote(text: str) -> str:
    """A text from a server in a form that is safe in a line of a log."""
    return ascii(text) if len(text) <= SHOWN else f"{text[:SHOWN]!a}…"


def _advice(option: str, value: str) -> str:
    plain = value.isprintable() and len(value) <= SHOWN
    typed = shlex.quote(value) if plain else "…"
    return f"to have it run here, start this worker again with `{option} {typed}` besides"


class NoFunctions:
    """The functions of a worker elsewhere: none, so tasks that need one are left to others."""

    def bind(self, *_: object) -> Invocation:
        raise UnknownFunction("it is neither a command nor a call, and is left to others")

    def has_function(self, *_: str | None) -> bool:
        return False

    def list_equipped(self, _: Sequence[str]) -> tuple[str, ...]:
        return ()

    def equip(self, assignment: Assignment) -> Assignment:
        return assignment


class ServerForwarder:
    """Forwards the calls of commands to the server, with the token of the worker."""

    def __init__(self, client: ServerClient) -> None:
        self._client = client

    def forward(self, task_id: str, verb: str, body: dict[str, Any]) -> HttpReply:
        path = "/claims/renew" if verb == "renew" else f"/claims/{task_id}/{verb}"
        return self._client.forward(path, body)


class RemoteExecutors(Executors):
    def __init__(
        self,
        store: RemoteStore,
        allowed: Allowlist,
        state: StateDirectory,
        commands: AgentCommands = MappingProxyType({}),
    ) -> None:
        functions: Functions = NoFunctions()
        url, own = store.settings.url, {TOKEN: store.token}
        forwarder = ServerForwarder(store.client)
        secrets = Secrets(url, allowed.readable_environment(os.environ), own)
        super().__init__(
            store,
            functions,
            lambda _: forwarder,
            state=state,
            secrets=secrets,
            permission=allowed,
            commands=commands,
        )
        self._store = store
        self._client = store.client
        self._allowed = allowed
        self._state = state

    def bind(self, assignment: Assignment, context: AttemptContext) -> Invocation:
        work = assignment.work
        if work is not None:
            self._check(assignment, work)
        invocation = super().bind(assignment, context)
        if invocation.asynchronous:
            return invocation
        return invocation._replace(function=self._add_log(invocation, assignment, context))

    def _check(self, assignment: Assignment, work: StepWork) -> None:
        """Leave a step that is not allowed to other workers, with the reason in its log."""
        try:
            # A missing secret or variable fails the step later, when it is filled in again.
            with suppress(StepFailed):
                permit_work(work, self._allowed, self._resources.secrets)
        except NotAllowed as refused:
            said = {"token": assignment.token, "chunk": f"{refused}\n"}
            with suppress(HoldfastError):
                self._client.transition(f"/claims/{assignment.task_id}/logs", said, bytes=int)
            raise

    def _add_log(
        self, invocation: Invocation, assignment: Assignment, context: AttemptContext
    ) -> Callable[[], object]:
        """A step whose log is sent to the server while it runs, and whole before its report."""
        path = self._state.log(assignment.task_id, assignment.attempt)
        clock, threads = self._store.clock, self._store.threads

        def run() -> object:
            attempt = (assignment, context)
            with LogStream(self._client, path, attempt, clock=clock, threads=threads):
                return invocation.function()

        return run
