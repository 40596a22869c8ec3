"""Agent commands: the commands of a worker's own agents, for tasks that name no program.

Such a task has its prompt in its payload, or else is its title. It is no template: only the command
has variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.model.frozen_record import make_record
from holdfast.model.task import Assignment
from holdfast.model.verdict import describe_feedback
from holdfast.model.worker import serves_agent
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.prompt_feedback import add_feedback
from holdfast.model.workflow.step_template import render_work
from holdfast.settings import AgentCommand, AgentCommands, OwnPreset


def list_equipped_agents(commands: AgentCommands, agents: Sequence[str]) -> tuple[str, ...]:
    """Those of some agents that have a command."""
    return tuple(name for name in commands if serves_agent(agents, name))


def list_own_presets(commands: AgentCommands) -> dict[str, OwnPreset]:
    """The presets by name that the agents bring themselves."""
    return {each.own.name: each.own for each in commands.values() if each.own is not None}


def equip_assignment(commands: AgentCommands, assignment: Assignment) -> Assignment:
    """The assignment with the command of its agent, if it names no function and no program."""
    work = assignment.work
    bare = assignment.step is None if work is None else work.external
    if not bare or not commands:
        return assignment
    command = commands.get(assignment.task.agent)
    if command is None:
        return assignment
    timeout = command.timeout if assignment.timeout is None else assignment.timeout
    equipped = {"work": _make_work(command, assignment), "timeout": timeout}
    return make_record(Assignment, {**vars(assignment), **equipped})


def _make_work(command: AgentCommand, assignment: Assignment) -> StepWork:
    said = assignment.feedback
    variables = {
        "feedback": describe_feedback("" if said is None else said),
        "attempt": assignment.attempt,
    }
    made = StepWork(
        command=command.command or None,
        use=command.use,
        env=command.env,
        cwd=command.cwd,
        idle_timeout=command.idle_timeout,
    )
    rendered = render_work(made, variables)
    step = assignment.work
    if step is None:
        return replace(rendered, prompt=_write_prompt(assignment))
    # What the step says goes before what its agent does.
    later = {
        name: pieces
        for name, pieces in rendered.later.items()
        if name.removeprefix("env.") not in step.env
        if name != "cwd" or step.cwd is None
    }
    return replace(
        step,
        command=rendered.command,
        use=rendered.use,
        env={**rendered.env, **step.env},
        cwd=rendered.cwd if step.cwd is None else step.cwd,
        idle_timeout=rendered.idle_timeout,
        later={**later, **step.later},
    )


def _write_prompt(assignment: Assignment) -> str:
    """The prompt of a task, followed by the feedback on its earlier attempts."""
    prompt = _read_prompt(assignment.payload) or assignment.task.title
    return add_feedback(prompt, assignment.feedback)


def _read_prompt(payload: Any) -> str | None:  # noqa: ANN401 - JSON is any value
    said = payload.get("prompt") if isinstance(payload, dict) else payload
    return said if isinstance(said, str) and said.strip() else None
