"""Overruns, which keep their slots; and stored arguments that fit their functions no more."""

from __future__ import annotations

import threading

from holdfast import Holdfast
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
