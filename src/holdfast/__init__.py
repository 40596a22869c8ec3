"""Holdfast runs pipelines of agents and long jobs so that no step runs out of order or twice.

The layers, each knowing only those below it:

- `cli`      the command `holdfast`
- `mcp`      the service as tools of agents, by role
- `server`   HTTP: one gate, thin routes over the service, long polls, a stream of events
- `importing` takes over what older programs left: `import_tasks`, `import_runs`; import it by name
- `api`      functions become tasks and steps: `Holdfast`, `needs`, handles; `api.public` is what
  `holdfast` itself gives
- `service`  the one door of every front end: addresses, views, pages, reports
- `worker`   pulls tasks under leases and runs them: `Worker`, `Context`
- `bus`      messages: `Consumer`, `SqlBus`, `RedisBus`, `Relay`, notifications; import it by name
- `engine`   the one writer of state: tasks, runs, the worker's protocol, `why`, `doctor`
- `definition` reads workflow files into graphs, with a place for each mistake
- `store`    SQL and nothing else: two drivers, migrations, group commit, hints
- `model`    what things are: statuses, transitions, graphs, events; pure
- `errors`, `clock`, `ids`, `logs`, `randomness`, `settings`, `spans`, `threads`, `tracing`
"""

import importlib as _importlib
import typing as _typing

if _typing.TYPE_CHECKING:
    from holdfast.api.public import *  # noqa: F403
    from holdfast.api.public import __all__ as __all__


def _bring() -> dict[str, object]:
    public = vars(_importlib.import_module("holdfast.api.public"))
    given = {name: public[name] for name in ("__all__", *public["__all__"])}
    globals().update(given)
    return given


def __getattr__(name: str) -> object:
    # Not before it is wanted: the command line would wait for what only programs use.
    if not name.startswith("_") or name == "__all__":
        given = _bring()
        if name in given:
            return given[name]
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    _bring()
    return sorted(globals())
