"""What may be asked of loops, verifiers, people, plans and durable functions, drawn by a player."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.model.budget import Budget
from holdfast.model.effect import WakeCondition
from holdfast.model.run import NewRun
from holdfast.model.task import NewTask, Renewal
from holdfast.model.workflow.declarations import StepWork, WorkflowDeclarations
from holdfast.model.workflow.graph import Concurrency, OnFailure, Step, Workflow
from holdfast.model.workflow.reference import Reference
from tests.simulation.new_work_requests import ONCE, SHORT
from tests.simulation.player_requests import REPERTOIRE
from tests.simulation.seeded_player import Kind, Player, Submit

ASK, SKIP = OnFailure(action="ask"), OnFailure(action="skip")
VERDICTS = (
    {"verdict": "accept"},
    {"verdict": "accept"},
    {"verdict": "reject", "feedback": "no"},
    {"verdict": "reject", "feedback": "no", "items": [0]},
    "no verdict",
)
NEW_STEPS = (
    *("plan", "build", "make", "check", "gate", "test", "call", "each"),
    *("build.1.make", "build.2", "build.1.inner", "build.1.inner.1"),
)


def body(plan: OnFailure) -> tuple[Step, ...]:
    shared = Concurrency(key="narrow", limit=2)
    return (
        Step(id="make", retry=SHORT, concurrency=shared),
        Step(id="check", verifies="make", max_rounds=2, retry=ONCE, on_failure=plan),
        Step(id="pack", needs=("make",)),
    )


def loop(name: str, over: str, *steps: Step, **more: Any) -> Step:
    return Step(id=name, for_each=Reference.parse("for_each", over), steps=steps, **more)


WANTED = Reference.parse("when", "steps.plan.made")
BACK = OnFailure(action="goto", step="build", max_rounds=2)
SENT = Workflow.define("sent", (Step(id="make", retry=ONCE), Step(id="pack", needs=("make",))))
SEND = StepWork(workflow=SENT.name, version=SENT.version, input={"list": ["a"]})
STORIES = {
    "verified items": (
        loop("build", "input.list", *body(ASK), parallel=2),
        Step(id="last", needs=("build",)),
    ),
    "verified loop": (
        Step(id="plan"),
        loop("build", "input.list", Step(id="make", retry=SHORT), needs=("plan",)),
        Step(id="check", verifies="build", max_rounds=2, on_failure=SKIP),
        Step(id="test", needs=("build",), retry=ONCE, on_failure=BACK),
    ),
    "nested": (
        loop(
            "build",
            "input.nested",
            loop("inner", "item", Step(id="make", retry=ONCE), parallel=2),
            Step(id="gate", approval="Go on?", needs=("inner",)),
            parallel=2,
        ),
    ),
    "conditions": (
        Step(id="plan"),
        Step(id="left", needs=("plan",), when=WANTED),
        loop("build", "steps.plan.list", Step(id="make"), needs=("plan",), when=WANTED),
        Step(id="gate", approval="Merge?", needs=("left", "build")),
        Step(id="last", needs=("gate",)),
    ),
    "calls": (
        Step(id="plan"),
        Step(id="call", work=SEND, needs=("plan",), on_failure=ASK),
        loop("build", "input.list", Step(id="each", work=SEND), parallel=2),
        Step(id="check", verifies="call", max_rounds=2, retry=ONCE),
        Step(id="last", needs=("call", "build")),
    ),
    "verified": (*body(OnFailure()), Step(id="last", needs=("check",), on_failure=SKIP)),
}
LIMITED = Workflow.define(
    "limited",
    tuple(Step(id=name, retry=SHORT) for name in ("left", "right", "last")),
    declared=WorkflowDeclarations(budget=Budget(usd=1, usd_per_attempt=0.4, attempts=4)),
    deadline=300,
)
WORKFLOWS = {
    name: Workflow.define(name.replace(" ", "-"), steps, called=(SENT,))
    for name, steps in STORIES.items()
} | {"limited": LIMITED}


@dataclass(kw_only=True)
class Teller(Player):
    """A player who also knows what the engine makes of loops and calls."""

    def play(self, kinds: Sequence[Kind]) -> list[object]:
        told = super().play(kinds)
        called = [run.id for run in self.engine.runs.list(limit=1_000) if run.root_id is not None]
        self.runs += sorted({*called} - {*self.runs})
        known = set(self.tasks)
        for run in self.runs:
            self.tasks += [task.id for task in self.engine.runs.tasks(run) if task.id not in known]
        return told


def begin(player: Player) -> Submit:
    draw = player.draw
    given = {
        "list": list("abc"[: draw.randrange(4)]),
        "nested": draw.choice(([["x", "y"], []], [])),
    }
    new = NewRun(workflow=WORKFLOWS[draw.choice(sorted(WORKFLOWS))], input=given)
    return lambda: player.engine.runs.start.submit(new)


def judge(player: Player) -> Submit:
    (task, token), said = player.attempt(), player.draw.choice(VERDICTS)
    return lambda: player.engine.work.complete.submit(task, token, said)


def tell_a_list(player: Player) -> Submit:
    (task, token), made = player.attempt(), player.draw.choice((True, True, False))
    told = {"made": made, "list": ["a", "b"]}
    return lambda: player.engine.work.complete.submit(task, token, told)


def approve(player: Player) -> Submit:
    task = player.task()
    return lambda: player.engine.tasks.approve.submit(task, "fine")


def reject(player: Player) -> Submit:
    task = player.task()
    return lambda: player.engine.tasks.reject.submit(task, "not fine")


def ask(player: Player) -> Submit:
    task, token = player.attempt()
    return lambda: player.engine.work.ask.submit(task, token, "which?")


def answer(player: Player) -> Submit:
    task = player.task()
    return lambda: player.engine.tasks.answer.submit(task, "this one")


def retry_story_from(player: Player) -> Submit:
    run, step = player.run(), player.draw.choice(NEW_STEPS)
    return lambda: player.engine.runs.retry.submit(run, step=step)


def tell_usage(player: Player) -> Submit:
    (task, token), usd = player.attempt(), player.draw.choice((0.1, 0.3, 0.5))
    renewals = [Renewal(task_id=task, token=token, usage={"usd": usd})]
    return lambda: player.engine.work.renew.submit(renewals)


def raise_budget(player: Player) -> Submit:
    run, more = player.run(), player.draw.choice(({"add_usd": 0.5}, {"add_attempts": 2}))
    return lambda: player.engine.runs.resume.submit(run, **more)


def expire(player: Player) -> Submit:
    return player.engine.runs.expire.submit


def start_planning(player: Player) -> Submit:
    task = player.lone_task()
    return lambda: player.engine.tasks.start_planning.submit(task)


def add_child(player: Player) -> Submit:
    new = NewTask(title="child", parent=player.lone_task(), enqueue=False, retry=ONCE)
    return lambda: player.engine.tasks.create.submit(new)


def finalize(player: Player) -> Submit:
    task = player.lone_task()
    return lambda: player.engine.tasks.finalize_plan.submit(task)


def record(player: Player) -> Submit:
    (task, token), name = player.attempt(), player.draw.choice(("one", "two"))
    value = player.draw.randrange(9)
    return lambda: player.engine.work.record_effect.submit(task, token, name, value)


def suspend(player: Player) -> Submit:
    task, token = player.attempt()
    target = player.draw.choice((player.run, player.task))()
    waits = (
        WakeCondition(until=player.later()),
        WakeCondition(children=True),
        WakeCondition(signals=("go",), target=target, until=player.later()),
        WakeCondition(signals=("go", "stop"), target=target, children=True),
    )
    wait = player.draw.choice(waits)
    return lambda: player.engine.work.suspend.submit(task, token, wait)


def send(player: Player) -> Submit:
    target, key = player.draw.choice((player.run, player.task))(), player.draw.choice((None, "k"))
    return lambda: player.engine.signals.send.submit(target, "go", 1, key=key)


def take(player: Player) -> Submit:
    (task, token), target = player.attempt(), player.draw.choice((player.run, player.task))()
    return lambda: player.engine.work.take_signal.submit(task, token, target, "go", name="wait")


def spawn(player: Player) -> Submit:
    (task, token), count = player.attempt(), player.draw.randrange(3)
    children = [NewTask(title="made", retry=ONCE) for _ in range(count)]
    return lambda: player.engine.work.spawn.submit(task, token, children, name="map")


_NAMED = (
    *(begin, judge, tell_a_list, approve, reject, ask, answer, retry_story_from, start_planning),
    *(add_child, finalize, record, suspend, send, take, spawn, tell_usage, raise_budget, expire),
)
ALL: dict[str, Kind] = REPERTOIRE | {each.__name__: each for each in _NAMED}
_OFTEN = {"begin": 5, "claim": 12, "judge": 8, "tell_a_list": 8, "complete": 3, "approve": 4}
_SELDOM = {"task cancel", "run cancel", "run pause", "task reset", "hold_run", "start", "create"}
WEIGHTS = [_OFTEN.get(name, 1) * 2 - (name in _SELDOM) for name in ALL]
