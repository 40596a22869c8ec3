"""Many durable functions at once share connections, reads and commits."""

from __future__ import annotations

import threading

import apsw
import psycopg

from holdfast import Context, Holdfast
from holdfast.engine.engine import engine_of
from holdfast.settings import Settings

MANY = 60
PATIENCE = 60.0


class OpenConnections:
    """Counts the connections that a process has to its store, and remembers the most."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.most = 0

    def count(self) -> None:
        if self._url.startswith("sqlite"):
            self.most = max(self.most, len(apsw.connections()))
            return
        with psycopg.connect(self._url) as connection:
            found = connection.execute(
                "SELECT count(*) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid() "
                "AND backend_type = 'client backend'"
            ).fetchone()
        assert found is not None
        self.most = max(self.most, found[0])


def test_many_functions_with_effects_waits_and_children_open_no_connection_of_their_own(
    hf: Holdfast, store_url: str
) -> None:
    connections = OpenConnections(store_url)
    met = threading.Barrier(MANY, action=connections.count)

    @hf.task
    def child(number: int) -> int:
        return number

    @hf.task
    def parent(ctx: Context, number: int) -> list[int]:
        ctx.effect("meet", met.wait, PATIENCE)
        ctx.guard()
        ctx.sleep(0.001)
        ctx.spawn(child, number)
        found: list[int] = ctx.map(child, [number])
        ctx.effect("meet again", met.wait, PATIENCE)
        heard: int = ctx.wait_for("go")
        return [*found, heard]

    with hf.worker(concurrency=MANY):
        handles = [parent.enqueue(number) for number in range(MANY)]
        for number, handle in enumerate(handles):
            hf.signal(handle.id, "go", number)
        assert [handle.result(PATIENCE) for handle in handles] == [[n, n] for n in range(MANY)]
    assert 0 < connections.most <= Settings.connections


def test_effects_of_many_functions_are_recorded_in_common_commits(hf: Holdfast) -> None:
    begun, done = threading.Semaphore(0), threading.Semaphore(0)
    go_on, write = threading.Event(), threading.Event()

    @hf.task
    def both(ctx: Context) -> None:
        begun.release()
        assert go_on.wait(PATIENCE)
        ctx.effect("note", done.release)

    def hold_writer() -> None:
        if go_on.is_set():
            assert write.wait(PATIENCE)

    with hf.worker(concurrency=MANY):
        handles = [both.enqueue() for _ in range(MANY)]
        assert all(begun.acquire(timeout=PATIENCE) for _ in range(MANY))
        leave = engine_of(hf).on_commit(hold_writer)
        before = sum(engine_of(hf).commits.sizes.values())
        go_on.set()
        # The first record meets a writer that stays in its commit, and the others queue behind it.
        assert all(done.acquire(timeout=PATIENCE) for _ in range(MANY))
        write.set()
        for handle in handles:
            handle.result(PATIENCE)
        leave()
    assert sum(engine_of(hf).commits.sizes.values()) - before < MANY
