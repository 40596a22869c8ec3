"""A worker asks for work that others made ready, one question at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.task import NewTask
from holdfast.worker.pool.pull import Puller
from tests.contract.engine.claims.test_standing_claims import Hand
from tests.engines import healthy


@pytest.fixture
def quiet(store_url: str) -> Iterator[Engine]:
    engine = Engine(store_url)
    with healthy(engine):
        yield engine


def puller_of(engine: Engine, may: Callable[[], bool], again: Callable[[], None]) -> Puller:
    return Puller(engine, may_pull=may, pull_again=again, on_shutdown=lambda: None)


def test_a_hint_is_followed_by_whoever_brings_it_and_one_meanwhile_is_not_lost(
    quiet: Engine,
) -> None:
    hand, again = Hand(quiet, room=1), list[None]()
    puller = puller_of(quiet, lambda: True, lambda: again.append(None))
    assert puller.pull(hand.standing_claim)
    assert not puller.pull(hand.standing_claim)
    puller.hinted = True
    assert not puller.pull(hand.standing_claim)
    assert not again
    assert quiet.commits.step() == 1
    assert again
    assert puller.pull(hand.standing_claim)
    assert quiet.commits.step() == 1
    assert len(again) == 1


def test_a_worker_that_takes_no_work_asks_for_none_and_keeps_the_hint(quiet: Engine) -> None:
    hand, takes = Hand(quiet, room=1), [False, True]
    puller = puller_of(quiet, lambda: takes.pop(0), lambda: None)
    assert not puller.pull(hand.standing_claim)
    assert puller.hinted
    quiet.tasks.create.submit(NewTask(title="one"))
    assert puller.pull(hand.standing_claim)
    quiet.commits.step()
    assert hand.titles == ["one"]
