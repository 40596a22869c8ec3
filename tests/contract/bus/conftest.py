"""The buses that a suite runs against: opened once for a file of tests, and emptied after each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast.clock import ManualClock
from tests import servers
from tests.contract.bus.worlds import World, redis_world, sql_world


@pytest.fixture(scope="module")
def module_stores(
    postgres_server: str, postgres_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """The URLs of two stores that the tests of a file share."""
    place: Path = tmp_path_factory.mktemp("bus")
    with servers.database(postgres_server, postgres_template) as url:
        yield {"sqlite": f"sqlite:///{place}/holdfast.db", "postgresql": url}


@pytest.fixture(scope="module")
def opened_worlds(module_stores: dict[str, str], redis_url: str) -> Iterator[dict[str, World]]:
    """A bus in each store, and one on Redis beside each."""
    with ExitStack() as stack:
        worlds: dict[str, World] = {}
        for name, url in module_stores.items():
            worlds[name] = stack.enter_context(sql_world(url, ManualClock()))
            worlds[f"redis beside {name}"] = stack.enter_context(
                redis_world(worlds[name].engine, redis_url)
            )
        yield worlds


@pytest.fixture(params=["sqlite", "postgresql", "redis beside sqlite"])
def world(request: pytest.FixtureRequest, opened_worlds: dict[str, World]) -> Iterator[World]:
    """Each bus once."""
    yield opened_worlds[request.param]
    opened_worlds[request.param].clean()


@pytest.fixture(params=["sqlite", "postgresql"])
def redis_store(request: pytest.FixtureRequest, opened_worlds: dict[str, World]) -> Iterator[World]:
    """Redis beside each of the stores."""
    yield opened_worlds[f"redis beside {request.param}"]
    opened_worlds[f"redis beside {request.param}"].clean()


@pytest.fixture(params=["sqlite", "postgresql"])
def sql(request: pytest.FixtureRequest, opened_worlds: dict[str, World]) -> Iterator[World]:
    """The bus in each of the stores."""
    yield opened_worlds[request.param]
    opened_worlds[request.param].clean()
