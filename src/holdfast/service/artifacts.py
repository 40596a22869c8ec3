"""Keeps the files that attempts send, and tells of those that are kept already."""

from __future__ import annotations

from holdfast.engine.engine import Engine
from holdfast.model.result import Refusal, TransitionResult
from holdfast.service.refused import Refused, accepted
from holdfast.service.views import View
from holdfast.worker.files.artifacts import Artifact
from holdfast.worker.files.state_directory import State


def keep_artifact(
    engine: Engine, state: State, held: tuple[str, str], name: str, content: bytes
) -> View:
    """Keep a file of an attempt that may still act; another content under its name is refused."""
    task_id = held[0]
    artifact = Artifact(state, task_id, name, content)
    accepted(task_id, engine.work.check_write(*held))
    engine.work.check_room(*held, artifact.effect, len(content))
    try:
        artifact.lay_aside(engine.store)
        recorded = engine.work.record_effect(
            *held, artifact.effect, artifact.told, beside=len(content)
        )
        answer = accepted(task_id, recorded.answer)
        if recorded.value != artifact.told:
            conflict = Refusal.RESULT_CONFLICT
            refusal = TransitionResult(ok=False, reason=conflict, detail=artifact.conflict)
            raise Refused(task_id, refusal)
        artifact.put_in_place()
    finally:
        artifact.discard()
    return {"ok": True, "repeated": answer.repeated, **artifact.told}
