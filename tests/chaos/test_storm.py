"""A short storm, as part of every test run; `make chaos` has a longer one."""

from __future__ import annotations

from tests.chaos.storm import rage


def test_pipelines_end_and_add_up_while_workers_are_killed(store_url: str) -> None:
    told: list[str] = []
    rage(store_url, rounds=1, seed=7, say=told.append)
    assert "20 runs and 100 tasks ended, 4 workers killed" in told[-1]
