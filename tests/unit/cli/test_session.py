"""What is shown of the store that a command was told to use."""

from __future__ import annotations

import pytest

from holdfast.cli.session import shown_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///jobs.db", "sqlite:///jobs.db"),
        ("postgresql://me@db/x", "postgresql://me@db/x"),
        ("postgresql://me:horse@db/x", "postgresql://me:…@db/x"),
        ("postgresql://me:a?password=b@db/x?a=b", "postgresql://me:…@db/x?a=b"),
        ("postgresql://me@db/x?password=horse", "postgresql://me@db/x?password=…"),
        (
            "postgresql://db/x?user=me&p%61ssword=horse&sslpassword=a=b&sslmode=require",
            "postgresql://db/x?user=me&p%61ssword=…&sslpassword=…&sslmode=require",
        ),
    ],
)
def test_a_url_is_shown_without_its_passwords(url: str, shown: str) -> None:
    assert shown_url(url) == shown
