"""Workers for a task: which live ones serve it, and what keeps all of these busy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from holdfast.clock import MICROSECONDS
from holdfast.engine.explain.explanation import Clause, TakenBy, describe_no_worker
from holdfast.engine.read.worker_loads import read_loads, read_workers
from holdfast.model.advice import Action, advise
from holdfast.model.moment import count_microseconds
from holdfast.model.status import Status, TaskKind
from holdfast.model.task import Task
from holdfast.model.units import describe_duration
from holdfast.model.worker import LiveWorker, Occupant, WorkerLoad, serves_agent
from holdfast.store.database import Transaction

WORKERS_SHOWN = 5
OCCUPANTS_SHOWN = 3


class WorkerExplainer:
    """The live workers of one snapshot, read once for all tasks that are explained."""

    def __init__(self, tx: Transaction) -> None:
        self.tx = tx

    @cached_property
    def workers(self) -> Sequence[LiveWorker]:
        return read_workers(self.tx)

    @cached_property
    def _loads(self) -> dict[str, WorkerLoad]:
        return {each.worker.name: each for each in read_loads(self.tx, self.workers)}

    @cached_property
    def _now(self) -> int:
        return int(self.tx.read("now")[0]["now"])

    def explain_workers(self, task: Task, taken_by: TakenBy, *, ready: bool) -> Clause | None:
        """Whether a live worker would take a queued task; None where the task needs no worker.

        Only of a `ready` task it matters whether a worker has room for it.
        """
        if task.kind is not TaskKind.WORK or task.status is not Status.QUEUED:
            return None
        left = describe_no_worker(task, taken_by)
        bare = left is not None
        fitting = [each for each in self.workers if fits(each, task.agent, task.tags, bare=bare)]
        serving = [each for each in fitting if is_serving(each)]
        if left is not None and not serving:
            return Clause(name="worker", ok=False, detail=left)
        pauses = [f"{each.name}: {each.pausing}" for each in fitting if each.pausing]
        wanted = f'"{task.agent}"' + (f" with {', '.join(task.tags)}" if task.tags else "")
        many = "live worker" if len(serving) == len(self.workers) == 1 else "live workers"
        verb = "serves" if len(serving) == 1 else "serve"
        counted = f"{len(serving)} of {len(self.workers)} {many} {verb} {wanted}"
        if not serving:
            return Clause(name="worker", ok=False, detail="; ".join([counted, *pauses]))
        if not ready:
            return Clause(name="worker", ok=True, detail="; ".join([counted, *pauses]))
        loads = [self._loads[each.name] for each in serving]
        if free := [each for each in loads if each.free]:
            rooms = _name_some([f"{each.worker.name} ({_describe_room(each)})" for each in free])
            return Clause(
                name="worker", ok=True, detail="; ".join([f"{counted}: {rooms}", *pauses])
            )
        state = "it is full" if len(loads) == 1 else "all of them are full"
        return Clause(
            name="worker",
            ok=False,
            detail="; ".join([f"{counted}, and {state}", *pauses]),
            fix=advise(Action.LIST_WORKERS),
            more=tuple(self._describe_loads(loads)),
        )

    def _describe_loads(self, loads: Sequence[WorkerLoad]) -> list[str]:
        """What keeps each of some workers busy, in a line for each."""
        lines = [line for each in loads[:WORKERS_SHOWN] for line in self._describe_load(each)]
        if (left := len(loads) - WORKERS_SHOWN) > 0:
            lines.append(f"and {left} more {'worker' if left == 1 else 'workers'}")
        return lines

    def _describe_load(self, load: WorkerLoad) -> list[str]:
        lines = []
        if load.claimed:
            shown = [self._describe_occupant(each) for each in load.running[:OCCUPANTS_SHOWN]]
            more = load.claimed - len(shown)
            told = ", ".join(shown) + (f", and {more} more" if more else "")
            lines.append(f"{load.worker.name} runs {told}")
        if load.overruns:
            some = [self._describe_occupant(each) for each in load.overruns]
            holds = "a slot" if len(some) == 1 else f"{len(some)} slots"
            go_on = "functions that go on after their attempts were over"
            lines.append(
                f"{load.worker.name} has {holds} taken by {go_on}: {_name_some(some)}; "
                "only a new start of the worker ends them"
            )
        return lines

    def _describe_occupant(self, occupant: Occupant) -> str:
        seconds = round(max(0, self._now - count_microseconds(occupant.began_at)) / MICROSECONDS)
        since = describe_duration(seconds * MICROSECONDS)
        return f"{occupant.name} {occupant.task_id} for {since}"


def fits(worker: LiveWorker, agent: str, tags: Iterable[str], *, bare: bool = False) -> bool:
    """Whether a worker serves an agent and has all of some tags.

    For a `bare` task, which names neither function nor program, it has to be equipped besides.
    """
    if bare and not serves_agent(worker.equipped, agent):
        return False
    return serves_agent(worker.agents, agent) and {*tags} <= {*worker.tags}


def is_serving(worker: LiveWorker) -> bool:
    """Whether a worker claims anything: it was not told to go, and does not pause."""
    return worker.told is None and worker.pausing is None


def _describe_room(load: WorkerLoad) -> str:
    return f"{load.free} of {load.worker.concurrency} slots free"


def _name_some(names: Sequence[str]) -> str:
    more = len(names) - OCCUPANTS_SHOWN
    return ", ".join(names[:OCCUPANTS_SHOWN]) + (f" and {more} more" if more > 0 else "")
