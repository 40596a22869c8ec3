"""Who failed too often is judged by what is good now; a store that fails is nobody's failure."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.errors import StoreBusy
from holdfast.model.token import AccessToken
from holdfast.server.auth.auth_throttle import AuthThrottle
from holdfast.server.auth.known_tokens import KnownTokens
from holdfast.server.auth.rate_limits import Rate
from holdfast.server.exception_handlers import Problem
from holdfast.service.admin.tokens import Tokens
from holdfast.service.project.project import StoreLocation
from holdfast.service.service import Service
from tests.engines import opened

ADDRESS = "10.0.0.9"


async def _fail() -> AccessToken | None:
    raise StoreBusy("somebody else writes")


class Shown:
    """What somebody shows who may fail once, and then not for a long time."""

    def __init__(self, engine: Engine) -> None:
        place = StoreLocation(url=engine.settings.url, home=Path(), may_be_created=True)
        self._known = KnownTokens(Service(place, engine))
        self.tries = AuthThrottle(self._known, Rate(per_second=0.001, burst=1))

    async def show(self, secret: str) -> bool | None:
        """Whether it is good; None where it is looked at no more."""
        look = partial(self._known.look, secret)
        try:
            return await self.tries.look(ADDRESS, secret, look) is not None
        except Problem:
            return None


def test_a_look_that_fails_is_counted_against_nobody(engine: Engine) -> None:
    async def story() -> None:
        shown = Shown(engine)
        for _ in range(3):
            with pytest.raises(StoreBusy):
                await shown.tries.look(ADDRESS, "whatever", _fail)
        assert [await shown.show("wrong") for _ in range(2)] == [False, None]

    asyncio.run(story())


def test_the_good_tokens_are_read_again_after_a_failed_read(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = Tokens(engine).create("good", role="viewer")["token"]

    def fail() -> frozenset[str]:
        raise StoreBusy("somebody else writes")

    async def story() -> None:
        shown = Shown(engine)
        assert await shown.show("wrong") is False
        with monkeypatch.context() as patch:
            patch.setattr(engine.access, "good_digests", fail)
            with pytest.raises(StoreBusy):
                await shown.show(good)
        assert await shown.show(good)

    asyncio.run(story())


def test_a_token_that_another_process_has_just_made_is_let_in(
    engine: Engine, store_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, read = list[float](), engine.access.good_digests

    def count() -> frozenset[str]:
        reads.append(clock.monotonic())
        return read()

    monkeypatch.setattr(engine.access, "good_digests", count)

    async def story() -> None:
        shown = Shown(engine)
        assert [await shown.show("wrong") for _ in range(3)] == [False, None, None]
        assert len(reads) == 1
        with opened(store_url) as elsewhere:
            made = Tokens(elsewhere).create("new", role="viewer")["token"]
        clock.advance(0.01)
        assert await shown.show(made)
        clock.advance(0.01)
        flood = [shown.show(f"wrong-{number}") for number in range(20)]
        assert set(await asyncio.gather(*flood)) == {None}
        assert len(reads) == 3

    asyncio.run(story())
