"""What an effect gives travels as JSON, and what cannot travel does not have it done again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import pytest

from holdfast import Context, Holdfast, TaskFailed
from tests.contract.worker.attempt.test_durable_functions import PATIENCE, Ledger


@dataclass
class Receipt:
    amount: int
    paid: date


def test_an_effect_returns_its_value_in_json_form_from_the_first_time_on(hf: Holdfast) -> None:
    ledger = Ledger()
    receipt = Receipt(7, date(2026, 3, 1))
    seen: list[object] = []

    @hf.task(max_attempts=2, backoff=0)
    def charge(ctx: Context) -> None:
        seen.append(ctx.effect("pay", ledger.do, receipt))
        seen.append(ctx.effect("all", ledger.do, {"receipts": (receipt,)}))
        if ctx.attempt == 1:
            raise ConnectionError

    with hf.worker():
        charge.enqueue().result(PATIENCE)
    plain = {"amount": 7, "paid": "2026-03-01"}
    assert seen == [plain, {"receipts": [plain]}] * 2
    assert len(ledger.done) == 2


@pytest.mark.parametrize("given", [object(), {"inside": object()}, float("nan"), "x" * 2_000_000])
def test_an_effect_that_cannot_be_remembered_is_not_done_again(hf: Holdfast, given: object) -> None:
    ledger = Ledger()

    @hf.task(max_attempts=3, backoff=0)
    def charge(ctx: Context) -> object:
        return ctx.effect("pay", ledger.do, given)

    with hf.worker(), pytest.raises(TaskFailed, match=r"effect 'pay': .*; it was done, so .* give"):
        charge.enqueue().result(PATIENCE)
    assert len(ledger.done) == 1


def test_an_effect_whose_name_cannot_be_kept_is_not_done(hf: Holdfast) -> None:
    ledger = Ledger()

    @hf.task(max_attempts=1)
    def charge(ctx: Context) -> object:
        return ctx.effect("x" * 201, ledger.do, 1)

    with hf.worker(), pytest.raises(TaskFailed, match="201 characters long"):
        charge.enqueue().result(PATIENCE)
    assert not ledger.done
