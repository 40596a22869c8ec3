"""Which thread writes the claim of a task that another process has enqueued."""

from __future__ import annotations

import threading

from benchmarks.program import program


def test_the_thread_that_hears_a_hint_writes_the_claim_itself(postgres_url: str) -> None:
    writers: set[str] = set()
    with program(postgres_url) as made, made.hf.worker(concurrency=1):
        made.job.enqueue().result(60)
        made.hf.engine.on_commit(lambda: writers.add(threading.current_thread().name))
        with program(postgres_url) as other:
            # The writer's thread may be at work when a hint comes, and then it claims.
            for _ in range(20):
                other.job.enqueue().result(60)
                if any(name.startswith("holdfast-listen") for name in writers):
                    return
    raise AssertionError(writers)
