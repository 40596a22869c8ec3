"""Assertions of the harness: each passes, or says what was there instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast import InvalidInput
from holdfast.testing import Harness
from tests.contract.testing import shop_program as shop


def message_of(check: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    with pytest.raises(AssertionError) as raised:
        check(*args, **kwargs)
    return str(raised.value)


def test_calls_are_found_by_their_arguments(harness: Harness) -> None:
    told = message_of(harness.assert_enqueued, shop.send_mail, to="ada")
    assert told.endswith("no call of send_mail is in the store, nor of any other task")
    job = shop.send_mail.enqueue("ada", subject="tea")
    assert harness.assert_enqueued(shop.send_mail).id == job.id
    assert harness.assert_enqueued("send_mail", to="ada").id == job.id
    harness.assert_not_enqueued(shop.send_mail, to="bob")
    assert message_of(harness.assert_enqueued, shop.send_mail, to="bob") == (
        "send_mail(to='bob') was not enqueued; enqueued were send_mail(subject='tea', to='ada')"
    )
    assert message_of(harness.assert_not_enqueued, shop.send_mail, to="ada") == (
        f"send_mail(to='ada') was enqueued: send_mail(subject='tea', to='ada') ({job.id})"
    )
    assert message_of(harness.assert_enqueued, shop.welcome) == (
        "welcome() was not enqueued; no call of welcome is in the store, "
        "but send_mail(subject='tea', to='ada')"
    )
    with pytest.raises(InvalidInput, match="is no parameter of send_mail, which takes to, subject"):
        harness.assert_enqueued(shop.send_mail, too="ada")


def test_runs_are_found_by_their_inputs(harness: Harness) -> None:
    run = shop.checkout.start(order_id=7)
    assert harness.assert_started(shop.checkout, order_id=7).id == run.id
    assert message_of(harness.assert_started, "checkout", order_id=8) == (
        "checkout(order_id=8) was not started; started were checkout(order_id=7)"
    )
    assert message_of(harness.assert_started, "refund") == (
        "refund() was not started; runs are of checkout"
    )


def test_attempts_are_counted_and_ordered(harness: Harness) -> None:
    assert message_of(harness.assert_ran_once, shop.pack) == (
        "pack did not run once; nothing ran; say run_until_idle() first"
    )
    harness.assert_not_ran(shop.pack)
    harness.crash(shop.charge, after_effect="charge")
    shop.checkout.start(order_id=7).result()
    harness.assert_ran_once(shop.pack)
    harness.assert_ran(shop.charge, times=2)
    harness.assert_order(shop.pack, shop.charge, shop.ship)
    assert message_of(harness.assert_ran_once, shop.charge) == (
        "charge did not run once; it ran twice: charge, attempt 1, died; "
        "charge, attempt 2, completed"
    )
    assert message_of(harness.assert_ran, "refund") == (
        "refund did not run; what ran: pack, charge, ship"
    )
    assert message_of(harness.assert_not_ran, shop.pack) == "pack ran: pack, attempt 1, completed"
    assert message_of(harness.assert_order, shop.ship, shop.pack) == (
        "not completed in the order ship, pack, but pack, charge, ship"
    )
    assert message_of(harness.assert_order, "refund").startswith("refund was not completed; what")
    harness.assert_effects(shop.charge, "note", "charge")
    assert message_of(harness.assert_effects, shop.charge, "charge") == (
        "charge did not do the effects charge; attempt 1 (died) did note, charge; "
        "attempt 2 (completed) did none"
    )


def test_a_failed_attempt_is_no_single_success(harness: Harness) -> None:
    @harness.hf.task(max_attempts=1)
    def fail() -> None:
        raise ValueError("no tea")

    fail.enqueue()
    harness.run_until_idle()
    assert message_of(harness.assert_ran_once, fail) == (
        "fail ran once and did not complete: fail, attempt 1, failed: ValueError: no tea"
    )
