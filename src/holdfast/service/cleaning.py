"""What was kept long enough: shown, or removed at once and not only when it is next looked for."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.clock import MICROSECONDS
from holdfast.engine.engine import Engine
from holdfast.engine.surroundings.removal import KINDS, RUNS, TASKS
from holdfast.service.leftovers import Leftovers, throw_away
from holdfast.service.place import Place
from holdfast.service.views import View
from holdfast.settings import Keep
from holdfast.worker.files.state_directory import state_of


def clean(engine: Engine, place: Place, keep: Keep, *, dry_run: bool = False) -> View:
    """`{dry_run, runs, tasks, logs, artifacts}`: what went, or would but for what is waited for.

    Files go after what they are of: those that a crash leaves are found the next time.
    """
    before = engine.now() - round(keep.runs * MICROSECONDS)
    leftovers = Leftovers(engine, state_of(place.url), keep)
    if dry_run:
        found = {kind: list(_find(engine, kind, before)) for kind in KINDS}
        gone = {kind: sorted({top for _, top in found[kind]}) for kind in KINDS}
        going = {member for kind in KINDS for member, _ in found[kind]}
        logs, artifacts = leftovers.logs(), leftovers.artifacts(going)
    else:
        gone = {kind: sorted(_remove(engine, kind, before)) for kind in KINDS}
        while engine.removals.forget(before):
            pass
        logs, artifacts = leftovers.logs(), leftovers.artifacts()
        throw_away([*logs, *artifacts])
    return {
        "dry_run": dry_run,
        "runs": gone[RUNS],
        "tasks": gone[TASKS],
        "logs": [each.name for each in logs],
        "artifacts": [each.name for each in artifacts],
    }


def _find(engine: Engine, kind: str, before: int) -> Iterator[tuple[str, str]]:
    until: str | None = None
    while found := engine.removals.find(kind, before, until=until):
        yield from found
        until = found[-1][1]


def _remove(engine: Engine, kind: str, before: int) -> Iterator[str]:
    return (each for page in engine.removals.walk(kind, before) for each in page.gone)
