"""Runs that live on messages alone, while consumers are killed and servers go away."""

from __future__ import annotations

import pytest

from benchmarks.bus_roles import Told
from benchmarks.bus_speed import Sizes, Speed
from benchmarks.bus_story import Story
from holdfast.engine.engine import Engine
from tests import servers


def test_every_stage_has_its_effect_once_whoever_is_killed_and_whatever_is_lost() -> None:
    with (
        servers.postgres() as server,
        servers.database(server) as store,
        servers.redis_server() as redis_url,
    ):
        Engine(store).close()
        told = Told(
            runs=6,
            store=store,
            redis_url=redis_url,
            faults=("fast", "redis", "immediate", "flush"),
            mortality=8,
            patience=1.0,
        )
        assert Story(told).tell() == 0


def test_the_speed_of_a_bus_is_measured(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with servers.redis_server() as redis_url:
        Speed(sqlite_url, redis_url, Sizes(messages=200, seconds=0.1)).measure()
    said = capsys.readouterr().out
    assert said.count("committed effect") == 2
    assert "p99" in said
