"""A store that cannot be opened is left as it was, without a connection to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError, SchemaTooNew
from tests.contract.raw_store import raw

# On Linux and on macOS: what this process has open.
FILES = Path("/dev/fd")


def test_opening_that_fails_leaves_no_connection_behind(store_url: str) -> None:
    Engine(store_url).close()
    with raw(store_url) as execute:
        execute("INSERT INTO holdfast_migration VALUES (99, 'later', 'x', 1)")
    # Kept, as a logger or a retry loop keeps them: what they refer to stays alive.
    errors: list[HoldfastError] = []
    before = len(list(FILES.iterdir()))
    for _ in range(3):
        with pytest.raises(SchemaTooNew) as refusal:
            _ = Holdfast(store_url).tasks
        errors.append(refusal.value)
    assert len(list(FILES.iterdir())) == before
