"""The files that a task has kept, on the command line."""

from __future__ import annotations

import pytest

from holdfast.cli.main import main
from holdfast.engine.engine import Engine
from holdfast.service.protocol.artifacts import keep_artifact
from holdfast.worker.files.state_directory import find_state_directory
from tests.contract.cli.command_line import Typed
from tests.contract.task_states import create, take


def keep(engine: Engine, url: str, files: dict[str, bytes]) -> str:
    held = take(engine, create(engine))
    state = find_state_directory(url)
    for name, content in files.items():
        keep_artifact(engine, state, (held.task_id, held.token), name, content)
    return held.task_id


def test_files_are_listed_named_by_show_and_printed_byte_for_byte(
    engine: Engine, typed: Typed, url: str
) -> None:
    task = keep(engine, url, {"b.bin": b"\xff\x00", "a.txt": b"x" * 3_500})
    listed = typed("artifacts", task)
    heading, *rows = listed.out.splitlines()
    assert heading.split() == ["NAME", "SIZE", "ATTEMPT", "KEPT"]
    assert [row.split()[:4] for row in rows] == [
        ["a.txt", "4", "KB", "1"],
        ["b.bin", "2", "bytes", "1"],
    ]
    assert listed.err == f"Print one: holdfast artifacts {task} a.txt\n"
    shown = typed.ok("show", task)
    assert f"  artifact  b.bin · 2 bytes · holdfast artifacts {task} b.bin\n" in shown
    told = typed.json("show", task)["artifacts"]
    assert told == typed.json("artifacts", task)["items"]
    assert typed.json("artifacts", task, "b.bin") == told[1]
    assert "artifacts" not in typed.json("show", create(engine))
    refused = typed.refused(2, "artifacts", task, "c")
    assert "there is no such artifact in this store; the task has kept a.txt, b.bin" in refused
    assert "after: contains a lone surrogate" in typed.refused(
        2, "artifacts", task, "--after", "\udc80"
    )
    assert typed("artifacts", create(engine)).err.endswith(" has kept no files.\n")


def test_a_terminal_is_sent_text_alone_and_nothing_that_acts_on_it(
    engine: Engine, typed: Typed, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = keep(engine, url, {"a.txt": b"one\x1b[2J\x07\n\ttwo\n", "b.bin": b"\xff\xfe"})
    monkeypatch.setattr("holdfast.cli.commands.artifacts.is_terminal", lambda: True)
    assert typed.ok("artifacts", task, "a.txt") == "one\\x07\n\ttwo\n"
    typed_again = f"`holdfast artifacts {task} b.bin > b.bin`"
    assert f"b.bin is no text: write it into a file, as in {typed_again}" in typed.refused(
        2, "artifacts", task, "b.bin"
    )


def test_a_file_goes_to_a_pipe_as_it_is(
    engine: Engine,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    monkeypatch.setenv("HOLDFAST_DB", url)
    content = bytes(range(256))
    task = keep(engine, url, {"b.bin": content})
    assert main(["artifacts", task, "b.bin"]) == 0
    assert capfdbinary.readouterr().out == content
