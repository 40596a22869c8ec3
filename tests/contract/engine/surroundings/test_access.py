"""Tokens of the server: good for a role and a while, revoked for good, kept as digests alone."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput, NotFound
from tests.contract.raw_store import dump

SECRET = "hf_" + "a" * 40
OTHER = "hf_" + "b" * 40


def test_a_token_is_good_for_its_role_and_kept_as_a_digest(engine: Engine, store_url: str) -> None:
    granted = engine.access.grant("ci", SECRET, role="worker", agents=["builder"])
    assert granted == engine.access.find(SECRET)
    assert granted is not None
    assert (granted.role, granted.agents) == ("worker", ("builder",))
    assert engine.access.find(OTHER) is None
    assert SECRET not in str(dump(store_url))


def test_a_name_that_has_a_good_token_gets_no_other(engine: Engine, clock: ManualClock) -> None:
    engine.access.grant("ci", SECRET, role="viewer", expires="1h")
    assert engine.access.grant("ci", OTHER, role="admin") is None
    assert engine.access.find(OTHER) is None
    clock.advance(3_600)
    assert engine.access.find(SECRET) is None
    assert engine.access.grant("ci", OTHER, role="admin") == engine.access.find(OTHER)


def test_a_revoked_token_is_good_for_nothing_and_stays_so(
    engine: Engine, clock: ManualClock
) -> None:
    engine.access.grant("ci", SECRET, role="viewer")
    first = engine.access.revoke("ci")
    clock.advance(1)
    assert engine.access.revoke("ci") == first
    assert engine.access.find(SECRET) is None
    assert [each.name for each in engine.access.list()] == ["ci"]
    assert engine.access.grant("ci", OTHER, role="viewer") is not None
    with pytest.raises(NotFound):
        engine.access.revoke("nobody")


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "worker:ci"},
        {"secret": "short"},
        {"role": "god"},
        {"agents": ["builder"]},
        {"expires": "soon"},
        {"expires": 0},
    ],
)
def test_a_token_that_cannot_be_granted_is_refused_by_its_field(
    engine: Engine, wrong: dict[str, Any]
) -> None:
    given: dict[str, Any] = {"name": "ci", "secret": SECRET, "role": "viewer", **wrong}
    with pytest.raises(InvalidInput) as refused:
        engine.access.grant(**given)
    assert refused.value.field == next(iter(wrong))
    assert engine.access.list() == []
