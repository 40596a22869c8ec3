"""Steps that call a workflow: when its run is started, with what, and what it gives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.engine.engine import Engine
from holdfast.engine.input import validation
from holdfast.errors import InvalidInput, NotFound
from holdfast.ids import Ids
from holdfast.model.run import NewRun
from holdfast.model.workflow.declarations import StepWork, WorkflowDeclarations
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from holdfast.model.workflow.reference import Reference
from tests.contract.called_workflows import LAST, SHIP, begin, below, call, child, get, in_items, of
from tests.contract.single_statements import complete, write
from tests.contract.task_states import StartedRun, finish, start


@pytest.fixture
def engine(lasting_engine: Engine) -> Engine:
    """One store for all of these tests: each looks at its own runs."""
    return lasting_engine


def test_a_step_gives_what_the_run_that_it_calls_gave(engine: Engine) -> None:
    given = {"to": "{{ steps.plan.town }}", "note": "for {{ input.name }}", "fast": True}
    run = begin(
        engine, Step(id="plan"), call(given=given, needs=("plan",)), LAST, given={"name": "Ada"}
    )
    assert run.task("ship").waits_for is None
    uncalled = r"no such task yet; ship has not called shipping yet, after plan \(queued\)$"
    with pytest.raises(NotFound, match=uncalled):
        engine.runs.task(run.id, "ship.pack")
    finish(engine, run.steps["plan"], {"town": "Ulm"})
    with pytest.raises(NotFound, match=r"in this store; the steps there are pack, send$"):
        engine.runs.task(run.id, "ship.pick")
    shipping = of(run)
    assert get(shipping).input == {"to": "Ulm", "note": "for Ada", "fast": True}
    assert (get(shipping).parent_id, get(shipping).root_id) == (run.steps["ship"], run.id)
    assert run.states == {"plan": "done", "ship": "in progress 0/2", "tell": "blocked"}
    shipping.finish("pack", "send")
    assert (run.task("ship").status, run.task("ship").output) == ("done", "send output")
    assert (shipping.status, run.status) == ("completed", "running")
    run.finish("tell")
    assert run.status == "completed"


def test_a_call_waits_without_a_lease_and_nobody_can_claim_it(engine: Engine) -> None:
    own = Workflow.define("own", (Step(id="pack", agent="packer"),))
    run = begin(engine, replace(call(workflow=own), agent="packer"), workflow=own)
    assert engine.work.claim_by_id(run.steps["ship"], "worker", agents=["packer"]) == []
    claimed = engine.work.claim("worker", count=5, agents=["packer"])
    assert [each.task_id for each in claimed] == [of(run).steps["pack"]]
    assert run.task("ship").lease is None


def test_several_last_steps_are_given_by_name(engine: Engine) -> None:
    pair = Workflow.define("pair", (Step(id="left"), Step(id="right")))
    run = begin(engine, call(workflow=pair), workflow=pair)
    of(run).finish("left", "right")
    assert run.task("ship").output == {"left": "left output", "right": "right output"}
    assert run.status == "completed"


def test_without_a_version_the_newest_is_called_by_its_name(engine: Engine) -> None:
    old, new = (Workflow.define("renewed", (Step(id=name),)) for name in ("walk", "drive"))
    named = Step(id="ship", work=StepWork(workflow="renewed"), needs=("plan",))
    run = begin(engine, Step(id="plan"), named, workflow=old)
    engine.clock.sleep(1)
    engine.workflows.add(new)
    run.finish("plan")
    assert [*of(run).steps] == ["drive"]


def test_a_workflow_that_is_not_known_is_refused_at_the_start_or_fails_its_step(
    engine: Engine,
) -> None:
    unknown = Step(id="ship", work=StepWork(workflow="nowhere"), needs=("plan",))
    order = NewRun(workflow=Workflow.define("order", (Step(id="plan"), unknown)))
    with pytest.raises(InvalidInput, match="'nowhere', which this store does not know"):
        engine.runs.start(order)
    begun = validation.new_run(
        order, Ids(engine.clock, engine.randomness), max_payload=9, actor_name="user"
    )
    engine.commits.submit(begun).result()
    run = StartedRun(
        engine=engine, id=begun.run_id, steps={str(each.step): each.id for each in begun.tasks}
    )
    run.finish("plan")
    assert run.task("ship").error == (
        "step 'ship': this store knows no workflow 'nowhere'; "
        "add it: `holdfast workflow add nowhere.yaml`"
    )
    assert run.status == "failed"


def test_an_input_that_does_not_fit_fails_the_step_and_names_the_field(engine: Engine) -> None:
    wanted = WorkflowDeclarations(
        input={"type": "object", "properties": {"to": {"type": "string"}}}
    )
    strict = Workflow.define("strict", (Step(id="pack"),), declared=wanted)
    given = {"to": "{{ steps.plan }}"}
    run = begin(
        engine, Step(id="plan"), call("ship", strict, given, needs=("plan",)), workflow=strict
    )
    finish(engine, run.steps["plan"], 7)
    assert run.task("ship").status == "failed"
    assert "input.to" in run.task("ship").error
    assert below(run) == []


def test_each_item_of_a_loop_has_a_run_of_its_own(engine: Engine) -> None:
    each = call(given={"to": "{{ item }}"})
    over = Reference.parse("for_each", "input.towns")
    loop = Step(id="all", for_each=over, parallel=2, steps=(each, Step(id="note", needs=("ship",))))
    run = begin(engine, loop, given={"towns": ["Ulm", "Bonn", "Jena"]})
    for place, town in enumerate(("Ulm", "Bonn", "Jena")):
        task = in_items(run, "ship")[place]
        shipping = child(engine, task)
        assert get(shipping).input == {"to": town}
        shipping.finish("pack", "send")
        assert engine.tasks.get(task).status == "done"
        finish(engine, in_items(run, "note")[place], f"{town} noted")
    assert engine.runs.task(run.id, "all").output == ["Ulm noted", "Bonn noted", "Jena noted"]
    assert run.status == "completed"


@pytest.mark.parametrize(("wanted", "status"), [(True, "queued"), (False, "done")])
def test_a_condition_decides_whether_a_workflow_is_called(
    engine: Engine,
    wanted: bool,  # noqa: FBT001 - a parameter of the test
    status: str,
) -> None:
    run = begin(
        engine, call(when=Reference.parse("when", "input.wanted")), LAST, given={"wanted": wanted}
    )
    assert (run.task("ship").status, run.task("ship").skipped) == (status, not wanted)
    assert len(below(run)) == int(wanted)


def test_pause_holds_what_was_called_and_resume_lets_it_go_on(engine: Engine) -> None:
    run = begin(
        engine, call(), Step(id="later", work=StepWork(workflow="shipping"), needs=("ship",))
    )
    shipping = of(run)
    assert engine.runs.pause(run.id).ok
    assert (shipping.holds, shipping.states["pack"]) == (["paused"], "held")
    assert engine.runs.pause(run.id).repeated
    assert engine.runs.resume(run.id).ok
    shipping.finish("pack")
    attempt = shipping.take("send")
    assert engine.runs.pause(run.id).ok
    assert engine.work.complete(attempt.task_id, attempt.token, "sent").ok
    assert (run.states["later"], run.task("later").waits_for) == ("held", None)
    assert engine.runs.resume(run.id).ok
    assert of(run, "later").status == "running"


def test_a_held_step_calls_nothing_until_it_is_let_go(engine: Engine) -> None:
    run = begin(engine, Step(id="plan"), call(needs=("plan",)))
    assert engine.tasks.hold(run.steps["ship"]).ok
    run.finish("plan")
    assert (run.states["ship"], below(run)) == ("held", [])
    assert engine.tasks.unhold(run.steps["ship"]).ok
    assert of(run).status == "running"


def test_a_run_that_waits_for_its_turn_calls_nothing_before_it(engine: Engine) -> None:
    engine.workflows.add(SHIP)
    one = Workflow.define("order", (call(),), concurrency=Concurrency(key="one"))
    first, second = start(engine, one), start(engine, one)
    assert second.task("ship").waits_for is None
    of(first).finish("pack", "send")
    assert (first.status, of(second).status) == ("completed", "running")


def test_a_called_run_waits_for_its_own_turn(engine: Engine) -> None:
    narrow = Workflow.define("narrow", (Step(id="pack"),), concurrency=Concurrency(key="dock"))
    run = begin(engine, call("one", narrow), call("two", narrow), workflow=narrow)
    assert (of(run, "one").holds, of(run, "two").holds) == ([], ["slot"])
    of(run, "one").finish("pack")
    of(run, "two").finish("pack")
    assert run.status == "completed"


def test_a_called_run_goes_on_in_the_place_that_a_run_above_it_has(engine: Engine) -> None:
    key = Concurrency(key="yard")
    lowest = Workflow.define("lowest", (Step(id="pack"),), concurrency=key)
    middle = Workflow.define("middle", (call(workflow=lowest),))
    for each in (lowest, middle):
        engine.workflows.add(each)
    top = Workflow.define("top", (call(workflow=middle),), concurrency=key)
    run, other = start(engine, top), start(engine, top)
    shipping = of(of(run))
    assert (shipping.holds, other.holds) == ([], ["slot"])
    waits = f"yard is full, 1 of 1: {run.id}"
    assert waits in engine.why_run(other.id).summary
    assert f"hold: slot, {waits}" in str(engine.why(other.steps["ship"]))
    shipping.break_for_good("pack")
    assert (run.status, other.holds) == ("failed", [])
    assert engine.runs.retry(run.id).ok
    assert (run.holds, shipping.status) == (["slot"], "failed")
    of(of(other)).finish("pack")
    assert (other.status, run.holds, shipping.holds) == ("completed", [], [])
    shipping.finish("pack")
    assert run.status == "completed"


def test_workflows_that_call_each_other_without_end_are_stopped(engine: Engine) -> None:
    again = Workflow.define("again", (Step(id="next", work=StepWork(workflow="again")),))
    engine.workflows.add(again)
    run = start(engine, again)
    assert [each.status for each in below(run)] == ["failed"] * 8
    assert "'next': again would be called 9 deep, and 8 is the most" in get(run).error


def test_a_verifier_sends_back_what_a_workflow_gave_and_it_is_called_with_the_feedback(
    engine: Engine,
) -> None:
    judge = Step(id="judge", verifies="ship")
    run = begin(engine, call(given={"said": "{{ feedback }}"}), judge, LAST)
    first = of(run)
    first.finish("pack", "send")
    verdict = {"verdict": "reject", "feedback": "too slow"}
    finish(engine, run.steps["judge"], verdict)
    assert (of(run).id != first.id, get(of(run)).input) == (True, {"said": "too slow"})
    of(run).finish("pack", "send")
    finish(engine, run.steps["judge"], {"verdict": "accept"})
    run.finish("tell")
    assert run.status == "completed"


def test_the_declared_outputs_of_a_call_are_checked(engine: Engine) -> None:
    declared = {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}
    work = StepWork(workflow="shipping", outputs=declared)
    run = begin(engine, Step(id="ship", work=work))
    of(run).finish("pack", "send")
    assert (run.status, "output" in run.task("ship").error) == ("failed", True)


def test_advance_hears_of_a_run_whose_end_nobody_was_told(engine: Engine) -> None:
    run = begin(engine, call(), LAST)
    shipping = of(run)
    attempts = [shipping.take("pack")]
    assert engine.work.complete(attempts[0].task_id, attempts[0].token, 1).ok
    attempts.append(shipping.take("send"))
    complete(engine, attempts[1].task_id)
    assert write(engine, "settle_runs", ids=[shipping.id]) == {shipping.id}
    assert run.task("ship").status == "queued"
    assert engine.runs.advance(run.id).advanced is False
    assert run.task("ship").status == "done"
