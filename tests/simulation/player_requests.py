"""Everything that may be asked of an engine, each with arguments drawn by a player."""

from __future__ import annotations

from typing import Any

from holdfast.engine.core.operation import Sweep
from holdfast.model.run import NewRun
from holdfast.model.task import NewTask, Renewal
from tests.simulation.new_work_requests import ONCE, SHORT, WORKFLOWS
from tests.simulation.seeded_player import LEASES, Kind, Player, Submit

ALONE = ("enqueue", "run_now", "cancel", "reset", "retry", "reopen", "delete")
RUNS_ALONE = ("cancel", "pause", "resume", "retry", "advance")
STEPS = ("plan", "work", "review", "top", "left", "bottom", "one", "two")
AGENTS = (("default",), ("default", "reviewer"))


def create(player: Player) -> Submit:
    new = NewTask(**player.fields(), retry=player.draw.choice((ONCE, SHORT)))
    return lambda: player.engine.tasks.create.submit(new)


def create_many(player: Player) -> Submit:
    new = [NewTask(**player.fields(), retry=SHORT) for _ in range(player.draw.randint(2, 4))]
    return lambda: player.engine.tasks.create_many.submit(new)


def start(player: Player) -> Submit:
    draw = player.draw
    new = NewRun(
        workflow=WORKFLOWS[draw.choice(sorted(WORKFLOWS))],
        key=draw.choice((None, None, None, f"run-{draw.randrange(5)}")),
        input={"given": draw.randrange(3)},
        priority=draw.randint(0, 2),
    )
    return lambda: player.engine.runs.start.submit(new)


def on_task(name: str) -> Kind:
    def submit(player: Player) -> Submit:
        task = player.task()
        return lambda: getattr(player.engine.tasks, name).submit(task)

    return submit


def on_run(name: str) -> Kind:
    def submit(player: Player) -> Submit:
        run = player.run()
        return lambda: getattr(player.engine.runs, name).submit(run)

    return submit


def hold(player: Player) -> Submit:
    task, reason = player.task(), player.draw.choice(("paused", "question", "limit"))
    until = player.later() if reason == "limit" else None
    return lambda: player.engine.tasks.hold.submit(task, reason, until=until)


def unhold(player: Player) -> Submit:
    task, reason = player.task(), player.draw.choice(("paused", "question", "limit"))
    return lambda: player.engine.tasks.unhold.submit(task, reason)


def block(player: Player) -> Submit:
    task, on = player.lone_task(), [player.draw.choice((player.lone_task, player.task))()]
    return lambda: player.engine.tasks.block.submit(task, on)


def unblock(player: Player) -> Submit:
    task, on = player.task(), player.draw.choice((None, [player.task()]))
    return lambda: player.engine.tasks.unblock.submit(task, on)


def edit(player: Player) -> Submit:
    wanted: dict[str, object] = {
        "title": "edited",
        "priority": player.draw.randint(0, 3),
        "payload": {"edited": player.draw.random()},
        "max_attempts": player.draw.randint(1, 3),
        "scheduled_for": player.later(),
    }
    task, names = player.task(), player.draw.sample(sorted(wanted), 2)
    changes = {name: wanted[name] for name in names}
    # A version that has not come yet would be waited for on a clock that stands still.
    version = player.draw.choice((None, None, 1))
    return lambda: player.engine.tasks.edit.submit(task, changes, expected_version=version)


def hold_run(player: Player) -> Submit:
    run = player.run()
    return lambda: player.engine.runs.hold.submit(run, "budget")


def unhold_run(player: Player) -> Submit:
    run = player.run()
    return lambda: player.engine.runs.unhold.submit(run, "budget")


def retry_run_from(player: Player) -> Submit:
    run, step = player.run(), player.draw.choice(STEPS)
    return lambda: player.engine.runs.retry.submit(run, step=step)


def worker(player: Player) -> dict[str, Any]:
    draw = player.draw
    tags = draw.choice(((), ("gpu",)))
    return {"agents": draw.choice(AGENTS), "tags": tags, "lease": draw.choice(LEASES)}


def claim(player: Player) -> Submit:
    count, asking = player.draw.randint(1, 5), worker(player)
    return lambda: player.engine.work.claim.submit("ann", count=count, **asking)


def claim_by_id(player: Player) -> Submit:
    task, asking = player.task(), worker(player)
    return lambda: player.engine.work.claim_by_id.submit(task, "bob", **asking)


def complete(player: Player) -> Submit:
    task, token = player.attempt()
    output = {"made": player.draw.randrange(2)}
    return lambda: player.engine.work.complete.submit(task, token, output, usage={"usd": 0.5})


def fail(player: Player) -> Submit:
    task, token = player.attempt()
    again = player.draw.random() < 0.7
    return lambda: player.engine.work.fail.submit(task, token, "broken", retryable=again)


def release(player: Player) -> Submit:
    (task, token), until = player.attempt(), player.later()
    return lambda: player.engine.work.release.submit(task, token, until=until)


def renew(player: Player) -> Submit:
    task, token = player.attempt()
    renewals = [Renewal(task_id=task, token=token, progress="half", usage={"usd": 0.1})]
    lease = player.draw.choice(LEASES)
    return lambda: player.engine.work.renew.submit(renewals, lease=lease)


def recover(player: Player) -> Submit:
    return player.engine.work.recover.submit


def sweep(player: Player) -> Submit:
    return lambda: player.engine.commits.submit(Sweep())


def acquire_lease(player: Player) -> Submit:
    key = player.draw.choice(("door", "gate"))
    return lambda: player.engine.leases.acquire.submit(key, "ann", ttl=5)


def renew_lease(player: Player) -> Submit:
    key, token = player.lease()
    return lambda: player.engine.leases.renew.submit(key, token, ttl=5)


def release_lease(player: Player) -> Submit:
    key, token = player.lease()
    return lambda: player.engine.leases.release.submit(key, token)


_NAMED = (
    *(create, create_many, start, hold, unhold, block, unblock, edit),
    *(hold_run, unhold_run, retry_run_from, claim, claim_by_id, complete, fail, release, renew),
    *(recover, sweep, acquire_lease, renew_lease, release_lease),
)
REPERTOIRE: dict[str, Kind] = {
    **{each.__name__: each for each in _NAMED},
    **{f"task {name}": on_task(name) for name in ALONE},
    **{f"run {name}": on_run(name) for name in RUNS_ALONE},
}
# Work has to move on for anything else to be interesting.
OFTEN = {"create", "start", "claim", "claim_by_id", "complete", "fail"}
WEIGHTS = [4 if name in OFTEN else 1 for name in REPERTOIRE]
