"""`run --rehearse`: a workflow file carried out by stubs, in a store that is thrown away."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.live import ended, tell_events
from holdfast.cli.session import serving
from holdfast.cli.terminal import note, say, say_json
from holdfast.cli.tree import draw_run
from holdfast.errors import InvalidInput
from holdfast.service.project.project import Place

if TYPE_CHECKING:
    from holdfast.model.run import NewRun


def rehearse(run: NewRun, *, json: bool) -> int:
    """Play a run through; the answer is its exit code."""
    if run.workflow.declared is None:
        reason = "is for workflow files: what a Python function would give, only it can say"
        raise InvalidInput("rehearse", reason)
    with tempfile.TemporaryDirectory(prefix="holdfast-rehearsal-") as folder:
        place = Place(url=f"sqlite:///{folder}/rehearsal.db", home=Path(folder), settled=True)
        with serving(place) as service:
            run_id = service.commands.start(run)["id"]
            service.rehearse(run.workflow)
            told = service.queries.run(run_id)
            if json:
                say_json(told)
            else:
                tell_events(service, told, 0)
                for line in draw_run(told):
                    say(line)
                note("A rehearsal: every step was done by a stub, and nothing of it is kept.")
    return ended(told) or 0
