"""Expected statements (ADR 40, 1.2 to 1.4 times as fast 1 ms away): sent with a completion.

Afterwards each statement is asked for as if it had not been sent: a wrong expectation costs a
statement, or another try of the group.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.claims.standing_claims import StandingClaims
from holdfast.engine.core.operation import Complete
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.state.direct_start import describe_unblocking
from holdfast.engine.state.report_outcomes import completion_rows

# The reports of a larger group share their round trips anyway.
MOST_REPORTS = 8


def send_ahead(
    work: UnitOfWork,
    reports: Sequence[Complete],
    standing_claims: StandingClaims,
    *,
    fires_hooks: bool,
) -> None:
    """Send the completions of a group, and what follows from them if all of them are accepted.

    The claim is not sent where something is known to be written before it: where hooks are fired,
    their tasks; where runs do not stand alone, what their ends free, hold or wake.
    """
    if len(reports) > MOST_REPORTS or any(report.head is not None for report in reports):
        return
    started = [work.run_cache.started(report.task_id) for report in reports]
    tasks = [task for task in started if task is not None and task.simple]
    runs = sorted({task.run_id for task in tasks if task.run_id is not None})
    facts = work.run_cache.known_facts(runs)
    if not reports or len(tasks) != len(reports) or facts is None:
        return
    work.tx.send_ahead("complete_tasks", rows=completion_rows(reports))
    start = work.direct_start
    has_room = start is not None and start.room > 0
    stand_alone = all(run.stands_alone for run in facts)
    locked = runs if has_room and stand_alone else []
    query, parameters = describe_unblocking(start, [each.task_id for each in reports], locked)
    work.tx.send_ahead(query, **parameters)
    if len(tasks) == 1 and not tasks[0].needed:
        if runs:
            work.tx.send_ahead("settle_runs", ids=runs)
        if stand_alone and not fires_hooks:
            standing_claims.send_ahead(work)
