"""Keys as addresses: `key:order-7` stands for the id of a run or task wherever an id is taken."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import Holdfast, NotFound
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.task import NewTask
from tests.contract.engine.input.bad_values import KEYS_OF_NOTHING
from tests.contract.engine.read.test_pages import plan_of
from tests.contract.task_states import CHAIN, FORK, create, start


def test_a_run_and_a_task_are_read_and_changed_by_their_keys(engine: Engine) -> None:
    run, task = start(engine, key="order-7"), create(engine, "send", key="mail-7")
    assert engine.runs.get(key="order-7").id == engine.runs.get("key:order-7").id == run.id
    assert engine.tasks.get(key="mail-7").id == engine.tasks.get("key:mail-7").id == task
    assert engine.runs.pause("key:order-7").ok
    assert run.holds == ["paused"]
    assert engine.runs.task("key:order-7", "plan").id == run.steps["plan"]
    assert engine.why_run("key:order-7").run.id == engine.find("key:order-7") == run.id
    assert engine.tasks.cancel("key:mail-7").ok
    assert engine.why("key:mail-7").task.id == task


def test_a_key_alone_is_an_address_too(hf: Holdfast) -> None:
    checkout = hf.workflow("checkout")

    @checkout.step
    def pack(order_id: int) -> int:
        return order_id

    @hf.task
    def send() -> str:
        return "sent"

    run, mail = checkout.start(order_id=7, key="order-7"), send.enqueue(key="mail-7")
    tasks = hf.tasks
    assert hf.runs.get("order-7").id == hf.handle("order-7").id == run.id
    assert tasks.get("mail-7").id == hf.handle("mail-7").id == mail.id
    assert hf.why("mail-7").summary == hf.why(mail.id).summary
    assert hf.runs.pause("order-7").ok
    after = send.using(needs=["mail-7"]).enqueue()
    with hf.transaction() as db:
        made = tasks.create(NewTask(title="in", key="in"), connection=db)
        later = tasks.create(NewTask(title="later", needs=("in",)), connection=db)
        joined = send.using(needs=["in"], connection=db).enqueue_many([{}])
    assert tasks.blocked_by(after.id) == [mail.id]
    assert tasks.blocked_by(later.id) == tasks.blocked_by(joined[0].id) == [made.id]
    assert [each.id for each in tasks.list(run="order-7")] == [run.task("pack").id]
    assert send.schedule("mails", "0 8 * * *", run="order-7").run_id == run.id
    assert tasks.cancel("mail-7").ok
    with pytest.raises(NotFound, match=r"key:mail-8: .*; near it: 'mail-7'"):
        tasks.cancel("mail-8")


def test_a_step_of_a_run_is_named_by_the_key_of_the_run(engine: Engine) -> None:
    run = start(engine, key="order-7")
    for address in ("key:order-7:plan", "order-7:plan"):
        assert engine.tasks.get(address).id == engine.find(address) == run.steps["plan"]
    assert engine.tasks.cancel("key:order-7:plan").ok
    with pytest.raises(NotFound, match="the steps there are plan, "):
        engine.tasks.get("order-7:pack")
    with pytest.raises(InvalidInput, match="is a task, and a run is wanted"):
        engine.runs.get("order-7:plan")
    # The longest key comes first: this one has a colon in it.
    own = create(engine, key="order-7:plan")
    assert engine.tasks.get("key:order-7:plan").id == own


def test_a_key_that_looks_like_an_id_is_written_with_its_prefix(engine: Engine) -> None:
    odd = {key: create(engine, key=key) for key in ("t_7", "r_7", "key:7")}
    assert [engine.tasks.get(f"key:{key}").id for key in odd] == list(odd.values())
    with pytest.raises(InvalidInput, match="task_id: 't_7' is not an id"):
        engine.tasks.get("t_7")
    with pytest.raises(NotFound, match="key:7"):
        engine.tasks.get("key:7")


def test_other_tasks_are_named_by_their_keys(engine: Engine) -> None:
    first, plan = create(engine, key="first"), create(engine, key="plan", enqueue=False)
    second = create(engine, "second", needs=["key:first"], key="second")
    third = create(engine, "third")
    assert engine.tasks.block(third, ["key:second"]).ok
    assert engine.tasks.blocked_by("key:second") == [first]
    assert engine.tasks.blocked_by(third) == [second]
    assert engine.tasks.start_planning("key:plan").ok
    parts = [
        engine.tasks.create(NewTask(title=name, parent="key:plan", enqueue=False, key=name)).id
        for name in ("one", "two")
    ]
    assert engine.tasks.reorder_plan("key:plan", ["key:two", "key:one"]).ok
    assert engine.tasks.finalize_plan("key:plan", graph={"key:one": ["key:two"]}).ok
    assert [each.id for each in engine.tasks.children(plan)] == parts[::-1]
    assert engine.tasks.blocked_by("key:one") == [parts[1]]


def test_the_call_decides_between_a_run_and_a_task_of_one_key_or_refuses(engine: Engine) -> None:
    run, task = start(engine, key="both"), create(engine, "send", key="both")
    assert engine.runs.get(key="both").id == run.id
    assert engine.tasks.get(key="both").id == task
    with pytest.raises(InvalidInput, match="a run and a task have the key 'both'; give the id"):
        engine.signals.send("both", "go")


def test_a_key_that_nothing_has_is_told_with_keys_near_it(engine: Engine) -> None:
    with pytest.raises(NotFound, match=r"key:order-8: .*; no run or task has a key yet"):
        engine.find("key:order-8")
    create(engine, key="order-7")
    start(engine, key="unlike")
    with pytest.raises(NotFound, match=r"no such run or task .*; near it: 'order-7'$"):
        engine.find("key:order-8")
    with pytest.raises(InvalidInput, match="is a task, and a run is wanted"):
        engine.runs.get(key="order-7")
    with pytest.raises(InvalidInput, match=r"^id: must be non-empty"):
        engine.find("key:")
    with pytest.raises(InvalidInput, match=r"^run_id: give an id or a key, one of both"):
        engine.runs.get()


def test_a_text_that_is_no_id_is_the_key_of_nothing(engine: Engine) -> None:
    for key in KEYS_OF_NOTHING:
        for call in (engine.tasks.get, engine.tasks.cancel, engine.runs.get, engine.runs.pause):
            with pytest.raises(NotFound):
                call(key)
        with pytest.raises(NotFound):
            engine.tasks.create(NewTask(title="t", needs=(key,)))
    assert not engine.tasks.list()
    assert not engine.runs.list()


def test_lists_are_filtered_by_key_and_by_name(engine: Engine, store_url: str) -> None:
    chain, _ = start(engine, CHAIN, key="order-7"), start(engine, FORK)
    mail, _ = create(engine, "send", step="mail", key="mail-7"), create(engine, "send")
    runs, tasks = engine.runs, engine.tasks
    assert [each.id for each in runs.list(key="order-7")] == [chain.id]
    assert runs.list(key="order-7", workflow="fork") == runs.list(key="mail-7") == []
    assert [each.id for each in tasks.list(key="mail-7")] == [mail]
    assert tasks.list(key="mail-7", status="done") == tasks.list(key="order-7") == []
    assert [each.id for each in tasks.list(step="mail")] == [mail]
    assert [each.id for each in tasks.list(workflow="chain", step="plan")] == [chain.steps["plan"]]
    with pytest.raises(InvalidInput, match=r"^key: is of one task"):
        tasks.list(key="mail-7", run=chain.id)
    for query in ("list_runs_of_key", "list_tasks_of_key", "holders_of_key", "keys_near"):
        asked = {"key": "k", "after": "r_8", "count": 9, "called": True}
        asked |= dict.fromkeys(("status", "workflow", "agent", "step", "labels", "error", "name"))
        asked |= {"first": "r_", "since": None, "until": None, "held": None}
        plan = plan_of(store_url, query, asked)
        assert "SCAN holdfast" not in plan, plan
        assert "Seq Scan" not in plan, plan


def test_a_signal_is_sent_to_a_key(hf: Holdfast) -> None:
    checkout = hf.workflow("checkout")

    @checkout.step
    def pack(order_id: int) -> int:
        return order_id

    run = checkout.start(order_id=7, key="order-7")
    assert hf.signal("order-7", "paid", {"by": "card"}).ok
    assert asyncio.run(hf.signal.aio("key:order-7", "paid", {"by": "card"})).ok
    with pytest.raises(NotFound, match="near it: 'order-7'"):
        hf.signal("order-8", "paid")
    assert hf.handle("key:order-7").id == hf.runs.get(key="order-7").id == run.id
    assert hf.why("key:order-7").summary.startswith(f"checkout {run.id} is running")


def test_a_key_of_the_same_transaction_is_an_address_in_it(hf: Holdfast) -> None:
    checkout = hf.workflow("checkout")

    @checkout.step
    def pack(order_id: int) -> int:
        return order_id

    with hf.transaction() as db:
        run = checkout.start(order_id=7, key="order-7", connection=db)
        task = hf.tasks.create(NewTask(title="send", key="mail-7"), connection=db)
        assert hf.signal("order-7", "paid", connection=db).ok
        assert hf.runs.cancel("key:order-7", connection=db).ok
        assert hf.tasks.cancel("key:mail-7", connection=db).ok
        with pytest.raises(NotFound, match="key:order-8"):
            hf.signal("order-8", "paid", connection=db)
    assert hf.runs.get(run.id).status == "cancelled"
    assert hf.tasks.get(task.id).status == "cancelled"
