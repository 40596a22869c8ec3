"""Workers drain pipelines while random ones of them are killed; then everything must add up.

`python -m tests.chaos.storm --rounds 6 --seed 7` says it again as it was, but for the scheduler's
part in it.
"""

from __future__ import annotations

import argparse
import random
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

from holdfast.engine.engine import engine_of
from tests import servers
from tests.chaos.processes import interrupt, start
from tests.chaos.storm_pipeline import Pipeline, work
from tests.contract.raw_store import raw
from tests.race.racers import eventually

WORKERS = 3
KILLS = 4
RUNS = 20
Say = Callable[[str], None]


@dataclass(kw_only=True)
class Storm:
    """One store, its workers, and the chance that decides who dies when."""

    url: str
    folder: Path
    chance: random.Random
    stack: ExitStack
    pipeline: Pipeline
    workers: list[BaseProcess] = field(default_factory=list)
    killed: int = 0
    runs: int = 0

    def play_round(self) -> None:
        """Start runs, kill workers while they drain them, and wait until all have ended."""
        while len(self.workers) < WORKERS:
            self._hire()
        numbers = range(self.runs, self.runs + RUNS)
        self.runs += RUNS
        start_run = self.pipeline.workflow.start
        started = [start_run.submit(number=number, key=f"run-{number}") for number in numbers]
        handles = [each.result() for each in started]
        for handle in handles:
            self.pipeline.accepted.write(handle.id)
        for _ in range(KILLS):
            self._kill_after(self.chance.randrange(RUNS))
        for number, handle in zip(numbers, handles, strict=True):
            assert handle.result(60) == 2 * number
        assert eventually(self._drained), "a note was never taken"

    def _kill_after(self, effects: int) -> None:
        """Kill a random worker once some more effects have happened, or nothing is left to do."""
        enough = len(self.pipeline.effects.read()) + effects
        assert eventually(lambda: len(self.pipeline.effects.read()) >= enough or self._drained()), (
            "nothing happens any more"
        )
        victim = self.workers.pop(self.chance.randrange(len(self.workers)))
        victim.kill()
        victim.join()
        self.killed += 1
        self._hire()

    def _hire(self) -> None:
        self.workers.append(self.stack.enter_context(start(work, self.url, self.folder)))

    def _drained(self) -> bool:
        with raw(self.url) as run:
            return not run("SELECT 1 FROM holdfast_task WHERE finished_at IS NULL LIMIT 1")

    def end(self) -> None:
        for worker in self.workers:
            interrupt(worker)
        engine_of(self.pipeline.hf).recovery.step()

    def check(self) -> str:
        """Everything that was accepted is there, ended, and was done by one attempt each."""
        engine = engine_of(self.pipeline.hf)
        diagnosis = engine.doctor()
        assert diagnosis.ok, str(diagnosis)
        with raw(self.url) as run:
            tasks = {row["id"]: row for row in run("SELECT * FROM holdfast_task")}
            runs = {row["id"]: row for row in run("SELECT * FROM holdfast_run")}
        assert {name for (name,) in self.pipeline.accepted.read()} <= tasks.keys() | runs.keys()
        assert [row["status"] for row in runs.values()] == ["completed"] * self.runs
        assert len(tasks) == 5 * self.runs
        assert {row["status"] for row in tasks.values()} == {"done"}
        effects = Counter((task, int(attempt)) for task, attempt in self.pipeline.effects.read())
        assert set(effects.values()) == {1}, "an attempt was at work twice"
        outcomes = {
            (task, attempt.number): attempt.outcome
            for task in tasks
            for attempt in engine.tasks.attempts(task)
        }
        completed = {attempt for attempt, outcome in outcomes.items() if outcome == "completed"}
        assert len(completed) == len(tasks)
        assert completed <= effects.keys() <= outcomes.keys()
        beside = Counter(outcomes[attempt] for attempt in effects.keys() - completed)
        return (
            f"{self.runs} runs and {len(tasks)} tasks ended, {self.killed} workers killed; "
            f"{len(completed)} effects of completed attempts, beside them {dict(beside)}"
        )


def rage(url: str, *, rounds: int, seed: int, say: Say) -> None:
    """Play some rounds on an empty store, and check what came of them."""
    with tempfile.TemporaryDirectory(prefix="holdfast-storm-") as folder, ExitStack() as stack:
        pipeline = Pipeline(url, Path(folder))
        stack.enter_context(closing(pipeline.hf))
        storm = Storm(
            url=url,
            folder=Path(folder),
            chance=random.Random(seed),  # noqa: S311 - reproducible on purpose
            stack=stack,
            pipeline=pipeline,
        )
        began = time.monotonic()
        for number in range(1, rounds + 1):
            storm.play_round()
            say(f"  round {number} of {rounds}: {storm.killed} killed, {elapsed(began)}")
        storm.end()
        say(f"  {storm.check()}, {elapsed(began)}")


def elapsed(since: float) -> str:
    return f"{time.monotonic() - since:.1f} s"


def say_aloud(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - a command-line program prints


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="on each database")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10_000))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="holdfast-storm-") as folder:
        say_aloud(f"seed {chosen.seed}, on SQLite")
        rage(f"sqlite:///{folder}/storm.db", rounds=chosen.rounds, seed=chosen.seed, say=say_aloud)
    with servers.postgres() as url:
        say_aloud(f"seed {chosen.seed}, on PostgreSQL")
        rage(url, rounds=chosen.rounds, seed=chosen.seed, say=say_aloud)


if __name__ == "__main__":
    main()
