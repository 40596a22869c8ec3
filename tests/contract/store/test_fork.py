"""A program that forks: what was opened before is the parent's, and nobody waits for ever."""

from __future__ import annotations

import os
import subprocess
import sys

# Each child says by its exit code that it came as far as it should.
USED = """
import os, sys
from holdfast import Holdfast
from holdfast.errors import HoldfastError

def wait(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

hf = Holdfast(sys.argv[1])

@hf.task
def job():
    return 1

"""
IN_CHILD = (
    USED
    + """
before = job.enqueue()
# As it would be if another thread were just asking for the engine.
with hf._stores.current.lock:
    child = os.fork()
if not child:
    with hf, hf.worker():
        assert job.enqueue().result(30) == 1
        assert hf.tasks.get(before.id).id == before.id
    os._exit(7)
assert wait(child) == 7
with hf.worker():
    assert job.enqueue().result(30) == 1
hf.close()
"""
)
REFUSED = (
    USED
    + """
job.enqueue()
child = os.fork()
if not child:
    try:
        job.enqueue()
    except HoldfastError as error:
        assert "spawn" in str(error), error
        hf.close()
        os._exit(7)
    os._exit(1)
assert wait(child) == 7
after = job.enqueue()
assert hf.doctor().ok
hf.close()
if not (child := os.fork()):
    with Holdfast(sys.argv[1]) as again:
        assert again.tasks.get(after.id).status == "queued"
    os._exit(7)
assert wait(child) == 7
"""
)
UNUSED = (
    USED
    + """
children = []
for _ in range(2):
    if not (child := os.fork()):
        with hf, hf.worker():
            assert job.enqueue().result(30) == 1
        os._exit(7)
    children.append(child)
assert [wait(child) for child in children] == [7, 7]
job.enqueue()
hf.close()
"""
)
WHILE_THREADS_WAKE = (
    USED
    + """
from holdfast import Context
from holdfast.engine.core.thread_wakeups import WAKEUPS, ThreadWaiter

@hf.task
def durable(ctx: Context):
    return ctx.effect("one", int, 1)

# As it would be if a thread had just been woken, and were about to wake the next.
WAKEUPS.add(ThreadWaiter(WAKEUPS))
child = os.fork()
if not child:
    with hf, hf.worker(concurrency=2):
        assert durable.enqueue().result(30) == 1
    os._exit(7)
assert wait(child) == 7
"""
)
ENGINE = """
import os, sys
from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError
from holdfast.model.task import NewTask

engine = Engine(sys.argv[1]).start()
task = engine.tasks.create(NewTask(title="x")).id
with engine.commits._inbox_changed:
    child = os.fork()
if not child:
    try:
        engine.tasks.cancel(task)
    except HoldfastError as error:
        assert "open a new Holdfast after the fork" in str(error), error
        try:
            engine.outcomes.wait(task, engine.outcomes.looks)
        except HoldfastError as error:
            assert "open a new Holdfast after the fork" in str(error), error
            engine.commits.close()
            os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert engine.tasks.cancel(task).ok
engine.close()
"""


def run(script: str, url: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore", "-c", script, url]
    subprocess.run(command, check=True, env=environment, timeout=60)


def test_a_holdfast_in_use_opens_anew_in_a_forked_child(postgres_url: str) -> None:
    run(IN_CHILD, postgres_url)


def test_a_sqlite_file_that_was_open_at_the_fork_is_refused_in_the_child(sqlite_url: str) -> None:
    run(REFUSED, sqlite_url)


def test_a_holdfast_not_yet_in_use_may_be_forked_as_often_as_one_likes(store_url: str) -> None:
    run(UNUSED, store_url)


def test_a_durable_function_goes_on_in_a_child_forked_while_threads_were_being_woken(
    store_url: str,
) -> None:
    run(WHILE_THREADS_WAKE, store_url)


def test_an_engine_takes_no_operation_in_a_forked_child(store_url: str) -> None:
    run(ENGINE, store_url)
