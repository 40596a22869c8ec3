"""Golden files: the words in which each front end advises a user, in every situation there is.

`HOLDFAST_WRITE_GOLDEN=1 pytest tests/contract/advice` writes them again; read the difference
before it is committed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.advice import Action, advice_of, read_stored
from holdfast.randomness import SeededRandomness
from tests.contract.advice import front_ends
from tests.contract.advice.situations import SITUATIONS, Read

GOLDEN = Path(__file__).parent / "golden"
FRONT_ENDS: dict[str, Callable[[Read], list[str]]] = {
    "python": front_ends.read_python,
    "command_line": front_ends.read_command_line,
    "http": front_ends.read_http,
    "mcp": front_ends.read_mcp,
}
# No stored text holds these, and so they are not read from one.
NOT_READ_AGAIN = {Action.ADD_CHILD, Action.CLAIM, Action.START_WORKER}
_TIME = re.compile(r"since \d\d:\d\d:\d\d")
_ID = re.compile(r"\b([rt])_[0-9a-z]{20}\b")


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What users read, by front end: a heading for each situation, and ids as t_1, t_2, …."""
    read: dict[str, list[str]] = {name: [] for name in FRONT_ENDS}
    for situation in SITUATIONS:
        folder = tmp_path_factory.mktemp("store")
        url, clock = f"sqlite:///{folder}/holdfast.db", ManualClock()
        engine = Engine(url, clock=clock, randomness=SeededRandomness(7))
        engine.commits.start()
        try:
            for title, found in situation(engine, clock):
                for name, front_end in FRONT_ENDS.items():
                    if lines := front_end(found):
                        text = "\n".join(lines).replace(str(folder), "FOLDER")
                        text = _TIME.sub("since TIME", text)
                        read[name].append(f"# {title}\n{_with_short_ids(text)}\n")
        finally:
            engine.close()
    return {name: "\n".join(sections) for name, sections in read.items()}


def _with_short_ids(text: str) -> str:
    known: dict[str, str] = {}

    def shorten(found: re.Match[str]) -> str:
        kind = found[1]
        number = 1 + sum(each.startswith(kind) for each in known.values())
        return known.setdefault(found[0], f"{kind}_{number}")

    return _ID.sub(shorten, text)


def test_the_situations_hold_every_action(words: dict[str, str]) -> None:
    found = {each.action for each in advice_of(read_stored(words["python"]))}
    assert found | NOT_READ_AGAIN == {*Action}
    assert all(call in words["python"] for call in ("NewTask(", "hf.work.claim(", "hf.worker("))


@pytest.mark.parametrize("name", FRONT_ENDS)
def test_the_words_of_a_front_end_are_those_of_its_golden_file(
    words: dict[str, str], name: str
) -> None:
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("HOLDFAST_WRITE_GOLDEN"):
        file.write_text(words[name])
    assert words[name] == file.read_text()
