"""What effects gave and signals brought, as the types that the function says."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import pytest

from holdfast import AsyncContext, Context, Holdfast, InvalidDefinition, TaskFailed

PATIENCE = 30
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass
class Payment:
    amount: int
    at: datetime


def pay(amount: int) -> Payment:
    return Payment(amount, NOON)


async def pay_later(amount: int) -> Payment:
    return pay(amount)


def pay_soon(amount: int) -> Awaitable[Payment]:
    return pay_later(amount)


def pay_many(amount: int) -> Iterable[Payment]:
    return [pay(amount)]


def refund(amount: int) -> int:
    # The annotation is wrong, as that of a library may be.
    return str(amount)  # type: ignore[return-value]


class Bank:
    def pay(self, amount: int) -> tuple[Payment, ...]:
        return (pay(amount),)


@pytest.fixture
def hf(store_url: str) -> Iterator[Holdfast]:
    with Holdfast(store_url) as opened:
        yield opened


def test_an_effect_gives_what_its_function_is_annotated_with_in_every_attempt(
    hf: Holdfast,
) -> None:
    seen: list[object] = []

    @hf.task(max_attempts=2, backoff=0)
    def work(ctx: Context) -> None:
        seen.append(
            [
                ctx.effect("pay", pay, 7),
                ctx.effect("part", partial(pay, 8)),
                ctx.effect("bank", Bank().pay, 9),
                ctx.effect("refund", refund, 3),
                ctx.effect("lambda", lambda: [pay(1)]),
                ctx.effect("many", pay_many, 4),
            ]
        )
        if ctx.attempt == 1:
            raise ConnectionError

    with hf.worker():
        work.enqueue().result(PATIENCE)
    plain = {"amount": 1, "at": "2026-01-01T12:00:00Z"}
    assert seen == [[pay(7), pay(8), (pay(9),), "3", [plain], [pay(4)]]] * 2


def test_a_coroutine_awaits_effects_of_both_kinds(hf: Holdfast) -> None:
    @hf.task
    async def work(ctx: AsyncContext) -> list[int]:
        paid = [
            await ctx.effect("pay", pay, 1),
            await ctx.effect("later", pay_later, 2),
            await ctx.effect("soon", pay_soon, 3),
        ]
        assert {each.at for each in paid} == {NOON}
        return [each.amount for each in paid]

    with hf.worker():
        assert work.enqueue().result(PATIENCE) == [1, 2, 3]


def test_a_signal_is_given_as_the_type_that_is_waited_for(hf: Holdfast) -> None:
    @hf.task
    def work(ctx: Context) -> int:
        first = ctx.wait_for("paid", type=Payment, timeout="2h")
        assert first.at == NOON
        return first.amount + sum(ctx.wait_for("more", type=list[int]))

    job = work.enqueue()
    hf.signal(job, "paid", {"amount": 7, "at": "2026-01-01T12:00:00Z"})
    hf.signal(job, "more", [1, 2])
    with hf.worker():
        assert job.result(PATIENCE) == 10


def test_a_signal_of_another_type_fails_the_step_for_good_and_says_what_to_do(
    hf: Holdfast,
) -> None:
    @hf.task
    async def work(ctx: AsyncContext) -> int:
        return (await ctx.wait_for("paid", type=Payment)).amount

    job = work.enqueue()
    hf.signal(job, "paid", {"amount": "seven", "at": "2026-01-01T12:00:00Z"})
    told = r"InvalidSignal: signal 'paid': amount: .*waits for Payment; .*retry --again t_"
    with hf.worker(), pytest.raises(TaskFailed, match=told):
        job.result(PATIENCE)
    assert hf.tasks.get(job).failures == 1


def test_a_call_gives_the_result_of_one_child_that_exists_once(hf: Holdfast) -> None:
    child = hf.task(pay)

    @hf.task
    def work(ctx: Context) -> int:
        first = ctx.call(child, 1)
        return first.amount + ctx.call(child.using(title="second"), amount=2).amount

    @hf.task
    async def other(ctx: AsyncContext) -> int:
        return (await ctx.call(child, 3)).amount

    with hf.worker():
        assert (work.enqueue().result(PATIENCE), other.enqueue().result(PATIENCE)) == (3, 3)
    assert sorted(task.title for task in hf.tasks.list() if task.parent_id) == [
        "pay",
        "pay",
        "second",
    ]


def test_an_async_context_of_a_plain_function_is_refused_at_its_declaration(hf: Holdfast) -> None:
    @hf.task
    def work(ctx: AsyncContext) -> None: ...

    with pytest.raises(InvalidDefinition, match="work: ctx: only a coroutine awaits"):
        work.enqueue()
