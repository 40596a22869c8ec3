"""Overruns, which keep their slots; and stored arguments that fit their functions no more."""

from __future__ import annotations

import threading

from holdfast import Holdfast, NewTask
from tests.race.racers import eventually

PATIENCE = 30


def test_a_function_that_goes_on_after_its_timeout_keeps_a_slot_and_is_listed(
    hf: Holdfast,
) -> None:
    go_on = threading.Event()

    @hf.task(timeout="50ms", max_attempts=1)
    def stuck() -> None:
        assert go_on.wait(PATIENCE)

    @hf.task
    def later() -> str:
        return "ran"

    def count_overruns() -> int:
        return sum(len(each.overruns) for each in hf.workers.loads())

    with hf.worker(concurrency=1):
        over, waiting = stuck.enqueue(), later.enqueue()
        try:
            assert eventually(lambda: count_overruns() == 1)
            (load,) = hf.workers.loads()
            assert (load.used, load.free) == (1, 0)
            assert [each.task_id for each in load.overruns] == [over.id]
            told = str(hf.why(waiting.id))
            assert "taken by functions that go on after their attempts were over: stuck" in told
        finally:
            go_on.set()
        assert waiting.result(timeout=PATIENCE) == "ran"
        assert eventually(lambda: count_overruns() == 0)


def test_a_task_whose_stored_arguments_fit_no_more_is_held_with_the_name_of_the_parameter(
    store_url: str,
) -> None:
    with Holdfast(store_url) as before:

        @before.task
        def charge(amount: int) -> int:
            return amount

        task = charge.enqueue(amount=3)
    with Holdfast(store_url) as hf:

        @hf.task(name="charge")
        def charge_in(amount: int, currency: str) -> str:
            return f"{amount} {currency}"

        with hf.worker(concurrency=1):
            assert eventually(lambda: hf.tasks.get(task.id).holds.names == ("version",))
            told = str(hf.why(task.id))
        lacking = "the parameter 'currency' of 'charge_in' takes an argument that is not stored"
        assert f"✗ holds    hold: version; {lacking} (stored are amount): give it a de" in told
        assert hf.tasks.cancel(task.id).ok


def test_a_task_with_a_stored_argument_that_its_function_takes_no_more_is_held_with_its_name(
    store_url: str,
) -> None:
    with Holdfast(store_url) as before:

        @before.task
        def refund(order: int, cents: int) -> int:
            return order + cents

        @before.task
        def ping(host: str) -> str:
            return host

        refunded, pinged = refund.enqueue(7, 100), ping.enqueue("here")
        asked = NewTask(title="asked for", step="ping", payload={"host": "there"})
        created = before.tasks.create(asked)
    with Holdfast(store_url) as hf:

        @hf.task(name="refund")
        def refund_all(order: int) -> int:
            raise AssertionError(f"{order} is refunded without its cents")

        @hf.task(name="ping")
        def ping_home() -> None:
            raise AssertionError("a host is left out")

        with hf.worker(concurrency=2):
            assert eventually(lambda: hf.tasks.get(refunded.id).holds.names == ("version",))
            assert eventually(lambda: hf.tasks.get(pinged.id).holds.names == ("version",))
            unused = "'refund_all' has no parameter for the stored argument 'cents'"
            assert f"✗ holds    hold: version; {unused}: give it" in str(hf.why(refunded.id))
            unused = "'ping_home' has no parameter for the stored argument 'host'"
            assert f"✗ holds    hold: version; {unused}: give it" in str(hf.why(pinged.id))
            assert eventually(lambda: hf.tasks.get(created.id).holds.names == ("version",))
    with Holdfast(store_url) as hf:

        @hf.task(name="refund")
        def refund_again(order: int, cents: int = 0) -> int:
            return order + cents

        @hf.task(name="ping")
        def ping_again(host: str | None = None) -> str:
            return host or "nowhere"

        with hf.worker(concurrency=2):
            assert hf.handle(refunded.id).result(timeout=PATIENCE) == 107
            assert hf.handle(pinged.id).result(timeout=PATIENCE) == "here"
            assert hf.handle(created.id).result(timeout=PATIENCE) == "there"


def test_a_task_whose_stored_value_fits_its_parameter_no_more_fails_with_its_name_alone(
    store_url: str,
) -> None:
    with Holdfast(store_url) as before:

        @before.task
        def mail(to: str) -> str:
            return to

        task = mail.enqueue(to="Ada")
    with Holdfast(store_url) as hf:

        @hf.task(name="mail")
        def mail_to(to: int) -> int:
            return to

        with hf.worker(concurrency=1):
            assert eventually(lambda: hf.tasks.get(task.id).status == "failed")
        told = str(hf.why(task.id)).splitlines()
        assert told[0].startswith("mail is failed: InvalidInput: to: Input should be a valid int")
        assert told[0].endswith("; 'mail_to' takes it")
        assert told[1].startswith("  ✗ status"), "no code of the function has run"
