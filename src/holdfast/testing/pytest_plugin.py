"""Pytest plugin: the fixture `harness`, a store for each test that asks for it.

What modules schedule while pytest imports them is declared, and not written into their real store.
Pytest loads this module in every project that has Holdfast installed, so that it imports next to
nothing of Holdfast before a test asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from holdfast.api.program_engine import importing_tests

if TYPE_CHECKING:
    from holdfast.testing.harness import Harness


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """From the first conftest on until the end of the session, modules are imported for tests."""
    imports = ExitStack()
    imports.enter_context(importing_tests(importing=True))
    early_config.add_cleanup(imports.close)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """A test runs, and its fixtures: what these schedule is written."""
    with importing_tests(importing=False):
        yield


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
