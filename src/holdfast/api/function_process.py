"""Function process: the program in which a function with a process of its own runs.

A worker starts it under a keeper, and tells it through a pipe which function to import and call.
"""

from __future__ import annotations

import importlib
import logging
import os
import pickle
import sys
import traceback
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.spawn import prepare
from typing import Any

from holdfast.api.function_registry import encode_verdict
from holdfast.api.signature import Signature
from holdfast.api.task import TaskFunction
from holdfast.worker.attempt.execution import Invocation
from holdfast.worker.pool.runner import make_step_loop
from holdfast.worker.steps.attempt_pipe import BROKEN, ENDED, REPORT, FunctionJob, PipeClient
from holdfast.worker.steps.piped_store import PipedExecution

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class FunctionNotFound(Exception):
    """The function is not where its module and name say that it is."""


def main() -> None:
    # What the process begins with, before other threads may use the pipe.
    connection = Connection(int(sys.argv[1]))
    sys.argv[:] = sys.argv[:1]
    # As `multiprocessing` does: the paths, the folder, and the program as `__main__`.
    broken, job = "", None
    try:
        described = connection.recv()
        # Taken out of the pipe in any case: what comes after it are replies.
        job_bytes = connection.recv_bytes()
        prepare(described)
        job = pickle.loads(job_bytes)  # noqa: S301 - it comes from the worker
    except BaseException:  # noqa: BLE001 - the worker tells of it
        broken = traceback.format_exc()
    pipe = PipeClient(connection)
    if job is None:
        pipe.call(BROKEN, broken)
    else:
        _run_job(pipe, job)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    # Not through the end of the interpreter, which waits for threads that the function has left.
    os._exit(0)


def _run_job(pipe: PipeClient, job: FunctionJob) -> None:
    if not logging.getLogger().handlers:
        logging.basicConfig(level=job.log_level, format=LOG_FORMAT)
    try:
        signature = _find_function(job)
        execution = PipedExecution(pipe, job)
    except Exception:  # noqa: BLE001 - the same
        pipe.call(BROKEN, traceback.format_exc())
        return
    run_attempt(execution, signature, job)
    if execution.prepared is None:
        pipe.call(ENDED)
    else:
        pipe.call(REPORT, *execution.prepared)


def run_attempt(execution: PipedExecution, signature: Signature, job: FunctionJob) -> None:
    """Run the function as a worker does, up to the report that is left for its worker."""
    if not execution.begin():
        return
    try:
        arguments = {
            name: signature.decode(name, value) for name, value in job.call.arguments.items()
        }
    except Exception as error:  # noqa: BLE001 - it is the task's, as in a worker
        execution.finish_with(partial(execution.fail, retryable=False), error)
        return
    if signature.context is not None:
        arguments[signature.context] = execution.context
    encode: Callable[[object], object] = partial(signature.encode, "return")
    if job.call.verdict:
        encode = partial(encode_verdict, signature)
    invocation = Invocation(
        signature.function, arguments, encode, signature.asynchronous, job.options
    )
    if not signature.asynchronous:
        execution.run_function(invocation)
        return
    loop = make_step_loop()
    loop.run_until_complete(execution.run_coroutine(invocation))


def _find_function(job: FunctionJob) -> Signature:
    """The function that a job names, as its program defines it."""
    call = job.call
    found: Any = importlib.import_module(call.module)
    for name in call.name.split("."):
        found = getattr(found, name, None)
    whole = found
    # A task may be wrapped further; its own function is what a worker runs.
    while whole is not None and not isinstance(whole, TaskFunction):
        whole = getattr(whole, "__wrapped__", None)
    function = found if whole is None else whole.signature.function
    if not callable(function):
        raise FunctionNotFound(f"{call.module} has no function {call.name}")
    return Signature(function)


if __name__ == "__main__":
    main()
