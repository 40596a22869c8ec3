"""A worker with an allow-list, and a server that lies to it."""

from __future__ import annotations

import random
from pathlib import Path

from tests.acceptance.worker.hostile_server import besiege

ANSWERS = 300


def test_a_worker_survives_a_server_that_lies_in_every_field_of_every_answer(
    tmp_path: Path,
) -> None:
    seed = random.SystemRandom().randrange(10**9)
    siege = besiege(tmp_path, answers=ANSWERS, seed=seed)
    again = f"python -m tests.acceptance.worker.hostile_server --answers {ANSWERS} --seed {seed}"
    assert siege.violations == [], f"{again}\n{siege.log[-4_000:]}"
    assert siege.said.total() == ANSWERS
    assert "Traceback" not in siege.log, f"{again}\n{siege.log}"
    assert siege.greeted > 1, again
