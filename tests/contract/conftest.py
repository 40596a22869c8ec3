"""What the contract suites share beside the engine itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from tests.contract.bad_values import Refuse
from tests.contract.raw import count_rows, dump
from tests.contract.stages import create, start


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
