"""The harness: a program's work done in the test's thread, on a store of the test's own."""

from __future__ import annotations

import asyncio
import threading

import pytest

from holdfast import Context, Ended, Holdfast, InvalidInput, NewTask, ShuttingDown, TaskFailed
from holdfast.testing import Harness, NotEnded, TooManyAttempts
from tests.contract.testing import shop_program as shop


def test_a_workflow_runs_to_its_end_in_the_thread_of_the_test(store_url: str) -> None:
    with Harness(url=store_url) as harness:
        run = shop.checkout.start(order_id=7)
        ran = harness.run_until_idle()
        assert [(each.step, each.attempt, each.outcome) for each in ran] == [
            ("pack", 1, "completed"),
            ("charge", 1, "completed"),
            ("ship", 1, "completed"),
        ]
        assert shop.threads == {threading.get_ident()}
        assert run.result() == "order 7 shipped, paid 7"
        assert shop.hf.doctor().ok


def test_every_holdfast_of_the_process_is_on_the_store_of_the_test_and_not_afterwards(
    harness: Harness,
) -> None:
    made = Holdfast("sqlite:///no/such/folder/shop.db")
    other = Holdfast("sqlite:///no/such/folder/other.db")
    job = shop.send_mail.enqueue("ada@example.org")
    assert [each.id for each in made.tasks.list()] == [job.id]
    assert other.tasks.list() == []
    harness.run_until_idle()
    assert made.tasks.get(job).output == "hello to ada@example.org"


def test_a_holdfast_is_as_it_was_when_the_block_is_left() -> None:
    hf = Holdfast("sqlite:///no/such/folder/shop.db")
    with Harness():
        hf.tasks.list()
        hf.close()
    with pytest.raises(Exception, match="folder"):
        hf.tasks.list()
    hf.close()
    with Harness():
        assert hf.tasks.list() == []
    with pytest.raises(ShuttingDown):
        hf.tasks.list()


def test_a_program_that_closes_its_holdfast_has_its_work_done_all_the_same(
    harness: Harness,
) -> None:
    job = shop.send_mail.enqueue("ada@example.org")
    shop.hf.close()
    harness.run_until_idle()
    assert shop.hf.tasks.get(job).output == "hello to ada@example.org"


def test_waiting_for_a_result_does_the_work(harness: Harness) -> None:
    assert shop.send_mail.enqueue("ada@example.org").result() == "hello to ada@example.org"
    assert len(harness.attempts) == 1


def test_what_does_not_end_is_not_waited_for_and_the_message_says_what_it_waits_for(
    harness: Harness,
) -> None:
    job = shop.welcome.enqueue("ada")
    with pytest.raises(NotEnded, match=r"nothing is left to do(.|\n)*Something is due in 168h"):
        job.result()
    with pytest.raises(TimeoutError, match="has not ended within 5 s"):
        job.result(timeout=5)
    harness.advance("7d")
    with pytest.raises(NotEnded, match="confirmed"):
        job.result()


def test_coroutines_await_the_same(harness: Harness) -> None:
    @harness.hf.task
    def begin_a_loop() -> str:
        return asyncio.run(asyncio.sleep(0, "ended"))

    async def use() -> list[str]:
        job = await shop.send_mail.enqueue.aio("ada@example.org")
        await harness.run_until_idle.aio()
        run = await shop.checkout.start.aio(order_id=7)
        # In the loop itself, whose thread a coroutine step cannot have.
        harness.run_until_idle()
        begun = await begin_a_loop.enqueue.aio()
        return [await job.result.aio(), await run.result.aio(), begun.result()]

    assert asyncio.run(use()) == ["hello to ada@example.org", "order 7 shipped, paid 7", "ended"]


def test_a_worker_that_the_program_starts_is_waited_for(harness: Harness) -> None:
    begun, go = threading.Event(), threading.Event()

    @harness.hf.task
    def slow() -> str:
        begun.set()
        assert go.wait(10)
        return "done elsewhere"

    with harness.hf.worker():
        job = slow.enqueue()
        assert begun.wait(10)
        threading.Timer(0.05, go.set).start()
        assert job.result() == "done elsewhere"
        with pytest.raises(NotEnded, match="due in 168h"):
            shop.welcome.enqueue("ada").result()
    assert harness.attempts[0].step == "welcome"


def test_a_wait_for_the_transaction_of_another_thread_moves_no_time(harness: Harness) -> None:
    begun, go = threading.Event(), threading.Event()

    def hold() -> None:
        with shop.hf.transaction():
            begun.set()
            assert go.wait(10)

    before, holder = harness.now, threading.Thread(target=hold)
    holder.start()
    assert begun.wait(10)
    threading.Timer(0.05, go.set).start()
    assert shop.send_mail.enqueue("ada").result() == "hello to ada"
    assert harness.now == before
    holder.join()


def test_a_step_may_wait_for_another_task(harness: Harness) -> None:
    @harness.hf.task
    def ask_another(to: str) -> str:
        return shop.send_mail.enqueue(to).result().upper()

    assert ask_another.enqueue("ada").result() == "HELLO TO ADA"


def test_tasks_of_any_agent_with_any_tags_are_run_in_the_order_of_their_priority(
    harness: Harness,
) -> None:
    plain = shop.send_mail.enqueue("ada")
    special = shop.send_mail.using(agent="postman", tags=["big"], priority=5).enqueue("bob")
    ran = harness.run_until_idle()
    assert [each.task_id for each in ran] == [special.id, plain.id]
    assert [each.outcome for each in ran] == ["completed", "completed"]


def test_work_that_never_rests_is_told(harness: Harness) -> None:
    @harness.hf.task
    def again() -> None:
        again.enqueue()

    again.enqueue()
    with pytest.raises(
        TooManyAttempts, match="more than 5 attempts have run without an end: again 6"
    ):
        harness.run_until_idle(limit=5)


def test_a_failed_step_raises_where_its_result_is_asked_for_and_nowhere_else(
    harness: Harness,
) -> None:
    @harness.hf.task(max_attempts=1)
    def fail() -> None:
        raise ValueError("no tea")

    job = fail.enqueue()
    (ran,) = harness.run_until_idle()
    assert (ran.outcome, ran.error) == ("failed", "ValueError: no tea")
    assert isinstance(ran.exception, ValueError)
    with pytest.raises(TaskFailed, match="no tea"):
        job.result()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_interrupt_in_a_step_ends_the_test(harness: Harness, *, asynchronous: bool) -> None:
    @harness.hf.task
    def interrupted() -> None:
        raise KeyboardInterrupt

    @harness.hf.task
    async def failed_in_a_loop() -> None:
        pytest.fail("what the test is about")

    job = failed_in_a_loop.enqueue() if asynchronous else interrupted.enqueue()
    with pytest.raises((KeyboardInterrupt, pytest.fail.Exception)):
        job.result()
    (ran,) = harness.attempts
    assert ran.outcome == "failed"


def test_a_task_without_a_function_is_left_and_named(harness: Harness) -> None:
    made = harness.hf.tasks.create(NewTask(title="Count the cups", agent="counter"))
    other = shop.send_mail.enqueue("ada")
    assert other.result() == "hello to ada"
    with pytest.raises(NotEnded, match="no function of this test carries out 'Count the cups'"):
        harness.hf.handle(made.id).result()
    harness.stub("Count the cups", {"cups": 7})
    assert harness.hf.handle(made.id).result() == {"cups": 7}
    with pytest.raises(InvalidInput, match="no task or run of this test"):
        harness.run_to_end(harness.hf.handle(made.id).id.replace("t_0", "t_1"))  # type: ignore[arg-type]  # an id is no handle


def test_runs_and_tasks_are_found_by_their_steps(harness: Harness) -> None:
    shop.checkout.start(order_id=7).result()
    (charged,) = harness.tasks_of(shop.charge)
    assert charged.output == "paid 7"
    assert harness.effects_of(shop.charge) == {"note": 5, "charge": "paid 7"}
    assert [each.workflow for each in shop.hf.runs.list()] == ["checkout"]
    assert harness.tasks_of("send_mail") == []


def test_hooks_children_and_called_workflows_are_run_too(store_url: str) -> None:
    ended: list[str] = []
    with Harness(url=store_url) as harness:
        hf = harness.hf
        whole, part = hf.workflow("whole"), hf.workflow("part")

        @part.step
        def sell(order_id: int) -> str:
            return f"sold {order_id}"

        @hf.on("run.completed", workflow="part")
        def tell(event: Ended) -> None:
            ended.append(str(event.workflow))

        @hf.task
        def double(number: int) -> int:
            return 2 * number

        @whole.step
        def many(ctx: Context) -> list[int]:
            return list(ctx.map(double, [1, 2, 3]))

        whole.run("call", part, input={"order_id": 7})
        assert whole.start().result() == "sold 7"
        harness.assert_ran(double, times=3)
        harness.assert_ran_once(many)
        harness.assert_started(part, order_id=7)
        harness.assert_ran_once(tell)
        harness.assert_order(double, many, sell, tell)
        assert ended == ["part"]
        assert hf.doctor().ok


def test_functions_of_any_program_on_the_same_store_are_found(harness: Harness) -> None:
    first, second = (Holdfast("sqlite:///no/such/folder/both.db") for _ in range(2))

    @first.task
    def greet() -> str:
        return "hello"

    @second.task
    def leave() -> str:
        return "goodbye"

    jobs = [greet.enqueue(), leave.enqueue()]
    harness.assert_enqueued(leave)
    harness.assert_enqueued(greet)
    assert [each.result() for each in jobs] == ["hello", "goodbye"]
    assert [each.id for each in harness.tasks_of(leave)] == [jobs[1].id]


def test_a_harness_that_is_not_open_says_how_to_open_it() -> None:
    with pytest.raises(InvalidInput, match="with Harness"):
        Harness().run_until_idle()
