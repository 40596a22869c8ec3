"""Faults on demand: workers that die, and workers that come back too late."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast import Context, InvalidInput
from holdfast.testing import Harness
from tests.contract.testing import shop_program as shop


def outcomes(harness: Harness) -> list[tuple[int, str]]:
    return [(each.attempt, each.outcome) for each in harness.attempts if each.step == "charge"]


@pytest.mark.parametrize(
    ("place", "charged"),
    [
        ({}, 1),
        ({"at_beginning": True}, 1),
        ({"before_effect": "charge"}, 1),
        ({"before_effect": 2}, 1),
        ({"before_remembering": "charge"}, 2),
        ({"before_remembering": 2}, 2),
        ({"after_effect": "charge"}, 1),
        ({"after_effect": 1}, 1),
    ],
    ids=str,
)
def test_a_step_survives_the_death_of_its_worker(
    harness: Harness, place: dict[str, object], charged: int
) -> None:
    harness.crash(shop.charge, **place)  # type: ignore[arg-type]  # each is one of the places
    assert shop.checkout.start(order_id=7).result() == "order 7 shipped, paid 7"
    assert shop.charged == ["order 7"] * charged
    assert outcomes(harness) == [(1, "died"), (2, "completed")]
    assert [task.lost for task in harness.tasks_of(shop.charge)] == [1]
    assert shop.hf.doctor().ok


def test_a_worker_dies_on_both_databases_as_often_as_the_test_says(store_url: str) -> None:
    with Harness(url=store_url) as harness:
        harness.crash(shop.charge, after_effect="charge")
        harness.crash(shop.charge, attempt=2)
        assert shop.checkout.start(order_id=7).result() == "order 7 shipped, paid 7"
        assert outcomes(harness) == [(1, "died"), (2, "died"), (3, "completed")]
        harness.assert_effects(shop.charge, "note", "charge")


def test_a_dead_worker_does_nothing_more_even_where_its_step_catches_the_death(
    harness: Harness,
) -> None:
    did: list[str] = []

    @harness.hf.task
    def stubborn(ctx: Context) -> int:
        try:
            ctx.effect("first", did.append, "first")
        except BaseException:  # noqa: BLE001 - as careless code does
            ctx.effect("second", did.append, "second")
        return ctx.attempt

    harness.crash(stubborn, after_effect="first")
    assert stubborn.enqueue().result() == 2
    assert did == ["first"]


def test_a_named_lease_is_not_given_back_by_a_dead_worker(harness: Harness) -> None:
    held: list[bool] = []

    @harness.hf.task
    def print_page(ctx: Context) -> None:
        held.append(ctx.lease("printer", "1h") is not None)
        ctx.effect("print", lambda: None)

    harness.crash(print_page, after_effect="print")
    print_page.enqueue().result()
    assert held == [True, False]


@pytest.mark.parametrize("point", ["before_effect", "before_remembering", "after_effect"])
def test_a_coroutine_dies_at_its_effects_too(harness: Harness, point: str) -> None:
    harness.crash(shop.welcome_softly, **{point: "open account"})  # type: ignore[arg-type]  # as above
    job = shop.welcome_softly.enqueue("ada")
    assert harness.run_to_end(job) == "softly account of ada"
    assert len(shop.charged) == 1 + (point == "before_remembering")


def test_a_late_worker_is_refused_and_the_result_of_the_other_stands(store_url: str) -> None:
    with Harness(url=store_url) as harness:
        harness.lose_lease(shop.charge)
        assert shop.checkout.start(order_id=7).result() == "order 7 shipped, paid 7"
        assert outcomes(harness) == [(2, "completed"), (1, "refused")]
        assert shop.charged == ["order 7"]
        assert shop.hf.doctor().ok


def test_a_late_worker_does_no_effect_that_another_has_done(harness: Harness) -> None:
    harness.lose_lease(shop.charge, after_effect="note")
    assert shop.checkout.start(order_id=7).result() == "order 7 shipped, paid 7"
    assert shop.charged == ["order 7"]
    assert outcomes(harness) == [(2, "completed"), (1, "ended")]


def test_a_coroutine_comes_back_too_late(harness: Harness) -> None:
    harness.lose_lease(shop.welcome_softly, after_effect="open account")
    job = shop.welcome_softly.enqueue("ada")
    assert harness.run_to_end(job) == "softly account of ada"
    assert shop.charged == ["ada"]
    assert [(each.attempt, each.outcome) for each in harness.attempts] == [
        (2, "given back"),
        (1, "ended"),
        (3, "completed"),
    ]


def test_a_fault_that_never_happens_fails_the_test() -> None:
    harness = Harness()
    with pytest.raises(AssertionError, match="attempt 1 of charge dies before an effect 'chrage'"):
        check_out_with(harness, lambda: harness.crash(shop.charge, before_effect="chrage"))
    with pytest.raises(AssertionError, match="attempt 4 of charge loses its lease"):
        check_out_with(harness, lambda: harness.lose_lease(shop.charge, attempt=4))


def check_out_with(harness: Harness, wish: Callable[[], None]) -> None:
    with harness:
        wish()
        shop.checkout.start(order_id=7).result()


def test_a_place_that_is_none_is_refused(harness: Harness) -> None:
    with pytest.raises(InvalidInput, match="did you mean before_effect"):
        harness.crash(shop.charge, befor_effect=1)  # type: ignore[call-arg]  # as somebody types
    with pytest.raises(InvalidInput, match="in one place"):
        harness.crash(shop.charge, before_effect=1, after_effect=1)
    with pytest.raises(InvalidInput, match="number from 1"):
        harness.crash(shop.charge, before_effect=0)
    with pytest.raises(InvalidInput, match="is no step"):
        harness.crash(7)  # type: ignore[arg-type]  # as somebody types
