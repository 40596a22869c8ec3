"""Artifacts: files that attempts keep in the store's state directory, written and read."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import BinaryIO

from holdfast.engine.engine import Engine
from holdfast.errors import NotFound
from holdfast.model.result import Refusal, TransitionResult
from holdfast.service.commands.request_errors import Refused, require_accepted
from holdfast.service.queries.artifacts import find_artifact, view_artifacts
from holdfast.service.queries.views import View
from holdfast.worker.files.artifacts import Artifact, is_artifact_name, is_of_store
from holdfast.worker.files.state_directory import StateDirectory

MOST_NAMED = 10


@dataclass(frozen=True, kw_only=True)
class OpenArtifact:
    """An artifact, and its file, which its reader closes."""

    description: View
    file: BinaryIO


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


def open_artifact(engine: Engine, state: StateDirectory, task_id: str, name: str) -> OpenArtifact:
    """Open an artifact whose file is in this state directory, with the content that is recorded."""
    described = None
    if is_artifact_name(name):
        described = engine.database.view(lambda tx: find_artifact(tx, task_id, name))
    if described is None:
        raise NotFound(f"{task_id} {name[:60]}", "artifact", _advise_names(engine, task_id))
    file = _open_file(engine.store, state, task_id, described)
    if file is None:
        raise NotFound(
            f"{task_id} {name}", "file", _explain_absence(engine, state, task_id, described)
        )
    return OpenArtifact(description=described, file=file)


def _open_file(store: str, state: StateDirectory, task_id: str, described: View) -> BinaryIO | None:
    folder = state.artifacts(task_id)
    if not is_of_store(folder, store):
        return None
    try:
        file = os.fdopen((folder / described["name"]).open(os.O_RDONLY), "rb")
    except OSError:
        return None
    # After a crash, the file of a task that is done again may still be the one of before, and a
    # worker may have recorded another size with it.
    size = os.fstat(file.fileno()).st_size
    told = {"bytes": size, "digest": hashlib.file_digest(file, "sha256").hexdigest()}
    if told != {name: described[name] for name in told}:
        file.close()
        return None
    file.seek(0)
    return file


def _advise_names(engine: Engine, task_id: str) -> str:
    names = [each["name"] for each in engine.database.view(lambda tx: view_artifacts(tx, task_id))]
    if not names:
        return "the task has kept none"
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"the task has kept {', '.join(names[:MOST_NAMED])}{more}"


def _explain_absence(engine: Engine, state: StateDirectory, task_id: str, described: View) -> str:
    owners = {each.number: each.owner for each in engine.tasks.attempts(task_id)}
    owner = owners.get(described["attempt"], "another worker")
    return (
        f"it was kept by {owner} on the machine and in the home of that worker, "
        f"and is not in {state.artifacts(task_id)}"
    )
