"""Sizes as people write and read them."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidInput
from holdfast.model.units import describe_size, parse_size


@pytest.mark.parametrize(
    ("written", "size"),
    [("2GB", 2_000_000_000), ("1.5 mb", 1_500_000), ("0", 0), (7, 7), (" 3KB ", 3_000)],
)
def test_a_size_is_read_with_and_without_a_unit(written: str | int, size: int) -> None:
    assert parse_size("disk", written) == size


@pytest.mark.parametrize("wrong", ["", "big", "-1", "2GiB", "9e9", -2, True, 1.5, None, "1" * 400])
def test_an_invalid_size_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidInput, match=r"^disk: .* is not a size; write '2GB'"):
        parse_size("disk", wrong)


def test_a_size_is_told_in_its_largest_unit() -> None:
    assert [describe_size(each) for each in (5, 1_500, 2_000_000_000)] == ["5 B", "1.5 KB", "2 GB"]
