"""A stage for races, on each database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.race.explorer import Stage, staged


@pytest.fixture
def stage(store_url: str) -> Iterator[Stage]:
    with staged(store_url) as stage:
        yield stage
