"""Stand-ins for agent programs: real processes that replay what the programs themselves wrote."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

STREAMS = Path(__file__).parent / "fixtures" / "streams"
_SCRIPT = """#!/bin/sh
cd {folder} || exit 99
echo x >> count
n=$(wc -l < count | tr -d ' ')
for each in "$@"; do printf '%s\\0' "$each"; done > "$n.arguments"
env > "$n.environment"
cat > "$n.input"
[ -f "$n.stream" ] || n={last}
cat "$n.stream"
cat "$n.error" >&2
[ -f "$n.hang" ] && exec sleep 60
exit "$(cat "$n.code")"
"""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a stand-in: what it writes, and how it ends."""

    stream: bytes = b""
    error: bytes = b""
    code: int = 0
    hangs: bool = False


def replay(name: str, *, code: int = 0, hangs: bool = False) -> Run:
    """A run that replays a captured stream, and what was captured of its standard error."""
    stream, error = (STREAMS / f"{name}.{each}" for each in ("jsonl", "stderr"))
    return Run(
        stream=stream.read_bytes() if stream.exists() else b"",
        error=error.read_bytes() if error.exists() else b"",
        code=code,
        hangs=hangs,
    )


class StandIn:
    """A program of some name that replays its runs one after another, the last again and again."""

    def __init__(self, folder: Path, name: str, *runs: Run) -> None:
        self._folder = folder / f"{name}-runs"
        self._folder.mkdir()
        for number, run in enumerate(runs, 1):
            (self._folder / f"{number}.stream").write_bytes(run.stream)
            (self._folder / f"{number}.error").write_bytes(run.error)
            (self._folder / f"{number}.code").write_text(str(run.code))
            if run.hangs:
                (self._folder / f"{number}.hang").touch()
        programs = folder / "bin"
        programs.mkdir(exist_ok=True)
        program = programs / name
        program.write_text(_SCRIPT.format(folder=self._folder, last=len(runs)))
        program.chmod(0o755)

    def arguments(self, run: int = 1) -> list[str]:
        return (self._folder / f"{run}.arguments").read_text().split("\0")[:-1]

    def input(self, run: int = 1) -> str:
        return (self._folder / f"{run}.input").read_text()

    def environment(self, run: int = 1) -> dict[str, str]:
        lines = (self._folder / f"{run}.environment").read_text().splitlines()
        return dict(each.split("=", 1) for each in lines if "=" in each)

    @property
    def count(self) -> int:
        counted = self._folder / "count"
        return len(counted.read_text().splitlines()) if counted.exists() else 0


class AgentPrograms:
    """Puts stand-ins before all other programs in the PATH."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder.mkdir()
        self._folder = folder
        monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")

    def __call__(self, name: str, *runs: Run) -> StandIn:
        return StandIn(self._folder, name, *runs)
