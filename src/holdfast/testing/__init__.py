"""Tests of programs that use Holdfast: their own workflows, on a real store, in the test's thread.

Imports: pytest_plugin → harness → store_checks → attempt_driver → attempt_execution, stubs →
attempt_faults, harness_stores → targets; standalone_context stands beside them.

- `attempt_driver` claims of ready tasks, and their attempts, one after the other in this thread
- `attempt_execution` an attempt that can end or stand still where a test wants it to
- `attempt_faults` crashes and lost leases, each at a point of an attempt
- `harness` the class `Harness`: the store of a test, its time, its faults, its stubs
- `harness_stores` the stores that a program uses while a test runs
- `pytest_plugin` the fixtures for pytest
- `standalone_context` a context for calling one step alone
- `store_checks` assertions about calls, attempts and effects, which say what was there instead
- `stubs` answers in place of functions, agents and commands
- `targets` the steps and tasks that a test means
"""

import importlib as _importlib
import typing as _typing

if _typing.TYPE_CHECKING:
    from holdfast.testing.attempt_driver import NotEnded, RanAttempt, TooManyAttempts
    from holdfast.testing.attempt_faults import WorkerDied
    from holdfast.testing.harness import Harness
    from holdfast.testing.standalone_context import StandaloneContext
    from holdfast.testing.stubs import Question

_MODULES = {
    "Harness": "harness",
    "NotEnded": "attempt_driver",
    "Question": "stubs",
    "RanAttempt": "attempt_driver",
    "StandaloneContext": "standalone_context",
    "TooManyAttempts": "attempt_driver",
    "WorkerDied": "attempt_faults",
}

__all__ = [
    "Harness",
    "NotEnded",
    "Question",
    "RanAttempt",
    "StandaloneContext",
    "TooManyAttempts",
    "WorkerDied",
]


def __getattr__(name: str) -> object:
    # Imported at the first use: pytest loads the plugin of this package in every project.
    if name not in _MODULES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    module = _importlib.import_module(f"{__name__}.{_MODULES[name]}")
    globals()[name] = getattr(module, name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
