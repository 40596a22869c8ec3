"""What is shown of the store that a command was told to use."""

from __future__ import annotations

import pytest

from holdfast.cli.app.session import chosen_store, format_url, with_store


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///jobs.db", "sqlite:///jobs.db"),
        ("postgresql://me@db/x", "postgresql://me@db/x"),
        ("postgresql://me:horse@db/x", "postgresql://me:…@db/x"),
        ("postgresql://me:@/x?host=/tmp", "postgresql://me:@/x?host=/tmp"),
        ("postgresql://me:a?password=b@db/x?a=b", "postgresql://me:…@db/x?a=b"),
        ("postgresql://me@db/x?password=horse", "postgresql://me@db/x?password=…"),
        (
            "postgresql://db/x?user=me&p%61ssword=horse&sslpassword=a=b&sslmode=require",
            "postgresql://db/x?user=me&p%61ssword=…&sslpassword=…&sslmode=require",
        ),
    ],
)
def test_a_url_is_shown_without_its_passwords(url: str, shown: str) -> None:
    assert format_url(url) == shown


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("jobs.db", "jobs.db"),
        ("postgresql://me@db/x", "postgresql://me@db/x"),
        ("postgresql:///x?host=/tmp&port=1", "'postgresql:///x?host=/tmp&port=1'"),
        ("postgresql://me:horse@db/x", '"$HOLDFAST_DB"'),
    ],
)
def test_a_command_to_copy_names_a_store_that_a_shell_can_reach(url: str, named: str) -> None:
    before = chosen_store.set(url)
    try:
        assert with_store("holdfast runs") == f"holdfast runs --db {named}"
    finally:
        chosen_store.reset(before)
