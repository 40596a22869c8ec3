"""Pytest plugin: the fixture `harness`, a store for each test that asks for it.

Pytest loads this module in every project that has Holdfast installed, so that it imports nothing
of Holdfast before a test asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from holdfast.testing.harness import Harness


@pytest.fixture
def harness_url() -> str | None:
    """The URL of the store for one test: None for a new SQLite file; override it for another."""
    return None


@pytest.fixture
def harness(harness_url: str | None) -> Iterator[Harness]:
    """A store of this test's own, which every `Holdfast` of the program uses while it runs."""
    from holdfast.testing.harness import Harness  # noqa: PLC0415 - only tests that ask pay for it

    with Harness(url=harness_url) as made:
        yield made
