"""The program of a storm: steps that leave a line for each effect, and work that makes new work."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from holdfast import Context, Holdfast, needs
from tests.chaos.journal import Journal

LEASE = 1.0
RENEWAL = 0.3
TRIES = 10_000
SHAKY = 5


class Pipeline:
    """The same program in every process: `effects` and `accepted` tell what happened in it."""

    def __init__(self, url: str, folder: Path) -> None:
        self.hf = Holdfast(url, lease=LEASE, renewal=RENEWAL, recovery=0.1, poll=0.1)
        self.effects = Journal(folder / "effects")
        self.accepted = Journal(folder / "accepted")
        self.workflow = self.hf.workflow("storm", concurrency=("storm", 8))
        self._add_task()
        self._add_steps()

    def _add_task(self) -> None:
        @self.hf.task(max_lost=TRIES)
        def note(ctx: Context, number: int) -> int:
            self._act(ctx)
            return number

        self.note = note

    def _add_steps(self) -> None:
        @self.workflow.step(max_lost=TRIES)
        def plan(ctx: Context, number: int) -> int:
            self._act(ctx)
            return number

        @self.workflow.step(needs=[plan], max_lost=TRIES, concurrency=("left", 2))
        def left(ctx: Context, number: int) -> int:
            self._act(ctx)
            return number

        @self.workflow.step(needs=[plan], max_lost=TRIES, max_attempts=TRIES, backoff=0.01)
        def right(ctx: Context, number: int) -> int:
            self._act(ctx)
            if ctx.attempt == 1 and number % SHAKY == 0:
                raise ConnectionError("the first try of some fails")
            return number

        @self.workflow.step(max_lost=TRIES)
        def join(ctx: Context, one: int = needs(left), two: int = needs(right)) -> int:
            self._act(ctx)
            created = self.note.enqueue(number=one, key=f"note-{one}")
            self.accepted.write(created.id)
            return one + two

    def _act(self, ctx: Context) -> None:
        """A side effect, which only an attempt that may still act has."""
        ctx.guard()
        self.effects.write(ctx.task_id, ctx.attempt)


def work(url: str, folder: Path) -> None:
    """Be a worker until interrupted or killed."""
    pipeline = Pipeline(url, folder)
    with closing(pipeline.hf):
        pipeline.hf.worker(concurrency=4).run()
