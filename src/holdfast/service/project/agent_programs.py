"""Agent programs: the programs of presets on this machine, and the command lines of agents."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.flaw import suggest
from holdfast.model.workflow.graph import Workflow
from holdfast.model.workflow.step import Step, all_steps
from holdfast.presets.catalogue import PRESETS
from holdfast.presets.own_preset import make_own_preset
from holdfast.presets.preset import Preset
from holdfast.settings import AgentCommands, AgentUse

# A program that is asked whether somebody is logged in may look for a newer version first.
STATUS_SECONDS = 10.0
PROMPT, WRITTEN_PROMPT = "PROMPT", "{{ prompt }}"


@dataclass(frozen=True, kw_only=True, slots=True)
class _ChosenAgent:
    command: tuple[str, ...]
    use: AgentUse | None
    preset: Preset | None
    env: Mapping[str, str]


def list_installed_presets() -> list[str]:
    """The well-known presets whose programs are on this machine."""
    return [name for name, preset in PRESETS.items() if shutil.which(preset.program[0])]


def describe_agent(
    name: str, commands: AgentCommands, workflow: Workflow | None = None
) -> dict[str, Any]:
    """The command line of an agent of the project, or of a workflow, with where its prompt goes."""
    known = _list_agents(commands) if workflow is None else _list_agents_of(workflow)
    chosen = known.get(name)
    if chosen is None:
        hint = suggest(name, known) or f"there are {', '.join(known) or 'none'}"
        raise InvalidInput("agent", f"no agent with a command or a preset is {name!r}; {hint}")
    told: dict[str, Any] = {"agent": name, "env": dict(chosen.env)}
    if chosen.use is None or chosen.preset is None:
        command = [each.replace(WRITTEN_PROMPT, PROMPT) for each in chosen.command]
        place = "argument" if command != list(chosen.command) else "input"
        return {**told, "command": command, "prompt": place}
    preset, use = chosen.preset, chosen.use
    variables = {**preset.variables, **preset.access[use.access].variables, **chosen.env}
    return {
        **told,
        "preset": preset.name,
        "program": preset.title,
        "access": use.access,
        "account": use.account or preset.name,
        "command": list(preset.make_command(use, PROMPT)),
        "env": variables,
        "prompt": "argument" if preset.takes_prompt else "input",
        "sessions": preset.session is not None,
        "installed": shutil.which(preset.program[0]) is not None,
        "untried": preset.untried,
        "notes": list(preset.notes),
    }


def _list_agents(commands: AgentCommands) -> dict[str, _ChosenAgent]:
    found = {}
    for name, each in commands.items():
        preset = None if each.use is None else PRESETS.get(each.use.preset)
        if each.own is not None:
            preset = make_own_preset(each.own)
        found[name] = _ChosenAgent(command=each.command, use=each.use, preset=preset, env=each.env)
    return found


def _list_agents_of(workflow: Workflow) -> dict[str, _ChosenAgent]:
    return {
        agent: _ChosenAgent(
            command=work.command or (),
            use=work.use,
            preset=None if work.use is None else PRESETS.get(work.use.preset),
            env=work.env,
        )
        for agent, work in find_work_of_agents(all_steps(workflow.steps))
        if work.runs_program
    }


def find_work_of_agents(steps: Iterable[Step]) -> Iterator[tuple[str, StepWork]]:
    """The work of each agent of some steps, that of those too to whom a step may be handed."""
    for step in steps:
        for doer in (step.handed_over, step):
            if doer is not None and doer.work is not None:
                yield doer.agent, doer.work


def list_used_presets(commands: AgentCommands, steps: Iterable[Step]) -> dict[str, Preset]:
    """The presets by the agents that use them: those of a project, and of some steps."""
    used = {agent: each.use for agent, each in commands.items()}
    used |= {agent: work.use for agent, work in find_work_of_agents(steps)}
    own = {each.own.name: each.own for each in commands.values() if each.own is not None}
    known = {**PRESETS, **{name: make_own_preset(each) for name, each in own.items()}}
    return {
        agent: known[use.preset]
        for agent, use in used.items()
        if use is not None and use.preset in known
    }


def warn_of_programs(uses: Mapping[str, Preset]) -> list[str]:
    """Warnings about the programs of some agents: missing on this machine, or logged out."""
    agents: dict[str, list[str]] = {}
    for agent, preset in uses.items():
        agents.setdefault(preset.name, []).append(agent)
    presets = {preset.name: preset for preset in uses.values()}
    missing = {name for name, each in presets.items() if not shutil.which(each.program[0])}
    there = [each for name, each in presets.items() if name not in missing]
    with ThreadPoolExecutor(max_workers=max(1, len(there))) as threads:
        answers = dict(
            zip([each.name for each in there], threads.map(_ask_login, there), strict=True)
        )
    told = []
    for name, served in sorted(agents.items()):
        preset, who = presets[name], ", ".join(sorted(served))
        if name in missing:
            how = f"; install it: {preset.install}" if preset.install else ""
            program = preset.program[0]
            told.append(f"agent {who} uses {name}, whose program {program} is not here{how}")
        elif answers[name] is False:
            told.append(f"agent {who} uses {name}, and nobody is logged in; type: {preset.login}")
    return told


def _ask_login(preset: Preset) -> bool | None:
    """Whether somebody is logged in to a program; None where it does not tell."""
    if preset.status is None:
        return None
    try:
        asked = subprocess.run(  # noqa: S603 - the words of a preset
            preset.status,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=STATUS_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return asked.returncode == 0
