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
def harness(request: pytest.FixtureRequest, harness_url: str | None) -> Iterator[Harness]:
    """A store of this test's own, which every `Holdfast` of the program uses while it runs."""
    from holdfast.testing.harness import Harness  # noqa: PLC0415 - only tests that ask pay for it

    failed_before = request.session.testsfailed
    made = Harness(url=harness_url)
    with made:
        yield made
        # A test that has failed need not have come to the faults that it wants.
        made.close(check=request.session.testsfailed == failed_before)
