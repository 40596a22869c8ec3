"""Workers elsewhere as a server speaks for them: who lives, and what they are told."""

from __future__ import annotations

from dataclasses import replace

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.service.protocol.protocol import ClaimTerms
from holdfast.service.protocol.remote_presence import RemotePresence

ANNA = ClaimTerms(worker="anna", agents=["writer"], process="first")
AGAIN = ClaimTerms(worker="anna", agents=["writer"], process="second")


def names(engine: Engine) -> list[str]:
    # Written behind all that was asked before.
    engine.workers.forget("anna", 0)
    return [each.name for each in engine.workers.list()]


def test_a_worker_that_keeps_leases_and_asks_for_nothing_lives_and_hears(
    engine: Engine, clock: ManualClock
) -> None:
    visitors = RemotePresence(engine)
    visitors.note_claim(ANNA, 1)
    for _ in range(5):
        assert names(engine) == ["anna"]
        clock.advance(engine.settings.renewal)
        assert visitors.note_renewal("anna") is None
    assert names(engine) == ["anna"]
    assert engine.workers.drain("anna").ok
    clock.advance(engine.settings.renewal)
    visitors.note_renewal("anna")
    assert names(engine) == ["anna"]
    assert visitors.note_renewal("anna") == visitors.note_claim(ANNA, 1) == "drain"
    assert visitors.note_renewal("a stranger") is None


def drained(engine: Engine, clock: ManualClock, offer: ClaimTerms = ANNA) -> RemotePresence:
    visitors = RemotePresence(engine)
    visitors.note_claim(offer, 1)
    assert names(engine) == ["anna"]
    assert engine.workers.drain("anna").ok
    clock.advance(engine.settings.renewal)
    visitors.note_claim(offer, 1)
    assert names(engine) == ["anna"]
    assert visitors.note_claim(offer, 1) == "drain"
    return visitors


def test_a_worker_without_a_process_id_is_told_to_drain_for_a_whole_lease(
    engine: Engine, clock: ManualClock
) -> None:
    plain = ClaimTerms(worker="anna", agents=["writer"])
    visitors = drained(engine, clock, plain)
    for _ in range(2):
        assert visitors.note_claim(plain, 1) == "drain"
        assert names(engine) == ["anna"]
        clock.advance(engine.settings.renewal)
    clock.advance(engine.settings.renewal)
    assert visitors.note_claim(plain, 1) is None
    assert names(engine) == ["anna"]
    assert [each.told for each in engine.workers.list()] == [None]


def test_a_drained_worker_comes_back_under_its_name_as_another_process(
    engine: Engine, clock: ManualClock
) -> None:
    visitors = drained(engine, clock)
    for _ in range(3):
        assert visitors.note_claim(AGAIN, 1) is None
        assert names(engine) == ["anna"]
        clock.advance(engine.settings.renewal)
    (anna,) = engine.workers.list()
    assert (anna.told, anna.process) == (None, "second")


def test_a_worker_silent_for_a_lease_counts_as_a_new_worker(
    engine: Engine, clock: ManualClock
) -> None:
    visitors = drained(engine, clock)
    clock.advance(engine.settings.lease)
    assert names(engine) == []
    assert visitors.note_claim(ANNA, 1) is None
    assert names(engine) == ["anna"]
    assert [each.told for each in engine.workers.list()] == [None]


def test_a_process_does_not_take_the_name_of_a_worker_that_lives(
    engine: Engine, clock: ManualClock
) -> None:
    visitors = RemotePresence(engine)
    visitors.note_claim(ANNA, 1)
    assert names(engine) == ["anna"]
    clock.advance(engine.settings.lease - 1)
    visitors.note_claim(AGAIN, 1)
    clock.advance(1)
    assert names(engine) == []
    visitors.note_claim(AGAIN, 1)
    assert names(engine) == ["anna"]
    assert [each.process for each in engine.workers.list()] == ["second"]


def test_a_worker_with_the_name_of_a_dead_worker_does_not_keep_the_dead_one_alive(
    engine: Engine, clock: ManualClock
) -> None:
    visitors = RemotePresence(engine)
    visitors.note_claim(ANNA, 1)
    for _ in range(3):
        assert names(engine) == ["anna"]
        visitors.note_claim(AGAIN, 2)
        visitors.note_renewal("anna", "second")
        clock.advance(engine.settings.renewal)
    assert names(engine) == []
    visitors.note_claim(AGAIN, 2)
    assert names(engine) == ["anna"]
    assert [each.concurrency for each in engine.workers.list()] == [2]


def test_a_worker_that_leaves_is_gone_at_once_and_its_name_is_free(
    engine: Engine, clock: ManualClock
) -> None:
    visitors = RemotePresence(engine)
    visitors.note_claim(ANNA, 1)
    assert names(engine) == ["anna"]
    visitors.forget_worker("anna", "first")
    assert names(engine) == []
    # What it had still on its way when it left does not bring it back.
    for _ in range(2):
        clock.advance(engine.settings.renewal)
        assert visitors.note_renewal("anna") is None
        assert names(engine) == []
    visitors.note_claim(AGAIN, 1)
    assert names(engine) == ["anna"]
    assert visitors.forget_worker("anna", "second")
    assert not visitors.forget_worker("anna", "second")
    assert names(engine) == []


def test_a_worker_that_leaves_takes_no_other_worker_along(
    engine: Engine, clock: ManualClock
) -> None:
    visitors = RemotePresence(engine)
    visitors.note_claim(AGAIN, 1)
    assert names(engine) == ["anna"]
    for name, process in (("anna", "first"), ("anna", None), ("bert", "second")):
        assert not visitors.forget_worker(name, process)
        # It is spoken for as before: longer than it would be listed without that.
        for _ in range(3):
            clock.advance(engine.settings.renewal)
            visitors.note_renewal("anna")
            assert names(engine) == ["anna"]


def test_a_worker_that_leaves_by_another_server_is_gone_too(
    engines: tuple[Engine, Engine],
) -> None:
    first, second = engines
    RemotePresence(first).note_claim(ANNA, 1)
    assert names(first) == ["anna"]
    RemotePresence(second).forget_worker("anna", "first")
    assert names(first) == []


def test_a_leave_under_another_token_removes_no_worker_of_that_name_and_process(
    engine: Engine, clock: ManualClock
) -> None:
    visitors = RemotePresence(engine)
    visitors.note_claim(replace(ANNA, token="ours"), 1)
    assert names(engine) == ["anna"]
    assert not visitors.forget_worker("anna", "first", token="theirs")
    assert not visitors.forget_worker("anna", "first")
    assert engine.workers.drain("anna").ok
    for _ in range(3):
        visitors.note_claim(replace(ANNA, token="theirs"), 2)
        assert visitors.note_renewal("anna", "first", token="theirs") is None
        assert visitors.note_renewal("anna", "first") is None
        clock.advance(engine.settings.renewal)
    # Nobody spoke for it who may, and so its name is free for others.
    assert names(engine) == []
    visitors.note_claim(replace(ANNA, token="theirs"), 2)
    assert names(engine) == ["anna"]
    assert not visitors.forget_worker("anna", "first", token="ours")
    assert visitors.forget_worker("anna", "first", token="theirs")
