"""The fixtures of the plugin, also where Holdfast was installed before it had one."""

from __future__ import annotations

import pytest

from holdfast.testing.pytest_plugin import harness, harness_url
from tests.contract.testing import shop_program

__all__ = ["harness", "harness_url"]


@pytest.fixture(autouse=True)
def _nothing_has_happened() -> None:
    shop_program.charged.clear()
    shop_program.threads.clear()
