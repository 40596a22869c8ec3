"""Many rows changed by one statement: each told as if it had been changed alone."""

from __future__ import annotations

from holdfast.engine.engine import Engine
from holdfast.model.result import Refusal
from holdfast.model.task import NewTask

# More than one group holds, and more events than one statement writes.
COUNT = 515


def fill(engine: Engine, count: int) -> list[str]:
    made = [engine.tasks.create.submit(NewTask(title=f"task {n}")) for n in range(count)]
    return [each.result().id for each in made]


def test_tasks_claimed_together_are_reported_each_by_its_own_attempt(engine: Engine) -> None:
    tasks = fill(engine, COUNT)
    held = engine.work.claim("worker", count=COUNT)
    assert [each.task_id for each in held] == tasks
    late = set(tasks[::7])
    for each in held:
        if each.task_id in late:
            assert engine.tasks.cancel(each.task_id).ok
    told = [
        engine.work.complete.submit(each.task_id, each.token, {"n": n, "text": 'a "b" \\ ü\n'})
        for n, each in enumerate(held)
    ]
    for each, answer in zip(held, told, strict=True):
        refused = Refusal.ALREADY_TERMINAL if each.task_id in late else None
        assert answer.result().reason == refused
    for n, each in enumerate(held):
        if each.task_id not in late:
            assert engine.tasks.get(each.task_id).output == {"n": n, "text": 'a "b" \\ ü\n'}
