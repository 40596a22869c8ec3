"""Advice as it is typed: what the command line advises is accepted as it stands.

Each piece of advice is typed into a copy of the store in which it was given.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest

from holdfast.cli.app.advice import BAD_INPUT
from holdfast.clock import ManualClock, SystemClock
from holdfast.engine.engine import Engine
from holdfast.randomness import SeededRandomness
from tests.contract.advice import front_ends, situations
from tests.contract.advice.situations import SITUATIONS, Read, Situation
from tests.contract.cli.command_line import Typed

# These name runs that are only made up, a file that is not there, or no command at all.
UNTYPED = {
    situations.texts_that_were_stored,
    situations.workflows_that_are_unknown,
    situations.stores_that_are_locked,
    situations.values,
}
# What a user writes for each word that only stands for a value.
VALUES = {"<answer>": "yes", "<payload>": '{"at": "noon"}', "<title>": "Dig"}
# A worker goes on until Ctrl-C, so only its options are read.
WORKER, ANY_PROGRAM = "worker", "MODULE:NAME"


@dataclass(frozen=True, kw_only=True)
class Advised:
    """Commands that are to be typed one after the other, on a store of their own."""

    title: str
    commands: tuple[list[str], ...]


def copy_store(engine: Engine, target: Path) -> None:
    source = apsw.Connection(engine.settings.url.removeprefix("sqlite:///"))
    copy = apsw.Connection(str(target))
    with copy.backup("main", source, "main") as backup:
        backup.step()
    source.close()
    copy.close()


def read_commands(read: Read, url: str) -> Iterator[tuple[list[str], ...]]:
    """The commands that the command line says; those after an `or` are apart."""
    said = front_ends.read_command_line(read, url)
    text = "\n".join(line for line in said if not line.startswith("next:"))
    for alternative in re.split(" or (?=holdfast )", text):
        found = re.findall(rf"holdfast (.*? --db {re.escape(url)})", alternative)
        if found:
            yield tuple(map(shlex.split, found))


def list_advice(situation: Situation, folder: Path) -> Iterator[Advised]:
    """What is advised in a situation; its clock shows the time that commands have."""
    clock = ManualClock(SystemClock().now())
    engine = Engine(f"sqlite:///{folder}/store.db", clock=clock, randomness=SeededRandomness(7))
    engine.commits.start()
    try:
        for title, read in situation(engine, clock):
            copy = folder / "copy.db"
            for commands in read_commands(read, f"sqlite:///{copy}"):
                copy_store(engine, copy)
                yield Advised(title=title, commands=commands)
                for each in folder.glob("copy.db*"):
                    each.unlink()
    finally:
        engine.close()


@pytest.mark.parametrize(
    "situation",
    [each for each in SITUATIONS if each not in UNTYPED],
    ids=lambda each: each.__name__,
)
def test_what_is_advised_can_be_typed_as_it_stands(
    situation: Situation, typed: Typed, tmp_path: Path
) -> None:
    for advised in list_advice(situation, tmp_path):
        for command in advised.commands:
            known = [VALUES.get(word, word) for word in command]
            if known != command or ANY_PROGRAM in command:
                refused = typed(*command)
                assert (refused.code, "only stands for" in refused.err) == (BAD_INPUT, True)
            said = typed(*known, *(["--help"] if command[0] == WORKER else []))
            assert said.code == 0, (advised.title, command, said.err)
