"""Resources: runs, tasks and logs, for clients that let a person choose what an agent reads."""

from __future__ import annotations

import re

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from holdfast.errors import HoldfastError, InvalidInput, NotFound
from holdfast.mcp.read_tools import MAX_LOG
from holdfast.mcp.tools import FindCaller, View, describe_refusal

JSON = "application/json"
MAX_LISTED = 50
_NUMBER = re.compile(r"[0-9]{1,9}")


class Resources:
    """Each resource has an address such as `holdfast://runs/r_…`; the newest runs are listed."""

    def __init__(self, find_caller: FindCaller) -> None:
        self._find_caller = find_caller

    def install(self, server: MCPServer) -> None:
        server.resource("holdfast://runs", name="runs", mime_type=JSON)(self.runs)
        server.resource("holdfast://runs/{run_id}", name="run", mime_type=JSON)(self.run)
        server.resource("holdfast://tasks/{task_id}", name="task", mime_type=JSON)(self.task)
        server.resource("holdfast://tasks/{task_id}/log", name="log")(self.log)
        server.resource("holdfast://tasks/{task_id}/log/{attempt}", name="attempt")(self.attempt)

    def list_newest(self) -> list[View]:
        """The runs that are listed, newest first."""
        return list(self._find_caller().service.queries.runs(limit=MAX_LISTED)["items"])

    def runs(self) -> View:
        """The newest runs: their ids, workflows and statuses."""
        return {"items": self.list_newest()}

    def run(self, run_id: str) -> View:
        """One run with all its tasks."""
        service = self._find_caller().service
        with _ResourceErrors():
            return service.queries.run(service.addresses.run(run_id))

    def task(self, task_id: str) -> View:
        """One task: its state, payload, output, error, attempts and children."""
        service = self._find_caller().service
        with _ResourceErrors():
            return service.queries.task_with_attempts(service.addresses.task(task_id))

    def log(self, task_id: str) -> str:
        """The end of what the latest attempt of a task wrote."""
        return self._read(task_id, None)

    def attempt(self, task_id: str, attempt: str) -> str:
        """The end of what one attempt of a task wrote."""
        if not _NUMBER.fullmatch(attempt):
            raise ResourceNotFoundError(f"not_found: {attempt!a} is no number of an attempt")
        return self._read(task_id, int(attempt))

    def _read(self, task_id: str, attempt: int | None) -> str:
        service = self._find_caller().service
        with _ResourceErrors():
            _, text = service.read_attempt_log(service.addresses.task(task_id), attempt)
        return text[-MAX_LOG:].decode(errors="replace")


class _ResourceErrors:
    """Raises refusals as errors of resources; an address of no resource counts as not found."""

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, HoldfastError):
            text = describe_refusal(error)
            missing = isinstance(error, NotFound | InvalidInput)
            raise (ResourceNotFoundError if missing else ResourceError)(text) from error
