"""Browsers: let in by a link once, with what a token may do, for as long as that is good."""

from __future__ import annotations

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.token import digest_secret
from tests.contract.raw_store import dump

TOKEN = "hf_" + "a" * 40
CODE = "c" * 43
SECRET = "s" * 43
OTHER = "o" * 43
BOBS = "hf_" + "b" * 40


def enter(engine: Engine, code: str = CODE, secret: str = SECRET) -> None:
    engine.access.grant("ada", TOKEN, role="operator")
    assert engine.browsers.link("ada", code) is not None
    assert engine.browsers.enter(code, secret) is not None


def test_a_link_lets_one_browser_in_once(engine: Engine, store_url: str) -> None:
    enter(engine)
    assert engine.browsers.enter(CODE, OTHER) is None
    assert engine.browsers.enter(SECRET, OTHER) is None
    found = engine.browsers.find(SECRET)
    assert found is not None
    assert found.access == engine.access.get("ada")
    assert [engine.browsers.find(each) for each in (OTHER, CODE, "")] == [None] * 3
    kept = str(dump(store_url))
    assert CODE not in kept
    assert SECRET not in kept


def test_a_link_that_nobody_follows_is_good_for_nothing_after_ten_minutes(
    engine: Engine, clock: ManualClock
) -> None:
    engine.access.grant("ada", TOKEN, role="viewer")
    assert engine.browsers.link("ada", CODE) == clock.now() + 600_000_000
    assert engine.browsers.enter(OTHER, SECRET) is None
    assert engine.browsers.find(CODE) is None
    assert not engine.browsers.leave(CODE)
    clock.advance(600)
    assert engine.browsers.enter(CODE, SECRET) is None


def test_a_session_ends_by_itself_and_is_forgotten(
    engine: Engine, clock: ManualClock, store_url: str
) -> None:
    enter(engine)
    clock.advance(12 * 3_600 - 1)
    assert engine.browsers.find(SECRET) is not None
    clock.advance(1)
    assert engine.browsers.find(SECRET) is None
    assert engine.browsers.link("ada", OTHER) is not None
    assert len(dump(store_url)["holdfast_browser"]) == 1
    assert engine.browsers.enter(OTHER, SECRET) is not None


def test_leaving_ends_the_session_of_that_browser_alone(engine: Engine) -> None:
    enter(engine)
    enter(engine, "d" * 43, OTHER)
    assert engine.browsers.leave(SECRET)
    assert not engine.browsers.leave(SECRET)
    assert engine.browsers.find(SECRET) is None
    assert engine.browsers.find(OTHER) is not None


def test_a_session_is_worth_no_more_than_its_token(engine: Engine, clock: ManualClock) -> None:
    enter(engine)
    assert engine.browsers.link("nobody", OTHER) is None
    engine.access.revoke("ada")
    assert engine.browsers.find(SECRET) is None
    assert engine.browsers.link("ada", OTHER) is None
    clock.advance(1)
    engine.access.grant("ada", "hf_" + "b" * 40, role="admin", expires=60)
    assert engine.browsers.find(SECRET) is None
    assert engine.browsers.link("ada", OTHER) is not None
    assert engine.browsers.enter(OTHER, "t" * 43) is not None
    clock.advance(60)
    assert engine.browsers.find("t" * 43) is None
    assert engine.browsers.link("ada", "u" * 43) is None


def test_secrets_stop_being_good_on_revocation_on_leaving_and_on_expiry(
    engine: Engine, clock: ManualClock
) -> None:
    enter(engine)
    engine.access.grant("bob", BOBS, role="viewer", expires=60)
    assert engine.browsers.link("ada", OTHER) is not None
    ada, browser, bob = map(digest_secret, (TOKEN, SECRET, BOBS))
    # A link that nobody has followed is no way to ask for anything.
    asked = [ada, browser, bob, digest_secret(OTHER), digest_secret("unknown")]
    assert engine.access.good_among(asked) == {ada, browser, bob}
    assert engine.access.good_among([bob]) == {bob}
    assert engine.access.good_among([]) == frozenset()
    clock.advance(60)
    assert engine.access.good_among(asked) == {ada, browser}
    assert engine.browsers.enter(OTHER, "x" * 43) is not None
    other = digest_secret("x" * 43)
    assert engine.browsers.leave(SECRET)
    assert engine.access.good_among([*asked, other]) == {ada, other}
    clock.advance(12 * 3_600)
    assert engine.access.good_among([*asked, other]) == {ada}
    assert engine.browsers.link("ada", CODE) is not None
    assert engine.browsers.enter(CODE, SECRET) is not None
    engine.access.revoke("ada")
    assert engine.access.good_among(asked) == frozenset()
