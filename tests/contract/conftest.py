"""What the contract suites share beside the engine itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.randomness import SeededRandomness
from tests import servers
from tests.contract.engine.input.bad_values import Refuse
from tests.contract.raw_store import count_rows, dump
from tests.contract.task_states import create, start
from tests.engines import opened
from tests.race.racers import RaceClock


@pytest.fixture
def engines(store_url: str, clock: ManualClock) -> Iterator[tuple[Engine, Engine]]:
    """Two engines on one store: they wait for each other for real, the day moves by `clock`."""
    with (
        opened(store_url, clock=RaceClock(clock), randomness=SeededRandomness(7)) as first,
        opened(store_url, clock=RaceClock(clock), randomness=SeededRandomness(8)) as second,
    ):
        yield first, second


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def lasting_engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """One engine on each database for a whole file of tests, each of which looks at its own."""
    if request.param == "sqlite":
        with opened(f"sqlite:///{tmp_path_factory.mktemp('lasting')}/holdfast.db") as engine:
            yield engine
        return
    server = request.getfixturevalue("postgres_server")
    template = request.getfixturevalue("postgres_template")
    with servers.database(server, template) as url, opened(url) as engine:
        yield engine


@pytest.fixture
def hf(store_url: str) -> Iterator[Holdfast]:
    """A program on each database, with the real clock; at the end the doctor finds nothing."""
    with Holdfast(store_url) as opened_store:
        yield opened_store
        diagnosis = opened_store.doctor()
        assert diagnosis.ok, str(diagnosis)


@pytest.fixture
def refuse(engine: Engine, store_url: str) -> Iterator[Refuse]:
    """Checks that a call raises InvalidInput for a field; at the end, that no row was written."""
    create(engine, "kept", key="kept")
    start(engine, key="kept")
    before = dump(store_url)

    def check(field: str, call: Callable[..., object], *given: Any, **named: Any) -> None:
        with pytest.raises(InvalidInput) as refused:
            call(*given, **named)
        assert refused.value.field.partition(".")[0].partition("[")[0] == field, refused.value
        assert str(refused.value).startswith(refused.value.field)

    yield check
    assert count_rows(store_url) == {table: len(rows) for table, rows in before.items()}
    assert dump(store_url) == before
