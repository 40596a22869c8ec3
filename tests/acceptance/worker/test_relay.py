"""The relay to Redis goes with every worker: one has it, and another when that one is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from holdfast import Holdfast
from holdfast.bus import Channel, RedisBus
from tests import servers
from tests.acceptance.terminals import PATIENCE, PROGRAM, environment, holdfast
from tests.contract.raw_store import raw


def _until(condition: Callable[[], bool]) -> None:
    """Look again and again: what is waited for happens in other processes."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def _relaying(url: str) -> int:
    """The process whose turn it is, or 0."""
    with raw(url) as run:
        rows = run("SELECT owner FROM holdfast_lease WHERE key = 'bus/relay/redis'")
    return int(rows[0]["owner"].rpartition(":")[2]) if rows else 0


def test_one_of_two_workers_relays_and_the_other_takes_over_when_it_is_killed(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/shop.db"
    with servers.redis_server() as server, Holdfast(url) as hf, ExitStack() as stack:
        note = hf.task(_note)
        bus = RedisBus(server)
        stack.callback(bus.close)
        workers = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", PROGRAM, "worker", "--name", f"w-{number}"],
                    cwd=tmp_path,
                    env=environment(HOLDFAST_DB=url, HOLDFAST_BUS=server),
                    stderr=subprocess.DEVNULL,
                )
            )
            for number in range(2)
        ]
        for each in workers:
            stack.callback(each.kill)
        note.enqueue(1)
        _until(lambda: _sent(bus) == 1)
        first = _relaying(url)
        (other,) = {each.pid for each in workers} - {first}
        os.kill(first, signal.SIGKILL)
        with raw(url) as run:
            # As after the few seconds that its lease had left.
            run("UPDATE holdfast_lease SET expires_at = 1 WHERE key = 'bus/relay/redis'")
        note.enqueue(2)
        _until(lambda: _sent(bus) == 2)
        assert _relaying(url) == other
        told = holdfast(tmp_path, "bus", HOLDFAST_DB=url, HOLDFAST_BUS=server).stdout
        assert f":{other}\n" in told.partition("relay")[2]


def _note(number: int) -> int:
    return number


def _sent(bus: RedisBus) -> int:
    """How many tasks Redis was told of as new: of each once or, after a kill, twice."""
    told = bus.latest(Channel.EVENTS, 100)
    return len({each.task_id for each in told if each.type == "task.created"})
