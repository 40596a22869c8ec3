"""Trust, a noun of its own: homes, settings and stores that a user accepts by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.errors import InvalidInput
from holdfast.service.project.project import SETTINGS_FILE
from holdfast.service.queries.views import View
from holdfast.worker.files.homes import (
    HOME,
    STATE_SUFFIX,
    TrustedPath,
    trust_home,
    trust_settings,
    trust_store,
)
from holdfast.worker.files.state_directory import find_state_directory


def trust_path(path: Path) -> View:
    """`{items: [{path, owner, tracked, writable}]}`: what is trusted from now on."""
    return {"items": [_view_trusted(each) for each in _trust_each(path.absolute())]}


def _trust_each(path: Path) -> Iterator[TrustedPath]:
    if path.name == SETTINGS_FILE and path.is_file():
        yield trust_settings(path)
    elif path.is_file():
        yield trust_store(path, find_state_directory(f"sqlite:///{path}", {}).root)
    elif path.is_dir() and (path.name == HOME or path.suffix == STATE_SUFFIX):
        yield trust_home(path)
    else:
        home, settings = path / HOME, path / SETTINGS_FILE
        if not (home.is_dir() or settings.is_file()):
            reason = f"is no {HOME}, no {SETTINGS_FILE} and no store, and has neither of them in it"
            raise InvalidInput("path", f"{path} {reason}")
        if home.is_dir():
            yield trust_home(home)
        if settings.is_file():
            yield trust_settings(settings)


def _view_trusted(trusted: TrustedPath) -> View:
    return {
        "path": str(trusted.path),
        "owner": trusted.owner,
        "tracked": trusted.tracked,
        "writable": trusted.writable,
    }
