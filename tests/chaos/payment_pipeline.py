"""A pipeline whose middle step is at work until it is let go, and the worker that runs it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from holdfast import Context, Holdfast, needs
from holdfast.model.result import TransitionResult
from holdfast.model.task import Renewal
from tests.chaos.journal import Journal
from tests.race.racers import eventually

LEASE = 2.5
# Late enough that no renewal is under way when a step has just begun.
RENEWAL = 0.6


class Payment:
    """The same program in every process: `begun`, `paid` and `refused` tell what steps did."""

    def __init__(self, url: str, folder: Path) -> None:
        self.hf = Holdfast(url, lease=LEASE, renewal=RENEWAL, recovery=0.1, poll=0.1)
        self.let_go = {1: folder / "first", 2: folder / "second"}
        self.begun, self.paid, self.refused = (
            Journal(folder / name) for name in ("begun", "paid", "refused")
        )
        self.workflow = self.hf.workflow("payment")
        self._add_steps()

    def _add_steps(self) -> None:
        @self.workflow.step
        def order() -> str:
            return "tea"

        @self.workflow.step
        def pay(ctx: Context, ordered: str = needs(order)) -> str:
            self.begun.write(ctx.attempt, ctx.token)
            assert eventually(self.let_go[ctx.attempt].exists), "nobody let this attempt go"
            if ctx.attempt == 1:
                for name, answer in self.report(ctx.task_id, ctx.token).items():
                    self.refused.write(name, answer.reason)
            ctx.guard()
            self.paid.write(ctx.attempt)
            return f"{ordered} paid by attempt {ctx.attempt}"

        @self.workflow.step
        def ship(payment: str = needs(pay)) -> str:
            return f"shipped: {payment}"

    def report(self, task_id: str, token: str) -> dict[str, TransitionResult]:
        """Everything a worker can say of an attempt."""
        work = self.hf.work
        ways: dict[str, Callable[[], TransitionResult]] = {
            "guard": lambda: work.guard(task_id, token),
            "renew": lambda: work.renew([Renewal(task_id=task_id, token=token)])[0],
            "release": lambda: work.release(task_id, token),
            "fail": lambda: work.fail(task_id, token, "a late failure"),
            "complete": lambda: work.complete(task_id, token, "a late result"),
        }
        return {name: ask() for name, ask in ways.items()}


def work(url: str, folder: Path, name: str) -> None:
    """Be a worker until interrupted, stopped or killed."""
    payment = Payment(url, folder)
    with closing(payment.hf):
        payment.hf.worker(name=name, concurrency=1).run()
