"""A worker's token acts on what it leased: each call and tool, against what another token holds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from holdfast.engine.engine import engine_of
from holdfast.mcp.worker_tools import WorkerTools
from holdfast.model.token import Role
from holdfast.server.application import TABLES
from tests.contract.server.local_server import Served
from tests.contract.server.routes.test_mcp_tools import enter
from tests.race.racers import eventually

HELD = "/claims/{task_id}"
# What each call sends, besides the token of an attempt; the first of them without a task's id in
# their path name it in their body.
CALLS: dict[str, dict[str, Any]] = {
    "/claims": {"worker": "mallory", "task_id": "{task}"},
    "/claims/renew": {"leases": [{"task_id": "{task}", "token": "{token}", "progress": "mine"}]},
    "/claims/watch": {"leases": [{"task_id": "{task}", "token": "{token}"}]},
    "/claims/complete": {"results": [{"task_id": "{task}", "token": "{token}", "output": 1}]},
    f"{HELD}/complete": {"output": 1},
    f"{HELD}/fail": {"error": "broken"},
    f"{HELD}/release": {},
    f"{HELD}/ask": {"question": "Why?"},
    f"{HELD}/line": {"base": "0" * 40},
    f"{HELD}/aside": {"attempt": 1, "base": "0" * 40, "sha": "a" * 40},
    f"{HELD}/stop": {"ended": 1},
    f"{HELD}/guard": {},
    f"{HELD}/logs": {"chunk": "mine\n"},
    f"{HELD}/effects": {"name": "mail", "value": 1},
    f"{HELD}/artifacts": {"name": "a.txt", "content": "mine"},
    f"{HELD}/children": {"tasks": [{"title": "mine", "agent": "alpha"}]},
}
# The same path with other fields leads elsewhere.
MORE = [
    (f"{HELD}/fail", {"limit_until": "1h"}),
    (f"{HELD}/release", {"wait_for": "go"}),
    (f"{HELD}/release", {"until": "1h", "note": {"name": "n", "value": 1}}),
    (f"{HELD}/ask", {"question": "Why?", "note": {"name": "n", "value": 1}}),
    (f"{HELD}/effects", {}),
]
# Calls about no task, each with a test of its own here or a look at nothing.
ABOUT_NO_TASK = {"/claims/leave", "/claims/lines", "/mcp", "/enter", "/session"}
ABOUT_NO_TASK |= {"/healthz", "/readyz"}
ABOUT_NO_TASK |= {"/openapi.json"}
TOOLS: dict[str, dict[str, Any]] = {
    "renew": {"progress": "mine"},
    "guard": {},
    "complete": {"output": 1},
    "fail": {"error": "broken"},
    "release": {},
    "ask": {"question": "Why?"},
}


class Story:
    """A task of agent `beta` that another token holds, and one of `alpha` that ours holds."""

    def __init__(self, server: Served) -> None:
        self.server = server
        self.tokens = {agent: self.make(agent) for agent in ("alpha", "beta")}
        self.alpha, self.beta = (server.client(each) for each in self.tokens.values())
        self.own, self.its = self.lease(self.alpha, "alpha"), self.lease(self.beta, "beta")
        self.task = self.its["task"]["id"]
        self.wake_by_signal()

    def make(self, agent: str) -> str:
        body = {"name": f"{agent}-worker", "role": "worker", "agents": [agent]}
        return str(self.server().post("/tokens", json=body).json()["token"])

    def wake_by_signal(self) -> None:
        """Have a signal wait for whoever holds the task of `beta`: it is taken once."""
        body = {"token": self.its["token"], "wait_for": "go"}
        assert self.beta.post(f"/claims/{self.task}/release", json=body).status_code == 200
        engine_of(self.server.hf).signals.send(self.task, "go", "it is time")
        asked = {"worker": "beta", "request_id": "woken", "task_id": self.task}
        (self.its,) = self.beta.post("/claims", json=asked).json()["assignments"]

    def lease(self, client: httpx.Client, agent: str) -> dict[str, Any]:
        self.server.add(f"for {agent}", agent=agent)
        got = client.post("/claims", json={"worker": agent, "request_id": "r"})
        return dict(got.json()["assignments"][0])

    def seen(self) -> list[Any]:
        """All that there is of the task of `beta`, and of everything else but what is ours."""
        hf, task = self.server.hf, self.task
        folder = self.server.home
        files = sorted(str(each) for each in folder.rglob("*") if task in str(each))
        return [
            hf.tasks.get(task),
            hf.tasks.attempts(task),
            hf.tasks.events(task),
            engine_of(hf).work.effects(task),
            len(self.server().get("/tasks").json()["items"]),
            files,
        ]

    def filled(self, value: Any, token: str) -> Any:  # noqa: ANN401 - JSON is any value
        match value:
            case str():
                return value.replace("{task}", self.task).replace("{token}", token)
            case dict():
                return {name: self.filled(each, token) for name, each in value.items()}
            case list():
                return [self.filled(each, token) for each in value]
            case _:
                return value


@pytest.fixture
def story(quick_server: Served) -> Iterator[Story]:
    made = Story(quick_server)
    yield made
    made.alpha.close()
    made.beta.close()


def test_every_call_that_a_worker_may_make_is_among_those_that_are_tried() -> None:
    entries = [entry for table in TABLES for entry in table.entries if Role.WORKER in entry.roles]
    paths = {entry.path.removeprefix("/api/v1") for entry in entries}
    assert paths == {*CALLS} | ABOUT_NO_TASK
    assert {*WorkerTools.list_names()} == {*TOOLS} | {"claim"}


def test_no_call_of_a_narrowed_token_touches_a_task_of_another_agent(story: Story) -> None:
    before = story.seen()
    for token in (story.own["token"], story.its["token"]):
        for path, body in [*CALLS.items(), *MORE]:
            held = {"token": token} if "task_id" in path else {}
            place = path.replace("{task_id}", story.task)
            told = story.alpha.post(place, json={**held, **story.filled(body, token)})
            assert told.status_code in {403, 409}, (path, told.text)
            assert story.seen() == before, path
    claimed = story.alpha.post("/claims", json={"worker": "alpha", "agents": ["alpha", "beta"]})
    assert (claimed.status_code, claimed.json()["code"]) == (403, "forbidden")
    ready = story.server.add("ready", agent="beta")["id"]
    claimed = story.alpha.post("/claims", json={"worker": "alpha", "task_id": ready})
    assert (claimed.status_code, claimed.json()["code"]) == (403, "forbidden")
    assert story.server.hf.tasks.get(ready).status == "queued"
    done = story.beta.post(f"/claims/{story.task}/complete", json={"token": story.its["token"]})
    assert done.status_code == 200


def test_no_tool_of_a_narrowed_token_touches_a_task_of_another_agent(story: Story) -> None:
    before = story.seen()

    async def play() -> None:
        async with enter(story.server, story.tokens["alpha"]) as alpha:
            for token in (story.own["token"], story.its["token"]):
                for name, more in TOOLS.items():
                    said = await alpha.refused(name, task_id=story.task, token=token, **more)
                    assert said.startswith("forbidden: "), (name, said)
            for more in ({"task_id": story.task}, {"agents": ["beta"]}):
                assert await alpha.refused("claim", **more)

    asyncio.run(asyncio.wait_for(play(), 60))
    assert story.seen() == before


def test_a_tool_of_a_workers_token_tells_nothing_of_tasks_that_are_named_by_less_than_an_id(
    story: Story,
) -> None:
    server = story.server
    step = {"id": "hidden", "agent": "beta", "prompt": "x"}
    flow = {"name": "quiet", "steps": [step], "agents": {"beta": {"external": True}}}
    assert server().post("/workflows", json=flow).status_code == 201
    run = server().post("/runs", json={"workflow": "quiet"}).json()["id"]
    names = ("t_0", "r_0", run, f"{run}:hidden", f"{run}:no", "@last", "@last:no", "t_" + "0" * 20)

    async def play(token: str) -> list[str]:
        async with enter(server, token) as worker:
            calls = [worker.client.call_tool("claim", {"task_id": each}) for each in names]
            return [str((await each).content) for each in calls]

    for token in (story.tokens["alpha"], server.tokens["worker"]):
        for name, said in zip(names, asyncio.run(asyncio.wait_for(play(token), 60)), strict=True):
            others = said.replace(name, "")
            assert not [each for each in ("hidden", "for beta", "quiet", "t_0") if each in others]
            assert "r_" not in others, said
    assert len(story.beta.post("/claims", json={"worker": "b"}).json()["assignments"]) == 1


def test_without_the_token_of_the_attempt_another_token_for_the_same_agent_is_refused(
    story: Story,
) -> None:
    before = story.seen()
    with story.server.client(story.server.tokens["worker"]) as other:
        for path, body in [*CALLS.items(), *MORE]:
            token = story.own["token"]
            held = {"token": token} if "task_id" in path else {}
            place = path.replace("{task_id}", story.task)
            told = other.post(place, json={**held, **story.filled(body, token)})
            results = told.json().get("leases", told.json().get("results", ()))
            refused = told.status_code == 409 or not any(each["ok"] for each in results)
            assert refused, (path, told.text)
            assert story.seen() == before, path
        again = other.post("/claims", json={"worker": "beta", "request_id": "woken"}).json()
        assert again["assignments"] == []


def children(story: Story, client: httpx.Client, **fields: Any) -> httpx.Response:
    held = story.own if client is story.alpha else story.its
    body = {"token": held["token"], "name": str(fields), "tasks": [{"title": "c", **fields}]}
    return client.post(f"/claims/{held['task']['id']}/children", json=body)


def test_children_made_with_a_workers_token_stay_within_its_agents_and_name_no_function(
    story: Story,
) -> None:
    alpha, before = story.alpha, len(story.server().get("/tasks").json()["items"])
    for fields in ({"agent": "default"}, {"agent": "beta"}, {"step": "wipe"}):
        told = children(story, alpha, **fields)
        assert (told.status_code, told.json()["code"]) == (403, "forbidden"), told.text
    mixed = [{"title": "good"}, {"title": "bad", "agent": "beta"}]
    body = {"token": story.own["token"], "tasks": mixed}
    place = f"/claims/{story.own['task']['id']}/children"
    assert alpha.post(place, json=body).status_code == 403
    assert len(story.server().get("/tasks").json()["items"]) == before
    assert children(story, alpha).json()["items"][0]["agent"] == "alpha"
    with story.server.client(story.server.tokens["worker"]) as wide:
        (got,) = wide.post(
            "/claims", json={"worker": "w", "task_id": story.server.add(agent="gamma")["id"]}
        ).json()["assignments"]
        place, held = f"/claims/{got['task']['id']}/children", {"token": got["token"]}
        step = wide.post(place, json={**held, "tasks": [{"title": "c", "step": "wipe"}]})
        assert step.status_code == 403
        other = wide.post(place, json={**held, "tasks": [{"title": "c", "agent": "delta"}]})
        assert (other.status_code, other.json()["items"][0]["agent"]) == (201, "delta")
        admin = story.server().post(
            place, json={**held, "name": "a", "tasks": [{"title": "c", "step": "wipe"}]}
        )
        assert admin.json()["items"][0]["agent"] == "gamma"


def test_an_effect_that_names_other_tasks_shows_none_of_them_as_children(story: Story) -> None:
    held, task = {"token": story.own["token"]}, story.own["task"]["id"]
    effect = {**held, "name": "peek", "value": [story.task]}
    assert story.alpha.post(f"/claims/{task}/effects", json=effect).status_code == 200
    told = story.alpha.post(f"/claims/{task}/children", json={**held, "name": "peek", "tasks": []})
    assert (told.status_code, told.json()["items"]) == (200, [])


def listed(story: Story) -> dict[str, list[str]]:
    items = story.server().get("/workers").json()["items"]
    return {each["name"]: each["agents"] for each in items}


def test_a_worker_is_unlisted_and_kept_alive_by_the_token_alone_that_brought_it(
    story: Story,
) -> None:
    assert eventually(lambda: {"alpha", "beta"} <= listed(story).keys())
    with story.server.hf.worker(name="local", agents=["local"]):
        assert eventually(lambda: "local" in listed(story))
        (local,) = [e for e in engine_of(story.server.hf).workers.list() if e.name == "local"]
        for name, process in (("beta", None), ("local", local.process), ("local", None)):
            gone = story.alpha.post("/claims/leave", json={"worker": name, "process": process})
            assert gone.json() == {"ok": True, "repeated": True}
        assert {"alpha", "beta", "local"} <= listed(story).keys()
    assert story.server("operator").post("/workers/beta/drain").status_code == 200
    visits = story.server.application.server_state.remote_presence
    assert visits.note_renewal("beta", token="beta-worker") is None
    for body in ({"worker": "beta"}, {"worker": "beta", "agents": ["alpha"]}):
        assert "told" not in story.alpha.post("/claims", json=body).json()
    kept = story.alpha.post("/claims/renew", json={"worker": "beta", "leases": []})
    assert kept.json() == {"leases": []}
    assert listed(story)["beta"] == ["beta"]
    left = story.beta.post("/claims/leave", json={"worker": "beta"})
    assert left.json() == {"ok": True, "repeated": False}
    assert "beta" not in listed(story)
