"""Runs the shop's pipeline, kills its worker in the middle, and shows that nothing ran twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from holdfast import Holdfast

T = TypeVar("T")
PATIENCE = 60.0
HERE = Path(__file__).parent


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        mark = Path(folder, "charge-started")
        os.environ["HOLDFAST_DB"] = f"sqlite:///{folder}/shop.db"
        os.environ["SHOP_CHARGE_STARTED"] = str(mark)
        return show(mark)


def show(mark: Path) -> int:
    from shop import checkout, hf  # noqa: PLC0415 - reads the environment set above

    say("A pipeline of four steps, on a SQLite file: pack and charge, then ship, then tell.")
    began = time.monotonic()
    with hf:
        run = checkout.start(order_id=7, items=["tea", "mug"], key="order-7")
        again = checkout.start(order_id=7, items=["tea", "mug"], key="order-7")
        say(f"Started {run.id}. Starting it again with the same key gives {again.id}: one run.")
        shown = Timeline(hf, run.id, began)

        first = start_worker()
        say(f"Worker {first.pid} begins.")
        token = eventually(lambda: mark.read_text() if mark.exists() else None)
        shown.print_new()
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        say(f"kill -9 {first.pid}, in the middle of `charge`. Its lease runs out by itself.")
        second = start_worker()
        say(f"Worker {second.pid} takes over.")
        try:
            eventually(shown.reaches_the_end)
        finally:
            second.send_signal(signal.SIGINT)
            second.wait()

        charge = next(task for task in hf.runs.tasks(run.id) if task.step == "charge")
        say("The killed worker wakes up after all and reports its own result:")
        answer = hf.work.complete(charge.id, token, "a second payment")
        say(f"    refused, {answer.reason}: {answer.detail}.")
        for attempt in hf.tasks.attempts(charge.id):
            say(f"    attempt {attempt.number} by {attempt.owner}: {attempt.outcome}")
        diagnosis = hf.doctor()
        say(f"The doctor says: {diagnosis}.")
        say(f"Result: {run.result()}")
        well = diagnosis.ok and not answer.ok and charge.attempt == 2  # noqa: PLR2004
        say("Each step done once, in order." if well else "Something is wrong: see above.")
        return 0 if well else 1


def start_worker() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(HERE / "shop.py")])


def eventually(look: Callable[[], T | None]) -> T:
    """What `look` gives once it gives something; long work shows that it is alive."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.05)
    message = f"nothing happened for {PATIENCE:.0f} seconds"
    raise TimeoutError(message)


class Timeline:
    """Prints each event of a run once, with the seconds since the start."""

    def __init__(self, hf: Holdfast, run_id: str, began: float) -> None:
        self._hf = hf
        self._run_id = run_id
        self._began = began
        self._seen: set[int] = set()
        self._steps = {task.id: str(task.step) for task in hf.runs.tasks(run_id)}

    def reaches_the_end(self) -> bool:
        self.print_new()
        return self._hf.runs.get(self._run_id).terminal

    def print_new(self) -> None:
        for event in self._hf.runs.events(self._run_id):
            if event.seq in self._seen:
                continue
            self._seen.add(event.seq)
            subject = self._steps.get(event.task_id or "", "(run)")
            move = f"{event.source or 'new'} → {event.target}"
            attempt = f"attempt {event.attempt}" if event.attempt else ""
            elapsed = time.monotonic() - self._began
            line = f"  {elapsed:5.2f}s  {subject:<7} {event.type:<15} {move:<20} {attempt}"
            say(line.rstrip())


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
