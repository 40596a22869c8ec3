"""Files of attempts: artifacts that are kept, and logs, in the store's state directory."""

from __future__ import annotations

import os
from typing import BinaryIO

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.result import Refusal, TransitionResult
from holdfast.service.commands.request_errors import Refused, require_accepted
from holdfast.service.project.project import StoreLocation
from holdfast.service.queries.views import View
from holdfast.worker.files.artifacts import Artifact
from holdfast.worker.files.state_directory import StateDirectory, find_state_directory
from holdfast.worker.files.state_paths import StatePath

TAIL_BYTES = 4_096


def keep_artifact(
    engine: Engine, state: StateDirectory, held: tuple[str, str], name: str, content: bytes
) -> View:
    """Keep an artifact of an attempt that may still act; a different content is refused."""
    task_id = held[0]
    artifact = Artifact(state, task_id, name, content)
    require_accepted(task_id, engine.work.check_write(*held))
    engine.work.check_room(*held, artifact.effect, len(content))
    try:
        artifact.write_temporary(engine.store)
        recorded = engine.work.record_effect(
            *held, artifact.effect, artifact.description, beside=len(content)
        )
        answer = require_accepted(task_id, recorded.answer)
        if recorded.value != artifact.description:
            conflict = Refusal.RESULT_CONFLICT
            refusal = TransitionResult(ok=False, reason=conflict, detail=artifact.conflict)
            raise Refused(task_id, refusal)
        artifact.put_in_place()
    finally:
        artifact.discard()
    return {"ok": True, "repeated": answer.repeated, **artifact.description}


def log_path(location: StoreLocation, task_id: str, attempt: int) -> StatePath:
    """The path that a worker on this machine writes the log of an attempt to."""
    return find_state_directory(location.url).log(task_id, attempt)


def read_last_line(location: StoreLocation, task_id: str, attempt: int) -> tuple[str, float] | None:
    """The last line of a log that is not blank, and the time of the last write, in seconds."""
    try:
        with _open_log(location, task_id, attempt) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            lines = [line for line in file.read().splitlines() if line.strip()]
            when = os.fstat(file.fileno()).st_mtime
    except OSError:
        return None
    return (lines[-1].decode(errors="replace").strip(), when) if lines else None


def read_log(location: StoreLocation, task_id: str, attempt: int, start: int = 0) -> bytes:
    """The bytes of a log from `start` on; none when there is no log yet."""
    try:
        with _open_log(location, task_id, attempt) as file:
            file.seek(start)
            return file.read()
    except FileNotFoundError:
        return b""
    except OSError as error:
        path = log_path(location, task_id, attempt)
        raise InvalidInput("log", f"{path} cannot be read: {error.strerror}") from error


def _open_log(location: StoreLocation, task_id: str, attempt: int) -> BinaryIO:
    return os.fdopen(log_path(location, task_id, attempt).open(os.O_RDONLY), "rb")
