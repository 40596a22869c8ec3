"""Tasks in a folder of one machine are for the workers of that machine alone."""

from __future__ import annotations

import pytest

from holdfast import Holdfast
from holdfast.engine.engine import Engine, engine_of
from holdfast.engine.input.host_tags import find_host_tag, is_folder, make_host_tag, name_own_host
from holdfast.model.run import NewRun
from holdfast.model.task import Task
from tests.contract.engine.read.test_step_texts import read
from tests.race.racers import eventually

FLOW = """
name: w
input: {repo: string}
workspace: "{{ input.repo }}"
agents: {junior: {command: [a], tags: [gpu]}, senior: {command: [b], tags: [big]}}
steps:
  - {id: plan, agent: junior, on_failure: {escalate: senior}, max_attempts: 1}
  - {id: tell, run: [tell], workspace: none}
  - id: build
    for_each: "{{ steps.plan.stories }}"
    parallel: 2
    steps: [{id: write, run: [write]}]
  - {id: merge, merge: main}
"""
AGENTS = ["default", "junior", "senior"]
HERE = make_host_tag()


def started(engine: Engine, repo: str = "/work/shop", host: str | None = None) -> dict[str, Task]:
    run = engine.runs.start(NewRun(workflow=read(FLOW), input={"repo": repo}, host=host))
    return {str(task.step): task for task in engine.runs.tasks(run.id)}


def test_the_steps_in_a_folder_have_the_tag_of_its_machine(engine: Engine) -> None:
    tasks = started(engine)
    assert tasks["plan"].tags == ("gpu", HERE)
    assert tasks["merge"].tags == (HERE,)
    assert tasks["tell"].tags == ()
    assert engine.work.claim("me", agents=AGENTS, tags=["gpu"]) == []
    assert engine.work.claim("me", agents=AGENTS, tags=["gpu", "host:elsewhere"]) == []
    (plan,) = engine.work.claim("me", agents=AGENTS, tags=["gpu", HERE])
    assert engine.work.complete(plan.task_id, plan.token, {"stories": ["one"]}).ok
    (tell,) = engine.work.claim("me", agents=AGENTS)
    assert engine.work.complete(tell.task_id, tell.token).ok
    assert engine.work.claim("me", agents=AGENTS) == []
    (write,) = engine.work.claim("me", agents=AGENTS, tags=[HERE])
    assert write.step == "write"
    assert engine.work.complete(write.task_id, write.token, {}).ok
    (land,) = engine.work.claim("me", agents=AGENTS, tags=[HERE])
    assert land.step == "build:land"


def test_a_run_may_name_the_machine_of_its_folder(engine: Engine) -> None:
    assert started(engine, host="laptop")["merge"].tags == ("host:laptop",)
    why = engine.why(started(engine, host="laptop")["plan"].id)
    assert "host:laptop" in str(why)


def test_a_step_that_is_handed_over_stays_on_its_machine(engine: Engine) -> None:
    started(engine)
    (plan,) = engine.work.claim("me", agents=AGENTS, tags=["gpu", HERE])
    assert engine.work.fail(plan.task_id, plan.token, "no", retryable=False).ok
    assert engine.tasks.get(plan.task_id).tags == ("big", HERE)


@pytest.mark.parametrize("repo", ["https://h/shop.git", "ssh://h/shop", "git@h:shop.git"])
def test_a_repository_elsewhere_pins_nothing(engine: Engine, repo: str) -> None:
    assert started(engine, repo)["merge"].tags == ()
    assert not is_folder(repo)


@pytest.mark.parametrize("repo", ["/work/shop", ".", "C:\\shop", "file:///work/shop"])
def test_a_folder_is_on_one_machine(repo: str) -> None:
    assert is_folder(repo)


def test_a_worker_offers_the_tag_of_its_machine(store_url: str) -> None:
    with Holdfast(store_url) as hf, hf.worker(concurrency=1):
        engine = engine_of(hf)
        assert eventually(lambda: bool(engine.workers.list()))
        (worker,) = engine.workers.list()
        assert HERE in worker.tags


def test_the_tag_of_a_host_is_found_among_others() -> None:
    assert find_host_tag('["gpu","host:laptop"]') == "host:laptop"
    assert find_host_tag('["gpu"]') is None
    assert make_host_tag(name_own_host()) == HERE
