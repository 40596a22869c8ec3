"""Concurrency keys of functions: variables as in workflow files, and functions of the arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import Concurrency, Context, Ended, Holdfast, InvalidDefinition, InvalidInput, NewTask
from holdfast.model.workflow.graph import Workflow

PER_CUSTOMER = "customer-{{ input.customer }}"


@dataclass
class Order:
    customer: int
    lines: list[str]


def keys_of(hf: Holdfast) -> list[str | None]:
    return [task.concurrency_key for task in sorted(hf.tasks.list(), key=lambda task: task.id)]


def test_each_customer_has_a_slot_of_its_own(hf: Holdfast) -> None:
    @hf.task(concurrency=PER_CUSTOMER)
    def bill(customer: int, amount: int = 1) -> int:
        return customer * amount

    first, second, other = (bill.enqueue(customer) for customer in (7, 7, 8))
    claimed = [each.task_id for each in hf.work.claim("w", count=3)]
    assert claimed == [first.id, other.id]
    assert hf.tasks.get(second.id).state == "ready"
    assert "customer-7" in str(hf.why(second.id))


def test_a_key_is_made_of_the_arguments_wherever_a_call_is_made(hf: Holdfast) -> None:
    @hf.task(concurrency=(PER_CUSTOMER, 3))
    def bill(customer: str = "nobody") -> None: ...

    bill.enqueue()
    bill.enqueue("ada", key="k")
    bill.enqueue_many([{"customer": "bob"}, {}])
    bill.using(scheduled_for="1h", concurrency="all").enqueue("eve")
    plan = hf.plan("bills")
    plan.add(bill, "zoe")
    hf.tasks.create(bill.request(customer="joe"))
    told = ["nobody", "ada", "bob", "nobody"]
    expected = [*(f"task:customer-{each}" for each in told), "task:all", None]
    assert keys_of(hf) == [*expected, "task:customer-zoe", "task:customer-joe"]


def test_a_key_may_be_a_function_of_the_arguments(hf: Holdfast) -> None:
    def of_order(order: Order) -> str | None:
        return None if order.customer == 0 else f"customer-{order.customer}"

    @hf.task(concurrency=(of_order, 2))
    def ship(order: Order, *, fast: bool = False) -> None: ...

    @hf.task(concurrency=lambda **given: f"{given['a']}-{given['b']}")
    def add(a: int, b: int = 2) -> None: ...

    @hf.task
    def around(ctx: Context) -> None:
        ctx.map(ship, [Order(5, []), Order(6, [])])

    for customer in (7, 0, 7, 7):
        ship.enqueue(Order(customer, ["x"]), fast=True)
    add.enqueue(1)
    key = "task:customer-7"
    assert keys_of(hf) == [key, None, key, key, "task:1-2"]
    assert len(hf.work.claim("w", count=5)) == 4
    mapped = around.enqueue()
    with hf.worker():
        mapped.result("30s")
    made = [task.concurrency_key for task in hf.tasks.children(mapped.id)]
    assert made == ["task:customer-5", "task:customer-6"]


def test_the_key_of_a_run_and_of_a_step_name_inputs_and_items(hf: Holdfast) -> None:
    flow = hf.workflow("bills", concurrency=PER_CUSTOMER)

    @flow.step(concurrency=("step-{{ input.customer }}", 2))
    def list_bills(customer: str = "nobody") -> list[dict[str, int]]:
        return [{"number": number, "of": len(customer)} for number in (3, 4)]

    each = flow.loop("each", over="steps.list_bills")

    @each.step(concurrency="{{ run.workflow }}-{{ item.number }}")
    def send(item: dict[str, int]) -> None: ...

    run, same, other = flow.start(), flow.start(), flow.start(customer="ada")
    assert [hf.runs.get(each.id).concurrency_key for each in (run, same, other)] == [
        *(2 * ["run:customer-nobody"]),
        "run:customer-ada",
    ]
    assert [bool(hf.runs.get(each.id).holds) for each in (run, same, other)] == [False, True, False]
    with hf.worker():
        run.result("30s")
        same.result("30s")
    places = ("list_bills", "each.1.send", "each.2.send")
    assert [hf.runs.task(run.id, place).concurrency_key for place in places] == [
        "task:step-nobody",
        "task:bills-3",
        "task:bills-4",
    ]


def test_an_item_without_the_value_of_the_key_fails_and_says_which(hf: Holdfast) -> None:
    flow = hf.workflow("bills")
    each = flow.loop("each", over="input.bills")

    @each.step(concurrency="bill-{{ item.number }}")
    def send(item: dict[str, int]) -> None: ...

    run = flow.start(bills=[{"number": 3}, {"nummer": 4}])
    with hf.worker(), pytest.raises(Exception, match=r"there is no item\.number"):
        run.result("30s")
    assert hf.runs.task(run.id, "each.1.send").concurrency_key == "task:bill-3"


def test_text_that_looks_like_a_variable_and_is_none_is_refused(hf: Holdfast) -> None:
    def bill(ctx: Context, customer: int) -> None: ...

    def hook(event: Ended) -> None: ...

    refused: list[tuple[Any, str]] = [
        ("customer-{{ customer }}", "'customer' begins with none of input"),
        ("customer-{{ input.custmer }}", "'custmer' is no parameter of 'bill'; did you mean cust"),
        ("customer-{{ input.customer", "is no variable; write"),
        ("customer-{{ steps.a.b }}", "steps.a.b is not known there; the arguments are"),
        ("customer-{customer}", "'{customer}' in 'customer-{customer}' is no variable; write {{"),
        ("customer-${customer}", "is no variable"),
        ("customer-$customer", "is no variable"),
        ("customer }}", "is no variable"),
        (Concurrency(key="{customer}"), "is no variable"),
        (("{{ customer }}", 2), "begins with none"),
        (lambda who: who, "'who' is no parameter of 'bill'; it takes customer"),
        (lambda *given: str(given), "'given' of its function cannot be passed by name"),
        ((lambda customer: customer, 0), "concurrency.limit: must be a whole number"),
    ]
    for given, told in refused:
        with pytest.raises(InvalidInput, match="concurrency") as error:
            hf.task(name="bill", concurrency=given)(bill)
        assert told in str(error.value)
    made = hf.task(name="numbers", concurrency=lambda customer: customer)(bill)
    with pytest.raises(InvalidInput, match="its function gave a int; a key is text, or None"):
        made.enqueue(7)
    with pytest.raises(InvalidInput, match="only steps and functions have; write the key itself"):
        hf.tasks.create(NewTask(title="x", concurrency=Concurrency(key=PER_CUSTOMER)))
    with pytest.raises(InvalidInput, match="a hook has no variables"):
        hf.on("run.failed", concurrency=PER_CUSTOMER)(hook)
    assert hf.tasks.list() == []


def test_a_key_of_a_workflow_that_names_no_input_is_refused_when_it_is_first_used(
    hf: Holdfast,
) -> None:
    def define(name: str, of_run: str | None, of_step: str | None) -> Callable[[], Workflow]:
        flow = hf.workflow(name, concurrency=of_run)

        @flow.step(concurrency=of_step)
        def bill(customer: int) -> None: ...

        return flow.read_graph

    refused: list[tuple[str | None, str | None, str]] = [
        ("{{ input.custmer }}", None, "the run: 'custmer' is no input of a step; did you mean cu"),
        (
            None,
            "{{ input.x }}",
            "key of step 'bill': 'x' is no input of a step; they take customer",
        ),
        ("{{ run.id }}", None, "run is not known there; one of input is"),
        (None, "{{ item }}", "item stands in no loop"),
        (None, "{{ steps.bill.x }}", "steps is not known there"),
    ]
    for number, (of_run, of_step, told) in enumerate(refused):
        with pytest.raises(InvalidDefinition) as error:
            define(f"flow{number}", of_run, of_step)()
        assert told in str(error.value)
    of_function: list[Any] = [lambda customer: customer, (lambda customer: customer, 2)]
    for given in of_function:
        with pytest.raises(InvalidInput, match=r"a function gives the keys of @hf\.task alone"):
            hf.workflow("other", concurrency=given)
