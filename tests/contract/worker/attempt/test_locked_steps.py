"""A step whose row another transaction has locked: what it did is remembered, and done once."""

from __future__ import annotations

import threading

import pytest

from holdfast import Context, Holdfast, NewTask
from holdfast.engine.engine import engine_of
from tests.race.racers import eventually

PATIENCE = 30


def test_steps_are_done_once_however_long_the_store_is_busy_while_their_leases_last(
    postgres_store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[str] = []
    free, ready = threading.Event(), threading.Barrier(4)
    # Who waits for a lock is told so after a third of the lease.
    with Holdfast(postgres_store_url, lease=4.5, renewal=1.5) as hf:

        @hf.task
        def child() -> None:
            done.append("child")

        @hf.task(max_attempts=2, backoff=0)
        def step(ctx: Context, kind: str) -> object:
            if not free.is_set():
                ready.wait(PATIENCE)
                assert free.wait(PATIENCE)
            if kind == "effect":
                return ctx.effect("mail", done.append, "mail")
            return ctx.wait_for("go") if kind == "wait" else ctx.spawn(child)

        with hf.worker(concurrency=4):
            handles = [step.enqueue(kind) for kind in ("effect", "wait", "spawn")]
            assert hf.signal(handles[1].id, "go", "gone").ok
            ready.wait(PATIENCE)
            with hf.transaction() as connection:
                needs = tuple(each.id for each in handles)
                engine_of(hf).tasks.create(
                    NewTask(title="after", agent="none", needs=needs), connection=connection
                )
                free.set()
                assert eventually(lambda: caplog.text.count("it is sent again") >= len(handles))
            assert [each.result(PATIENCE) for each in handles][1] == "gone"
            assert eventually(lambda: sorted(done) == ["child", "mail"])
        attempts = [hf.tasks.attempts(each.id) for each in handles]
        assert [[one.outcome for one in each] for each in attempts] == [["completed"]] * 3
