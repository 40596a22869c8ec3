"""Holdfast runs pipelines of agents and long jobs so that no step runs out of order or twice.

The layers, from the top to the bottom; imports go down only:

- `cli` the command line
- `testing` tests of programs that use Holdfast; import this package by its name
- `server` HTTP: authentication, routes over the service, long polls, a stream of events
- `mcp` the service as tools for agents, by role
- `importing` imports from the databases of older programs; import this package by its name
- `api` Python functions as tasks and steps: `Holdfast`, `needs`, handles; all names in `public`
- `service` the commands and queries that every front end uses
- `worker` the worker, which pulls tasks under leases and runs them: `Worker`, `Context`
- `bus` messages and notifications over SQL or Redis; import this package by its name
- `engine` the only writer of state: tasks, runs, the protocol of workers, `why`, `doctor`
- `definition` workflow files, read into graphs with the position of each mistake
- `store` SQL for SQLite and PostgreSQL: statements, transactions, migrations, group commit, hints
- `presets` the well-known agent command lines: their flags, and what their streams say
- `model` statuses, transitions, graphs and events as pure values
- `clock` the port for time
- `ids` ids of tasks and runs, ordered by time
- `logs` log lines as JSON, each with its run, task and attempt
- `randomness` the port for randomness
- `settings` settings of one store and of one project
- `spans` the tracer for OpenTelemetry
- `stop_signals` Ctrl-Z, which waits for the end of write transactions
- `threads` the port for threads, locks and waiting
- `tracing` the port for spans
- `errors` the tree of all errors
"""

import importlib as _importlib
import typing as _typing

if _typing.TYPE_CHECKING:
    from holdfast.api.public import *  # noqa: F403
    from holdfast.api.public import __all__ as __all__


def _load_public() -> dict[str, object]:
    public = vars(_importlib.import_module("holdfast.api.public"))
    given = {name: public[name] for name in ("__all__", *public["__all__"])}
    globals().update(given)
    return given


def __getattr__(name: str) -> object:
    # Imported at the first use: the command line does not wait for what only programs use.
    if not name.startswith("_") or name == "__all__":
        given = _load_public()
        if name in given:
            return given[name]
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    _load_public()
    return sorted(globals())
