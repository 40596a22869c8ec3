"""Times, costs and values as a person reads them."""

from __future__ import annotations

import pytest

from holdfast.cli.render.formats import (
    SECOND,
    describe_error_line,
    format_count,
    format_money,
    format_span,
    one_line,
)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0s"),
        (-5, "0s"),
        (0.3, "0.3s"),
        (14.4, "14s"),
        (62, "1m 02s"),
        (3_600, "1h 00m"),
        (7_980, "2h 13m"),
        (273_600, "3d 4h"),
    ],
)
def test_a_span_has_two_units_at_most(seconds: float, said: str) -> None:
    assert format_span(seconds * SECOND) == said


def test_values_are_told_in_one_line() -> None:
    assert format_span(None) == ""
    assert (format_money(None), format_money(0.0), format_money(1.125)) == ("", "$0.00", "$1.12")
    assert one_line({"a": [1, "ü"]}) == '{"a": [1, "ü"]}'
    assert one_line("x" * 300, 10) == "xxxxxxxxx…"
    assert describe_error_line({"type": "ValueError", "message": "bad\nworse"}) == "ValueError: bad"
    assert (format_count(1, "task"), format_count(2, "task")) == ("1 task", "2 tasks")
