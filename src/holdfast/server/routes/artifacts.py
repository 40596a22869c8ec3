"""Artifact routes: the files that a task has kept, listed and read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from holdfast.server.exception_handlers import JsonAnswer
from holdfast.server.request_context import After, Context, Limit, TaskId
from holdfast.server.route_table import VIEWER_ROLES, RouteTable
from holdfast.server.schemas import responses
from holdfast.service.protocol.artifacts import OpenArtifact

table = RouteTable(tag="tasks")
CHUNK_BYTES = 256 * 1024
# A browser saves a file, and shows nothing that a worker has written as a page of this server.
MEDIA = "application/octet-stream"
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file",
        "content": {MEDIA: {"schema": {"type": "string", "format": "binary"}}},
    }
}


class FileAnswer(StreamingResponse):
    """The content of an artifact, whose file is closed however the answer ends."""

    def __init__(self, opened: OpenArtifact) -> None:
        described = opened.description
        headers = {
            "Content-Disposition": f'attachment; filename="{described["name"]}"',
            "Content-Length": str(described["bytes"]),
            "ETag": f'"{described["digest"]}"',
        }
        super().__init__(_read_chunks(opened.file), headers=headers, media_type=MEDIA)
        self._file = opened.file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._file:
            await super().__call__(scope, receive, send)


def _read_chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        yield chunk


@table.route(
    "GET", "/tasks/{task_id}/artifacts", VIEWER_ROLES, answers=responses.ArtifactPageResponse
)
def list_artifacts(
    task_id: TaskId, context: Context, limit: Limit = 100, after: After = None
) -> JsonAnswer:
    """The files that it has kept, by name; of each name the newest."""
    return JsonAnswer(context.service.artifacts(task_id, limit=limit, after=after))


@table.route(
    "GET",
    "/tasks/{task_id}/artifacts/{name}",
    VIEWER_ROLES,
    kind=FileAnswer,
    also=_FILE,
)
def read_artifact(task_id: TaskId, name: str, context: Context) -> FileAnswer:
    """A file that it has kept, byte for byte."""
    return FileAnswer(context.service.open_artifact(task_id, name))
