"""What a command finds in its environment."""

from __future__ import annotations

import pytest

from holdfast.store.postgresql.connection import ServerAddress
from holdfast.worker.steps.command_environment import remove_password


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:correct-horse@db:5433/shop",
        "postgresql://me:correct-horse@db:5433/shop?sslmode=prefer",
        "postgresql://me@db:5433/shop?p%61ssword=correct-horse",
        "postgresql://me:correct?horse@db:5433/shop",
        "postgresql://db:5433/shop?user=me&password=correct-horse&sslpassword=correct-horse",
    ],
)
def test_the_store_is_named_to_a_command_without_its_password(url: str) -> None:
    named = remove_password(url)
    assert "horse" not in named
    assert (ServerAddress(named).names, ServerAddress(named).password) == (
        ServerAddress(url).names,
        None,
    )


@pytest.mark.parametrize("url", ["sqlite:////tmp/x.db", "postgresql://me@db/shop"])
def test_a_store_without_a_password_is_named_as_it_is(url: str) -> None:
    assert remove_password(url) == url
