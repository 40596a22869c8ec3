"""Settings refuse what cannot work."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidInput
from holdfast.settings import Settings


def test_the_defaults_are_those_of_the_documentation() -> None:
    settings = Settings(url="sqlite:///a.db")
    assert (settings.lease, settings.renewal) == (30.0, 10.0)
    assert (settings.max_attempts, settings.max_lost) == (3, 5)
    assert (settings.backoff, settings.backoff_max) == (5.0, 300.0)
    assert settings.max_payload == settings.max_output == 1024 * 1024


def test_nothing_is_zero_or_less() -> None:
    with pytest.raises(InvalidInput, match="group_size"):
        Settings(url="sqlite:///a.db", group_size=0)


def test_a_lease_is_renewed_before_it_ends() -> None:
    with pytest.raises(InvalidInput, match="renewal"):
        Settings(url="sqlite:///a.db", lease=5, renewal=5)


def test_the_url_which_may_hold_a_password_is_not_printed() -> None:
    assert "secret" not in repr(Settings(url="postgresql://me:secret@host/db"))
