"""What no store can hold, in the place of a name."""

from __future__ import annotations

import re

import pytest

from holdfast.errors import InvalidInput
from holdfast.server.route_table import GuardedRoute
from tests.contract.server.local_server import Served
from tests.engines import opened

_PLACE = re.compile(r"\{[^}]*\}")


def test_no_name_in_a_path_breaks_anything(server: Served) -> None:
    server.add()
    routes = [each for each in server.application.app.routes if isinstance(each, GuardedRoute)]
    asked = [
        (method, each.path) for each in routes for method in each.methods or () if "{" in each.path
    ]
    assert len(asked) > 20
    for method, path in asked:
        for odd in ("%00", "%ED%A0%80", "%C3%28"):
            place = _PLACE.sub(odd, path)
            told = server("admin").request(method, server.url + place, json={})
            assert told.status_code in {404, 422}, (method, path, told.text)


def test_a_name_that_postgresql_cannot_hold_is_the_fault_of_its_sender(
    postgres_store_url: str,
) -> None:
    with opened(postgres_store_url) as engine, pytest.raises(InvalidInput, match="NUL"):
        engine.database.view(lambda tx: tx.read("access_by_name", name="\x00"))
