"""The settings of a project: from the nearest `holdfast.yaml`, and over it from the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.settings import Project
from holdfast.worker.files.homes import accept_settings

NAME = "holdfast.yaml"
CONCURRENCY, LEAST_DISK = "HOLDFAST_CONCURRENCY", "HOLDFAST_LEAST_DISK"
_SAYS_SOMETHING = re.compile(rb"^[^#\s]", re.MULTILINE)


def find_project(here: Path, environment: Mapping[str, str]) -> Project:
    """What holds in a folder: what the nearest file in it or above says, unless a variable does."""
    found = _read_nearest(here)
    given: dict[str, Any] = {}
    if many := environment.get(CONCURRENCY):
        given |= dict.fromkeys(("functions", "agents"), _count(many))
    if least := environment.get(LEAST_DISK):
        from holdfast.model.units import parse_size  # noqa: PLC0415 - few commands want it

        given["least_disk"] = parse_size(LEAST_DISK, least)
    return replace(found, **given)


def _read_nearest(here: Path) -> Project:
    for folder in (here.absolute(), *here.absolute().parents):
        path = folder / NAME
        if path.is_file():
            accept_settings(path)
            return _read(path)
    return Project()


def _read(path: Path) -> Project:
    try:
        says = _SAYS_SOMETHING.search(path.read_bytes())
    except OSError as error:
        raise InvalidInput(NAME, f"{path} cannot be read: {error.strerror}") from error
    if not says:
        return Project(folder=path.parent)
    # Most files only show what could be said; to take one apart takes longer than most commands.
    from holdfast.definition.project_file import read_project_file  # noqa: PLC0415

    return read_project_file(path)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise InvalidInput(CONCURRENCY, f"{text!r} is no number of steps, from 1")
    return int(text)
