"""Usage is added by name, as far as somebody can have used it."""

from __future__ import annotations

from holdfast.service.queries.views import Usage, add_usage


def test_an_impossible_usage_adds_nothing() -> None:
    total: Usage = {}
    for told in (
        {"usd": 1, "tokens": 2.5},
        {"usd": 1.7e308},
        {"usd": -3},
        {"tokens": 10**400},
        [9],
    ):
        add_usage(total, told)
    add_usage(total, {"usd": 0.5, "model": "large", "cached": True})
    assert total == {"usd": 1.5, "tokens": 2.5}
