"""Browsers that come at once, to whichever server: a link lets one of them in."""

from __future__ import annotations

from holdfast.engine.engine import Engine
from holdfast.engine.surroundings.browser_sessions import EnterByLink, LeaveBrowser
from holdfast.model.token import digest_secret
from tests.race.explorer import Plans, Stage
from tests.race.worlds import World

TTL = 60_000_000
TOKEN = "hf_" + "a" * 40


def let_in(engine: Engine) -> None:
    """A link of which nothing is known yet, whatever was done in this store before."""
    engine.access.grant("ada", TOKEN, role="viewer")
    for secret in ("one", "two"):
        engine.browsers.leave(secret)
    assert engine.browsers.link("ada", "link") is not None


def test_one_of_two_browsers_that_follow_a_link_at_once_comes_in(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        let_in(world.engine)
        code = digest_secret("link")
        return (
            [EnterByLink(digest=code, session=digest_secret("one"), ttl=TTL)],
            [EnterByLink(digest=code, session=digest_secret("two"), ttl=TTL)],
        )

    for outcome in stage.explore(scenario):
        (left,), (right,) = outcome.first, outcome.second
        assert (left is None) != (right is None)


def test_a_session_is_left_once(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        let_in(world.engine)
        assert world.engine.browsers.enter("link", "one") is not None
        leave = LeaveBrowser(digest=digest_secret("one"))
        return [leave], [leave]

    for outcome in stage.explore(scenario):
        assert (outcome.first[0] is None) != (outcome.second[0] is None)
