"""What runs while its need is sent back is not stopped, but waits for it when it is tried again."""

from __future__ import annotations

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.effect import WakeCondition
from holdfast.model.retry import RetryPolicy
from holdfast.model.workflow.graph import OnFailure, Step
from tests.contract.engine.state.loops.test_linked_loops import named
from tests.contract.engine.state.loops.test_loops import begin, loop
from tests.contract.engine.state.verdicts.test_verifiers import REJECT, do, judge
from tests.contract.task_states import take

JUDGED = (Step(id="one"), Step(id="verify", verifies="one"), Step(id="two", needs=("verify",)))
ENDS = ("released", "failed", "suspended", "asked", "concluded", "lost")
ASKS = OnFailure(action="ask")


def end(engine: Engine, clock: ManualClock, how: str, task_id: str, token: str) -> None:
    """Have an attempt leave its task in line, in one of the ways there are."""
    if how == "lost":
        clock.advance(60)
        assert [each.ok for each in engine.work.recover()] == [True]
        return
    ways = {
        "released": lambda: engine.work.release(task_id, token),
        "failed": lambda: engine.work.fail(task_id, token, "red"),
        "suspended": lambda: engine.work.suspend(task_id, token, WakeCondition(children=True)),
        "asked": lambda: engine.work.ask(task_id, token, "how?"),
        "concluded": lambda: engine.work.fail(task_id, token, "red"),
    }
    assert ways[how]().ok


def test_a_task_waits_for_a_need_that_was_sent_back_however_its_attempt_ends(
    engine: Engine, clock: ManualClock
) -> None:
    asides = [Step(id=how) for how in ENDS if how != "concluded"]
    asides.append(Step(id="concluded", retry=RetryPolicy(max_attempts=1), on_failure=ASKS))
    run = begin(engine, *asides, loop("input", body=JUDGED), given=["a", "b"])
    one, ids = named(engine, run, "one"), {how: named(engine, run, how) for how in ENDS}
    for each in ids.values():
        assert engine.tasks.block(each, [one]).ok
    do(engine, run, "one")
    held = {how: take(engine, each, lease=30) for how, each in ids.items()}
    assert judge(engine, run, REJECT).ok
    for how, each in ids.items():
        end(engine, clock, how, each, held[how].token)
    assert {tuple(engine.tasks.blocked_by(each)) for each in ids.values()} == {(one,)}
    assert all(engine.tasks.get(each).blocked for each in ids.values())
    assert engine.doctor().ok
    do(engine, run, "one")
    assert not any(engine.tasks.get(each).blocked for each in ids.values())


def test_a_task_waits_for_the_loop_that_begins_again_around_its_need(engine: Engine) -> None:
    run = begin(engine, Step(id="aside"), loop("input", body=JUDGED), given=["a", "b"])
    aside = named(engine, run, "aside")
    assert engine.tasks.block(aside, [named(engine, run, "one")]).ok
    do(engine, run, "one")
    held = take(engine, aside)
    assert judge(engine, run, REJECT).ok
    assert engine.runs.retry(run, step="build").ok
    assert engine.work.release(aside, held.token).ok
    assert list(engine.tasks.blocked_by(aside)) == [named(engine, run, "build")]
    assert engine.tasks.get(aside).state == "blocked"
