"""What somebody wants to run now, where every place of the worker is taken."""

from __future__ import annotations

import threading

from holdfast import Holdfast
from holdfast.engine.engine import Engine
from tests.contract.task_states import create, take
from tests.race.racers import eventually

PATIENCE = 20


def test_a_full_worker_has_one_place_more_for_what_is_to_run_now(store_url: str) -> None:
    with Holdfast(store_url, poll=0.05, renewal=0.1) as hf:
        free = threading.Event()
        began: list[str] = []

        @hf.task
        def job(name: str) -> str:
            began.append(name)
            assert free.wait(PATIENCE)
            return name

        with hf.worker(concurrency=1):
            handles = [job.enqueue(name) for name in ("first", "second", "third", "fourth")]
            assert eventually(lambda: began == ["first"])
            assert hf.tasks.run_now(handles[2].id).ok
            assert hf.tasks.run_now(handles[3].id).ok
            assert eventually(lambda: len(began) == 2)
            assert began[1] in {"third", "fourth"}
            # It says that it lives again and again meanwhile, and looks for work each time.
            seen = hf.workers.list()[0].seen_at
            assert eventually(lambda: hf.workers.list()[0].seen_at > seen + 500_000)
            assert len(began) == 2
            free.set()
            assert sorted(each.result(PATIENCE) for each in handles) == [
                "first",
                "fourth",
                "second",
                "third",
            ]
        assert all(len(hf.tasks.attempts(each.id)) == 1 for each in handles)


def test_the_first_to_run_now_is_of_an_agent_and_tags_that_are_offered(engine: Engine) -> None:
    plain, other = create(engine), create(engine, agent="other", tags=("gpu",))
    assert engine.work.first_to_run_now(["default", "other"], ["gpu"]) is None
    assert engine.tasks.run_now(other).ok
    assert engine.work.first_to_run_now(["default"], ["gpu"]) is None
    assert engine.work.first_to_run_now(["default", "other"]) is None
    assert engine.work.first_to_run_now(["default", "other"], ["gpu"]) == other
    assert engine.tasks.run_now(plain).ok
    assert engine.work.first_to_run_now(["default", "other"], ["gpu"]) == plain
    named = create(engine, step="pack")
    assert engine.tasks.run_now(named).ok
    assert engine.work.first_to_run_now(["default"], bare=False) == named
    take(engine, named)
    assert engine.work.first_to_run_now(["default"], bare=False) is None
    take(engine, plain)
    assert engine.work.first_to_run_now(["default"]) is None
