"""Files that mean harm get an error with a place, soon and in little memory."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.unit.definition import hostile_texts


def test_every_hostile_file_is_refused_with_a_place_within_a_second_and_100_megabytes() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.unit.definition.hostile_texts"],
        capture_output=True,
        text=True,
        check=True,
    )
    took, memory = json.loads(ran.stdout)
    assert len(took) == len(hostile_texts.TEXTS) + len(hostile_texts.JSON_TEXTS)
    assert {name: each for name, each in took.items() if each[0] >= 1} == {}
    assert all(line >= 1 and column >= 1 for _, line, column in took.values())
    assert memory < 100 * 1024
