"""A feature built story by story: each verified, one sent back, all approved and merged."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

from holdfast import Holdfast, RunHandle, Verdict, WorkflowBuilder, goto, needs

PATIENCE = 60.0


@dataclass
class Story:
    title: str
    acceptance: str


@dataclass
class Change:
    story: str
    text: str


def define(hf: Holdfast) -> WorkflowBuilder:
    feature = hf.workflow("feature")

    @feature.step
    def plan(task: str) -> list[Story]:
        return [
            Story(f"{task}: the form", acceptance="form"),
            Story(f"{task}: the mail", acceptance="mail with a link"),
        ]

    build = feature.loop("build", over=needs(plan), parallel=2)

    @build.step
    def implement(item: Story, feedback: str | None) -> Change:
        say(f"implement  {item.title}" + (f", because {feedback!r}" if feedback else ""))
        return Change(item.title, item.title + (" with a link" if feedback else ""))

    @build.step(verifies=implement, max_rounds=3, on_failure="ask")
    def verify(item: Story, subject: Change) -> Verdict:
        if item.acceptance in subject.text:
            say(f"accept     {item.title}")
            return Verdict.accept()
        say(f"reject     {item.title}")
        return Verdict.reject(f"want a {item.acceptance}")

    @feature.step(max_attempts=1, on_failure=goto(build))
    def test(changes: list[Change] = needs(build)) -> int:
        say(f"test       {len(changes)} changes")
        return len(changes)

    feature.approval("approve", "Merge it?")

    @feature.step
    def merge(changes: list[Change] = needs(build)) -> list[str]:
        return [change.text for change in changes]

    return feature


def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-stories-") as folder,
        Holdfast(f"sqlite:///{folder}/stories.db") as hf,
    ):
        feature = define(hf)
        with hf.worker():
            run = feature.start(task="reset a password")
            settle(hf, run)
            say(f"result     {run.result(PATIENCE)}")
        rounds = hf.tasks.get(run.task("build.2.verify").id).round
        say(f"story 1 was sent back {rounds} time, story 0 never; the doctor says: {hf.doctor()}")
    return 0


def settle(hf: Holdfast, run: RunHandle) -> None:
    """Play the person who is asked."""
    approval = run.task("approve")
    eventually(lambda: not hf.tasks.get(approval.id).blocked)
    say(f"approve    {hf.tasks.get(approval.id).title} yes")
    hf.approve(approval)


def eventually(look: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not look():
        if time.monotonic() > end:
            message = f"nothing happened for {PATIENCE:.0f} seconds"
            raise TimeoutError(message)
        time.sleep(0.05)


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
