"""The command line in this process: what was typed, what it printed, how it exited."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast.cli.main import main


@dataclass(frozen=True, kw_only=True)
class Said:
    code: int
    out: str
    err: str


class Typed:
    """Types commands in a folder, on the store that the environment names."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Said:
        self._capsys.readouterr()
        code = main(arguments)
        said = self._capsys.readouterr()
        return Said(code=code, out=said.out, err=said.err)

    def ok(self, *arguments: str) -> str:
        said = self(*arguments)
        assert said.code == 0, said.err
        return said.out

    def json(self, *arguments: str) -> Any:  # noqa: ANN401 - JSON is any value
        return json.loads(self.ok(*arguments, "--json"))

    def refused(self, code: int, *arguments: str) -> str:
        """What a command that exits so says; nothing went to the output."""
        said = self(*arguments)
        assert (said.code, said.out) == (code, ""), said
        assert said.err.startswith("error: "), said
        return said.err


@contextmanager
def logs_as_before() -> Iterator[None]:
    """A command shows logs in its own way, which is not for the tests that come after."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
