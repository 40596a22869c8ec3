"""Tasks that name no program, done by the command that a worker has for their agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast import AgentCommand, Holdfast, NewRun, NewTask, RetryPolicy
from holdfast.api.function_registry import FunctionRegistry
from holdfast.definition.project_file import read_project_text
from holdfast.definition.workflow_file import read_workflow_text
from holdfast.engine.engine import engine_of
from holdfast.model.task import Task
from holdfast.service.protocol.attempt_calls import AttemptCalls
from holdfast.service.queries.explanations import explain
from holdfast.worker.files.state_directory import StateDirectory
from holdfast.worker.pool.worker import StoreWorker
from holdfast.worker.pool.worker_options import WorkerOptions
from holdfast.worker.secrets.secrets import Secrets
from holdfast.worker.steps.executors import Executors
from tests.programs_of_agents import StandIn, replay
from tests.race.racers import eventually

PAIR = """
name: pair
agents: {writer: {command: [echo, written]}, thinker: {external: true}}
steps: [{id: think, agent: thinker, prompt: "{{ input.of }}"}, {id: write, agent: writer}]
"""
ONCE = RetryPolicy(max_attempts=1)
SOON = RetryPolicy(backoff=0.01, backoff_max=0.01)


def shell(text: str, *arguments: str, **fields: Any) -> AgentCommand:
    return AgentCommand(command=("sh", "-c", text, *arguments), **fields)


@contextmanager
def working(
    hf: Holdfast, folder: Path, *agents: str, **commands: AgentCommand
) -> Iterator[StateDirectory]:
    """A worker for some agents, or for those that have a command."""
    state = StateDirectory(root=folder / "state")
    executors = Executors(
        engine_of(hf),
        FunctionRegistry(lambda: engine_of(hf)),
        partial(AttemptCalls, engine_of(hf)),
        state=state,
        secrets=Secrets(hf.settings.url, {"KEY": "a secret"}),
        commands=commands,
    )
    options = WorkerOptions(agents=agents or tuple(commands), concurrency=2)
    with StoreWorker(engine_of(hf), executors, options, executors.clean):
        yield state


def ended(hf: Holdfast, task: NewTask | str) -> Task:
    task_id = task if isinstance(task, str) else hf.tasks.create(task).id
    assert eventually(lambda: hf.tasks.get(task_id).terminal), hf.why(task_id)
    return hf.tasks.get(task_id)


@pytest.fixture
def hf(sqlite_url: str) -> Iterator[Holdfast]:
    with Holdfast(sqlite_url) as made:
        yield made


def test_the_parts_of_a_plan_are_done_by_the_commands_of_their_agents_in_its_order(
    store_url: str, tmp_path: Path
) -> None:
    commands = {"dev": shell("cat; echo by dev"), "critic": shell("cat; echo ' by critic'")}
    with Holdfast(store_url) as hf:
        plan = hf.tasks.create(NewTask(title="shed", agent="dev", plan=True)).id
        parts = [
            hf.tasks.create(
                NewTask(title=title, agent=agent, payload=payload, parent=plan, enqueue=False)
            ).id
            for title, agent, payload in (
                ("walls", "default", {"prompt": "Build {{ four }} walls.\n"}),
                ("look", "critic", None),
                ("roof", "dev", "Build a roof.\n"),
            )
        ]
        hf.tasks.finalize_plan(plan)
        with working(hf, tmp_path, **commands) as state:
            assert ended(hf, plan).status == "done", hf.why(plan)
        assert hf.doctor().ok
        logs = [state.log(each, 1).path.read_text() for each in parts]
        assert logs == [
            "Build {{ four }} walls.\nby dev\n",
            "look by critic\n",
            "Build a roof.\nby dev\n",
        ]
        started = [hf.tasks.get(each).started_at for each in parts]
        assert started == sorted(started, key=lambda at: at or 0)


def test_a_command_is_given_its_prompt_where_it_says_its_variables_and_its_files(
    hf: Holdfast, tmp_path: Path
) -> None:
    text = (
        'cat "$HOLDFAST_INPUT" >&2; printf "{\\"got\\": \\"$1 $2 $TOKEN\\"}" > "$HOLDFAST_OUTPUT"'
    )
    given = ("sh", "{{ prompt }}", "{{ attempt }}")
    dev = shell(text, *given, env={"TOKEN": "{{ secret.KEY }}"}, cwd=str(tmp_path))
    with working(hf, tmp_path, dev=dev, pwd=shell("pwd", cwd=str(tmp_path))) as state:
        payload = {"prompt": "Go", "deep": [1]}
        done = ended(hf, NewTask(title="x", agent="dev", payload=payload))
        assert done.output == {"got": "Go 1 [secret KEY]"}
        read = json.loads(state.log(done.id, 1).path.read_text())
        place = ended(hf, NewTask(title="x", agent="pwd")).id
        assert state.log(place, 1).path.read_text() == f"{tmp_path}\n"
        assert (read["payload"], read["prompt"]) == (payload, "Go")


def test_what_was_said_about_the_work_comes_with_the_prompt(hf: Holdfast, tmp_path: Path) -> None:
    with working(hf, tmp_path, dev=shell("cat")) as state:
        done = ended(hf, NewTask(title="write", agent="dev"))
        assert hf.tasks.follow_up(done.id, "in verse").ok
        assert ended(hf, done.id).attempt == 2
        text = state.log(done.id, 2).path.read_text()
        assert text.splitlines() == [
            "write",
            "",
            "This was said about the work so far:",
            "",
            "in verse",
        ]


def test_an_agent_without_a_command_is_left_to_those_who_claim(
    hf: Holdfast, tmp_path: Path
) -> None:
    with working(hf, tmp_path, "dev", "critic", dev=shell("cat")):
        left = hf.tasks.create(NewTask(title="look", agent="critic", priority=9)).id
        assert ended(hf, NewTask(title="build", agent="dev")).status == "done"
        assert (hf.tasks.get(left).state, hf.tasks.get(left).attempt) == ("ready", 0)
        (got,) = hf.work.claim("anybody", agents=["critic"])
        assert hf.work.complete(got.task_id, got.token, "looked").ok


def test_a_worker_for_every_agent_does_what_it_has_a_command_for(
    store_url: str, tmp_path: Path
) -> None:
    with Holdfast(store_url) as hf:
        given = {"of": '{"a": "shed"}'}
        run = hf.runs.start(NewRun(workflow=read_workflow_text(PAIR), input=given)).id
        with working(hf, tmp_path, "*", thinker=shell("cat"), dev=shell("cat")):
            assert ended(hf, NewTask(title="build", agent="dev")).status == "done"
            assert eventually(lambda: hf.runs.get(run).terminal), hf.why(run)
            tasks = {each.step: each for each in hf.runs.tasks(run)}
        assert tasks["think"].output == {"a": "shed"}
        assert tasks["write"].status == "done"


def test_a_command_that_takes_too_long_fails_its_attempt(hf: Holdfast, tmp_path: Path) -> None:
    with working(hf, tmp_path, dev=shell("sleep 60", timeout=0.05)):
        late = ended(hf, NewTask(title="wait", agent="dev", retry=ONCE))
        assert late.error["message"] == "ran longer than 0.05 s"
        # The task's own limit goes before that of its agent.
        own = NewTask(title="wait", agent="dev", retry=ONCE, timeout=0.1)
        assert ended(hf, own).error["message"] == "ran longer than 0.1 s"


def test_a_question_of_a_command_waits_for_a_person(hf: Holdfast, tmp_path: Path) -> None:
    asks = 'grep -q "the blue one" && echo "{}" || echo "{\\"question\\": \\"Which?\\"}"'
    with working(hf, tmp_path, dev=shell(asks)):
        task = hf.tasks.create(NewTask(title="paint", agent="dev")).id
        assert eventually(lambda: hf.tasks.get(task).question == "Which?")
        assert hf.tasks.answer(task, "the blue one").ok
        assert ended(hf, task).status == "done"


def test_why_counts_the_workers_that_have_a_command_for_the_agent(
    hf: Holdfast, tmp_path: Path
) -> None:
    task = hf.tasks.create(NewTask(title="build", agent="dev", scheduled_for="1h")).id

    def served() -> dict[str, Any]:
        clauses = explain(engine_of(hf), task)["clauses"]
        return next(each for each in clauses if each["name"] == "worker")

    with working(hf, tmp_path, "dev", critic=shell("cat")):
        told = served()
        assert not told["ok"]
        assert (
            "it waits for a worker with a command for agent 'dev' in its holdfast.yaml"
            in told["detail"]
        )
    with working(hf, tmp_path, "*", dev=shell("cat")):
        assert served() == {
            "name": "worker",
            "ok": True,
            "detail": '1 of 1 live worker serves "dev"',
        }


OWN = """
agents:
  dev: {use: mine, model: large, env: {COLOUR: none}}
presets:
  mine:
    command: [./mine, --json]
    access: {edit: [-w]}
    model: [-m, "{}"]
    session: [--continue, "{}"]
    stream: claude
"""


def test_a_preset_of_the_project_is_run_and_its_stream_read_like_that_of_another(
    hf: Holdfast, tmp_path: Path
) -> None:
    stand_in = StandIn(tmp_path, "mine", replay("claude-ok"), replay("claude-schema"))
    settings = read_project_text(OWN, folder=tmp_path / "bin")
    with working(hf, tmp_path, **settings.commands):
        task = ended(hf, NewTask(title="Create it", agent="dev", payload={"prompt": "Create it"}))
    assert (task.status, task.output) == ("done", {"text": "Done: wrote hello.txt."})
    assert stand_in.arguments() == ["--json", "-w", "-m", "large"]
    assert stand_in.input() == "Create it"
    assert stand_in.environment()["COLOUR"] == "none"
    (attempt,) = hf.tasks.attempts(task.id)
    assert attempt.usage["preset"] == "mine"
    assert attempt.usage["output_tokens"] == 50
