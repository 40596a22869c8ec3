"""Settings refuse what cannot work."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from holdfast.api.options import read_settings
from holdfast.errors import InvalidInput
from holdfast.settings import Settings


def test_the_defaults_are_those_of_the_documentation() -> None:
    settings = Settings(url="sqlite:///a.db")
    assert (settings.lease, settings.renewal) == (30.0, 10.0)
    assert (settings.max_attempts, settings.max_lost) == (3, 5)
    assert (settings.backoff, settings.backoff_max) == (5.0, 300.0)
    assert settings.max_payload == settings.max_output == 1024 * 1024


def test_a_short_lease_is_renewed_in_time_though_nobody_says_how_often() -> None:
    settings = Settings(url="sqlite:///a.db", **read_settings({"lease": "5s"}))
    assert (settings.lease, settings.renewal) == (5.0, 1.0)
    assert read_settings({"lease": "1h"}) == {"lease": 3_600.0, "renewal": 10.0}
    assert read_settings({"lease": "5s", "renewal": "2s"}) == {"lease": 5.0, "renewal": 2.0}
    assert read_settings({"poll": 1}) == {"poll": 1.0}


def test_a_group_size_of_zero_is_refused() -> None:
    with pytest.raises(InvalidInput, match="group_size"):
        Settings(url="sqlite:///a.db", group_size=0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("lease", value) for value in (nan, inf, -inf, True, 1e12, 1e-9, "30s", None, [30])],
        *[("group_size", value) for value in (1.5, 1.0, nan, inf, True, 2**31, "8", None)],
        *[
            ("watch", inf),
            ("connections", 2.5),
            ("connections", 3),
            ("max_payload", None),
            ("renewal", 0.01),
        ],
    ],
)
def test_a_setting_that_is_no_fitting_number_is_refused_by_its_name(name: str, value: Any) -> None:  # noqa: ANN401 - whatever is wrong
    with pytest.raises(InvalidInput) as refused:
        Settings(url="sqlite:///a.db", **{name: value})
    assert refused.value.field == name


def test_a_lease_is_renewed_before_it_ends() -> None:
    with pytest.raises(InvalidInput, match="renewal"):
        Settings(url="sqlite:///a.db", lease=5, renewal=5)


def test_the_url_which_may_hold_a_password_is_not_printed() -> None:
    assert "secret" not in repr(Settings(url="postgresql://me:secret@host/db"))
