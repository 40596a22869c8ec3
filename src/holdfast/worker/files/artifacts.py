"""Artifacts: files that attempts leave, written aside and put in place once they are recorded."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from holdfast.errors import InvalidInput, StoreUnwritable
from holdfast.worker.files.state_directory import StateDirectory
from holdfast.worker.files.state_paths import StatePath

# No artifact can have the name of this file.
_STORE_FILE = ".store"
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class Artifact:
    """One file under its name; `description` is recorded as an effect of its task."""

    def __init__(self, state: StateDirectory, task_id: str, name: object, content: bytes) -> None:
        if not is_artifact_name(name):
            shown = str(name)[:60]
            raise InvalidInput("name", f"{shown!r} is no file name: letters, digits and _ . -")
        self._content = content
        self.effect = f"artifact {name}"
        self.description: dict[str, Any] = {
            "name": name,
            "bytes": len(content),
            "digest": hashlib.sha256(content).hexdigest(),
        }
        self._name = str(name)
        self._folder = state.artifacts(task_id)
        self._temporary: StatePath | None = None
        self.path = (self._folder / self._name).path
        self.conflict = f"the artifact {name} was kept before, with another content"

    def write_temporary(self, store: str) -> None:
        with self._translate_errors():
            store_file = self._folder / _STORE_FILE
            if not store_file.path.exists():
                store_file.write(store.encode())
            # A random name, because the same attempt may be keeping another artifact of this name.
            temporary = self._folder / f".{self._name}.{os.urandom(6).hex()}"
            made = temporary.open(_NEW_FILE, make=True)
            self._temporary = temporary
            with os.fdopen(made, "wb") as file:
                file.write(self._content)

    def put_in_place(self) -> None:
        if self._temporary is not None:
            with self._translate_errors():
                self._temporary.rename(self._name)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreUnwritable(self.path, error.strerror) from error

    def discard(self) -> None:
        if self._temporary is not None:
            self._temporary.remove()


def name_attempt_patch(attempt: int) -> str:
    """The name of the patch with what an attempt has changed in its workspace."""
    return f"changes.{attempt}.diff"


def name_line_patch(attempt: int) -> str:
    """The name of the patch with what the line of an attempt has changed from its base on."""
    return f"line.{attempt}.diff"


def is_artifact_name(name: object) -> bool:
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def is_of_store(folder: StatePath, store: str) -> bool:
    """Whether the artifacts of a task belong to this store; several stores may share the folder."""
    with suppress(OSError):
        return (folder / _STORE_FILE).read() == store.encode()
    return False
