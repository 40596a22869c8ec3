"""The real program `holdfast`, in a process of its own: piped, or on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
# Whoever starts the tests in the background may have them ignore Ctrl-C, and so would a child.
PROGRAM = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from holdfast.cli.main import main; sys.exit(main())"
)
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# A code, or else a character; of the numbers of a colour only the letter counts.
_WRITTEN = re.compile(r"\x1b\[\??([0-9]*)(?:;[0-9]+)*([A-Za-z])|(.)", re.DOTALL)
ERASE_ROW = 2


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    path = os.pathsep.join([str(ROOT / "src"), kept.get("PYTHONPATH", "")])
    # Programs that are started by the dozen need not be compiled each time; what is written comes
    # at once only where they see to it.
    for name in ("COLUMNS", "LINES", "NO_COLOR", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"):
        kept.pop(name, None)
    return kept | {"PYTHONPATH": path, "TERM": "xterm"} | more


def holdfast(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, its output piped."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def on_path(folder: Path) -> dict[str, str]:
    """An environment in which `holdfast` is a program that a shell finds."""
    tool = folder / "bin" / "holdfast"
    tool.parent.mkdir()
    tool.write_text(f"#!{sys.executable}\n{PROGRAM.replace('; ', chr(10))}\n")
    tool.chmod(0o755)
    kept = environment()
    return kept | {"PATH": f"{tool.parent}:{kept['PATH']}"}


class Screen:
    """The rows that a person sees of what was written, and those that have scrolled away.

    It knows the codes that Holdfast writes, and no others. `wrapped` are the rows whose text went
    on in the next row.
    """

    def __init__(self, columns: int, rows: int) -> None:
        self._columns, self._height = columns, rows
        self._row = self._column = 0
        self.rows = [""] * rows
        self.gone: list[str] = []
        self.wrapped: list[str] = []

    def write(self, text: str) -> Screen:
        for number, letter, character in _WRITTEN.findall(text):
            if letter:
                self._obey(int(number or 1), letter)
            else:
                self._put(character)
        return self

    def _obey(self, number: int, letter: str) -> None:
        if letter == "A":
            self._row = max(0, self._row - number)
        elif letter == "K":
            assert number == ERASE_ROW
            self.rows[self._row] = ""
        else:
            assert letter in "mhl", letter

    def _put(self, character: str) -> None:
        assert character >= " " or character in "\r\n\t", repr(character)
        if character == "\r":
            self._column = 0
        elif character == "\n":
            self._move_down()
        else:
            if self._column == self._columns:
                self.wrapped.append(self.rows[self._row])
                self._column = 0
                self._move_down()
            row = self.rows[self._row].ljust(self._column)
            self.rows[self._row] = row[: self._column] + character + row[self._column + 1 :]
            self._column += 1

    def _move_down(self) -> None:
        if self._row < self._height - 1:
            self._row += 1
            return
        self.gone.append(self.rows.pop(0))
        self.rows.append("")


class Terminal:
    """What a command has written so far, on its terminal or into its pipe."""

    def __init__(self, child: subprocess.Popen[bytes], screen: int) -> None:
        self.child = child
        self._screen = screen
        self.raw = ""

    def look(self, columns: int, rows: int) -> Screen:
        """What a person sees on a terminal of this size."""
        return Screen(columns, rows).write(self.raw)

    @property
    def text(self) -> str:
        return _CODES.sub("", self.raw).replace("\r", "")

    def until(self, wanted: str) -> None:
        """Read on until something was written."""
        self.read_until(lambda: wanted in self.text)

    def read_until(self, is_enough: Callable[[], bool]) -> None:
        """Read on until what was written is enough."""
        end = time.monotonic() + PATIENCE
        while not is_enough():
            assert time.monotonic() < end, self.text
            assert self._read(), self.text

    def ends(self) -> int:
        """Read to the end; the exit code."""
        while self._read():
            pass
        return self.child.wait(PATIENCE)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._screen], [], [], PATIENCE)
        try:
            found = os.read(self._screen, 65_536) if ready else b""
        except OSError:
            # On Linux a terminal whose last writer has gone says so.
            found = b""
        self.raw += found.decode(errors="replace")
        return bool(found)


@contextmanager
def terminal(
    folder: Path, *arguments: str, size: tuple[int, int] = (100, 40), **more: str
) -> Iterator[Terminal]:
    """Run a command on a terminal of so many columns and rows."""
    screen, inside = pty.openpty()
    columns, rows = size
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=folder,
        env=environment(**more),
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
    ) as child:
        os.close(inside)
        try:
            yield Terminal(child, screen)
        finally:
            child.kill()
            os.close(screen)


@contextmanager
def piped(folder: Path, *arguments: str, **more: str) -> Iterator[Terminal]:
    """Run a command that writes all it says into one pipe."""
    reader, inside = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=folder,
        env=environment(**more),
        stdout=inside,
        stderr=inside,
    ) as child:
        os.close(inside)
        try:
            yield Terminal(child, reader)
        finally:
            child.kill()
            os.close(reader)
