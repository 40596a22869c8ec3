"""Files that attempts leave: written aside, and put in place once the store has taken them."""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.result import Refusal, TransitionResult
from holdfast.service.place import Place
from holdfast.service.refused import Refused, accepted
from holdfast.service.views import View
from holdfast.worker.state import private, state_of

# No artifact can have its name.
_STORE = ".store"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def keep_artifact(
    engine: Engine, place: Place, held: tuple[str, str], name: str, content: bytes
) -> View:
    """Keep a file of an attempt that may still act; another content under its name is refused."""
    if not _NAME.fullmatch(name):
        raise InvalidInput("name", f"{name[:60]!r} is no file name: letters, digits and _ . -")
    task_id, token = held
    accepted(task_id, engine.work.check_write(task_id, token))
    told = {"name": name, "bytes": len(content), "digest": hashlib.sha256(content).hexdigest()}
    path = artifact_path(place, task_id, name)
    aside = path.with_name(f".{name}.{token.partition('.')[0]}.{os.getpid()}")
    try:
        _mark(private(path.parent), engine)
        aside.write_bytes(content)
        recorded = engine.work.record_effect(task_id, token, f"artifact {name}", told)
        answer = accepted(task_id, recorded.answer)
        if recorded.value != told:
            raise _other(task_id, name)
        aside.replace(path)
    except OSError as error:
        raise InvalidInput("artifact", f"{path} cannot be written: {error.strerror}") from error
    finally:
        aside.unlink(missing_ok=True)
    return {"ok": True, "repeated": answer.repeated, **told}


def artifact_path(place: Place, task_id: str, name: str) -> Path:
    return state_of(place.url).root / "artifacts" / task_id / name


def is_of(folder: Path, engine: Engine) -> bool:
    """Whether the files in the folder of a task are of this store: others may share the place."""
    with suppress(OSError):
        return (folder / _STORE).read_text() == engine.store
    return False


def _mark(folder: Path, engine: Engine) -> None:
    mark = folder / _STORE
    if not mark.exists():
        mark.write_text(engine.store)


def _other(task_id: str, name: str) -> Refused:
    detail = f"the artifact {name} was kept before, with another content"
    return Refused(
        task_id, TransitionResult(ok=False, reason=Refusal.RESULT_CONFLICT, detail=detail)
    )
