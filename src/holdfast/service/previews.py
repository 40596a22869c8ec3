"""What a command would change, for `--dry-run`: read, not done."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from holdfast.engine import places, unmade
from holdfast.engine.engine import Engine
from holdfast.engine.records import read_task
from holdfast.errors import InvalidInput
from holdfast.model.status import Hold, Kind, RunStatus, Status
from holdfast.model.task import Task
from holdfast.model.text import clean_name
from holdfast.service.called import runs_below
from holdfast.service.queries import view_rows, view_tasks
from holdfast.service.views import View
from holdfast.store.database import Transaction

PAGE = 1_000


class Previews:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def cancel(self, identifier: str) -> list[View]:
        """The open tasks that would end cancelled."""
        return self._view(task for task in self._all(identifier) if not task.terminal)

    def retry(self, identifier: str, step: str | None = None) -> list[View]:
        """The tasks that would be tried again: what failed, or a step and all that needs it."""
        if step is not None:
            return self._view(self._from(identifier, step))
        tasks = self._all(self._whole(identifier))
        return self._view(
            task for task in tasks if task.status in {Status.FAILED, Status.CANCELLED}
        )

    def again(self, task_id: str) -> list[View]:
        """A task that would be done again, and everything that needs it."""
        task = self._engine.tasks.get(task_id)
        if task.run_id is None or task.parent_id is not None or task.step is None:
            return self._view([task])
        return self._view(self._from(task.run_id, task.step))

    def pause(self, identifier: str) -> list[View]:
        """The tasks that would not start any more: what runs goes on."""
        return self._view(self._stopped(identifier, paused=False))

    def resume(self, identifier: str) -> list[View]:
        """The tasks that would no longer be kept from starting, by the pause or another hold."""
        return self._view(self._stopped(identifier, paused=True))

    def lift_limit(self, agent: str) -> list[View]:
        """The tasks that would no longer wait for the usage limit of their agent."""
        named = clean_name("agent", agent)

        def read(tx: Transaction) -> list[View]:
            if not tx.read("limit_of_agent", agent=named):
                return []
            rows = tx.read("limited_tasks", agent=named) + tx.read("waiting_tasks", agent=named)
            return view_rows(tx, tx.read("tasks_by_id", ids=sorted(row["id"] for row in rows)))

        return self._engine.database.view(read)

    def finalize(self, task_id: str) -> list[View]:
        """The children of a plan that would be queued."""
        children = self._below(task_id)
        return self._view(task for task in children if task.status is Status.IDLE)

    def _all(self, identifier: str) -> list[Task]:
        if identifier.startswith("r_"):
            return [task for task in self._in_runs(identifier) if not task.superseded]
        tasks = [self._engine.tasks.get(identifier)]
        for task in tasks:
            tasks += self._below(task.id)
        return [task for task in tasks if not task.superseded]

    def _whole(self, identifier: str) -> str:
        """What is tried again with a run or task: its run, what called that and ended, its plan."""
        if identifier.startswith("t_"):
            task = self._engine.tasks.get(identifier)
            above = task.run_id or task.parent_id
            return identifier if above is None else self._whole(above)
        run = self._engine.runs.get(identifier)
        if run.status is RunStatus.RUNNING or run.parent_id is None:
            return identifier
        return self._whole(run.parent_id)

    def _in_runs(self, run_id: str) -> list[Task]:
        """The tasks of a run, and of what it has called."""
        runs = self._engine.database.view(lambda tx: runs_below(tx, [run_id]).get(run_id, []))
        return [task for each in (run_id, *runs) for task in self._engine.runs.tasks(each)]

    def _stopped(self, identifier: str, *, paused: bool) -> list[Task]:
        """What a pause stops, where there is one as was said: of a run, all that has not begun."""
        if identifier.startswith("r_"):
            run = self._engine.runs.get(identifier)
            found, over = self._all(identifier), run.status is not RunStatus.RUNNING
            tasks = [task for task in found if task.status in {Status.IDLE, Status.QUEUED}]
            holds = run.holds
        else:
            task = self._engine.tasks.get(identifier)
            tasks, over, holds = [task], task.terminal, task.holds
            # The same command lets go a task that its agent's limit or a missing function holds.
            holds |= Hold.PAUSED if paused and holds & (Hold.LIMIT | Hold.VERSION) else 0
        return [] if over or bool(holds & Hold.PAUSED) is not paused else tasks

    def _below(self, task_id: str) -> list[Task]:
        asked: dict[str, Any] = {"after": "t_8", "status": None, "agent": None, "count": PAGE}
        rows = self._engine.database.view(
            lambda tx: tx.read("list_tasks_of_parent", parent_id=task_id, **asked)
        )
        return sorted(map(read_task, rows), key=lambda task: (task.position, task.id))

    def _from(self, run_id: str, step: str) -> list[Task]:
        """What begins again with a step: all that needs it, and what needs the groups around it."""

        def seek(tx: Transaction) -> str:
            sought = places.seek(tx, run_id, step)
            if sought.found is None or sought.found["run_id"] != run_id:
                raise InvalidInput("from", unmade.tell_unknown(tx, run_id, step, sought))
            return str(sought.found["id"])

        tasks = [task for task in self._engine.runs.tasks(run_id) if not task.superseded]
        known = {task.id: task for task in tasks}
        reached: set[str] = set()
        named = known.get(self._engine.database.view(seek))
        while named is not None:
            alone = named.kind is Kind.GROUP and named.item is not None
            beside = [task.id for task in tasks if task.parent_id == named.parent_id]
            reached |= {named.id} if alone else self._needing(beside, named.id)
            above = known.get(named.parent_id or "")
            named = above if above is not None and above.terminal else None
        return [task for task in tasks if task.id in reached]

    def _needing(self, beside: Collection[str], first: str) -> set[str]:
        """A task and those beside it that need it, near or far."""

        def read(tx: Transaction) -> dict[str, set[str]]:
            return {
                task: {row["need_id"] for row in tx.read("needs_of", task_id=task)}
                for task in beside
            }

        needs = self._engine.database.view(read)
        reached: set[str] = set()
        found = {first}
        while found:
            reached |= found
            found = {task for task in beside if needs[task] & reached} - reached
        return reached

    def _view(self, tasks: Iterable[Task]) -> list[View]:
        chosen = list(tasks)
        return self._engine.database.view(lambda tx: view_tasks(tx, chosen))
