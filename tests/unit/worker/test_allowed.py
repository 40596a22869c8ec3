"""What a worker elsewhere lets a server have it call."""

from __future__ import annotations

import pytest

from holdfast.model.work import HttpCall, Work
from holdfast.worker.remote.allowed import Allowed, NotAllowed

ALLOWED = Allowed(names=frozenset({"https://api.example", "https://other.example/v1/"}))


@pytest.mark.parametrize("url", ["https://api.example/x?y=1", "https://other.example/v1/x"])
def test_an_address_below_one_that_is_allowed_may_be_called(url: str) -> None:
    ALLOWED.check(Work(http=HttpCall(url=url)))


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.evil.test/x",
        "https://api.example@evil.test/x",
        "http://api.example/x",
        "https://other.example/v2/x",
    ],
)
def test_an_address_that_only_begins_alike_may_not(url: str) -> None:
    with pytest.raises(NotAllowed):
        ALLOWED.check(Work(http=HttpCall(url=url)))
