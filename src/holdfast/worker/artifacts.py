"""Files that attempts leave: written aside, and put in place once the store has taken them."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.errors import InvalidInput, StoreUnwritable
from holdfast.worker.state import State, private

# No artifact can have its name.
_STORE = ".store"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class Artifact:
    """One file under its name: what the store is told of it is an effect of its task."""

    def __init__(self, state: State, task_id: str, name: object, content: bytes) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            shown = str(name)[:60]
            raise InvalidInput("name", f"{shown!r} is no file name: letters, digits and _ . -")
        self._content = content
        self.effect = f"artifact {name}"
        self.told = {
            "name": name,
            "bytes": len(content),
            "digest": hashlib.sha256(content).hexdigest(),
        }
        self.path = state.artifacts(task_id) / name
        self._aside: Path | None = None
        self.conflict = f"the artifact {name} was kept before, with another content"

    def lay_aside(self, store: str) -> None:
        with self._written():
            folder = private(self.path.parent)
            mark = folder / _STORE
            if not mark.exists():
                self._write_aside(folder, store.encode())
                self.put_in_place(mark)
            self._write_aside(folder, self._content)

    def put_in_place(self, path: Path | None = None) -> None:
        if self._aside is not None:
            with self._written():
                self._aside.replace(path or self.path)

    def _write_aside(self, folder: Path, content: bytes) -> None:
        # Each in a file of its own: the same attempt may be keeping another under this name.
        descriptor, made = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=folder)
        self._aside = Path(made)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)

    @contextmanager
    def _written(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreUnwritable(self.path, error.strerror) from error

    def discard(self) -> None:
        if self._aside is not None:
            self._aside.unlink(missing_ok=True)


def is_of(folder: Path, store: str) -> bool:
    """Whether the files in the folder of a task are of this store: others may share the place."""
    with suppress(OSError):
        return (folder / _STORE).read_text() == store
    return False
