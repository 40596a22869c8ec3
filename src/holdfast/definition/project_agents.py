"""Agents of a project: the commands in `agents:` of `holdfast.yaml`, and the mistakes in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.definition import agent_use
from holdfast.definition.findings import Findings, UnreadableValue
from holdfast.definition.keys import AGENT, Key, Section
from holdfast.definition.nodes import Fields, FileNode, Items, Scalar, describe_node
from holdfast.definition.values import read_name, read_section
from holdfast.errors import InvalidInput
from holdfast.model.workflow.template import parse_template
from holdfast.presets.catalogue import PRESETS
from holdfast.presets.own_preset import make_own_preset
from holdfast.settings import AgentCommand, AgentUse, OwnPreset

_COMMAND_KEYS = ("command", "env", "cwd", "timeout", "idle_timeout", "use", *agent_use.KEYS)
# What these keys say in a workflow file, a task without one says itself.
_TASK_KEYS = ("tags", "max_attempts", "max_lost", "backoff", "backoff_max")
_OF_THE_TASK = "for now each task says it, as in `holdfast task add --max-attempts 2 --tag gpu`"
_LEFT_OUT = "leave out an agent whose tasks others pull"
PROJECT_AGENT = Section(
    name="agent",
    about="The command of an agent, by which a worker does its tasks.",
    keys=(
        *(AGENT.known[name] for name in _COMMAND_KEYS),
        *(Key(name=name, kind="any", about=_OF_THE_TASK, supported=False) for name in _TASK_KEYS),
        Key(name="external", kind="any", about=_LEFT_OUT, supported=False),
    ),
)
# The variables that texts may name: what only a run knows is not among them.
_KNOWN = {
    "command": ("prompt", "feedback", "attempt", "env"),
    "env": ("feedback", "attempt", "env", "secret"),
    "cwd": ("attempt", "env"),
}
_NAMED = ("env", "secret")


def read_project_agents(
    node: FileNode, folder: Path, findings: Findings, own: Mapping[str, OwnPreset]
) -> dict[str, AgentCommand]:
    """The commands by their agents; paths of programs and folders start from `folder`."""
    presets = {**PRESETS, **{name: make_own_preset(each) for name, each in own.items()}}
    if not isinstance(node, Fields):
        findings.add(node.mark, f"agents must be a mapping of names, not {describe_node(node)}")
        return {}
    found: dict[str, AgentCommand] = {}
    for name, mark, inner in node.items():
        try:
            read_name(Scalar(mark=mark, end=mark.line, value=name), findings)
        except UnreadableValue as error:
            findings.add(error.mark, f"agent: {error.message}", error.hint)
        said = read_section(PROJECT_AGENT, inner, findings)
        if not isinstance(inner, Fields):
            continue
        _check_texts(name, inner, findings)
        use = agent_use.read_agent_use(name, said, inner, findings, presets)
        if {"command", "use"} <= inner.nodes.keys():
            message = f"agent {name!r} uses a preset and has a command; it can be one of them"
            findings.add(inner.keys["use"], message)
        elif "command" in said or use is not None:
            preset = None if use is None else own.get(use.preset)
            found[name] = _make_command(said, folder, use, preset)
        elif not {"command", "use", "external"} & inner.nodes.keys():
            hint = "give it one, as in command: [./agent.sh], or a preset, as in use: claude"
            findings.add(inner.mark, f"agent {name!r} has no command", hint)
    return found


def _make_command(
    said: dict[str, Any], folder: Path, use: AgentUse | None, own: OwnPreset | None
) -> AgentCommand:
    cwd = said.get("cwd")
    if cwd is not None and not cwd.startswith("{{"):
        cwd = str(folder / cwd)
    given = {name: said[name] for name in ("env", "timeout", "idle_timeout") if name in said}
    if own is not None:
        own = replace(own, command=_place_program(own.command, folder))
    command = _place_program(said.get("command", ()), folder)
    return AgentCommand(command=command, use=use, own=own, cwd=cwd, **given)


def _place_program(command: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    if not command or "/" not in command[0] or "{{" in command[0]:
        return command
    return (str(folder / command[0]), *command[1:])


def _check_texts(name: str, node: Fields, findings: Findings) -> None:
    """Note each text that names a variable which tasks without a workflow do not have."""
    for key, known in _KNOWN.items():
        around = node.nodes.get(key)
        for each in _list_scalars(around):
            if isinstance(each.value, str):
                _check_text(f"agent {name!r}: {key}", each, known, findings)


def _list_scalars(node: FileNode | None) -> list[Scalar]:
    if isinstance(node, Fields):
        inside = list(node.nodes.values())
    else:
        inside = list(node.nodes) if isinstance(node, Items) else [node] if node else []
    return [each for each in inside if isinstance(each, Scalar)]


def _check_text(where: str, node: Scalar, known: tuple[str, ...], findings: Findings) -> None:
    try:
        references = parse_template("text", str(node.value)).references
    except InvalidInput as error:
        findings.add(node.mark, f"{where}: {error.reason}")
        return
    for reference in references:
        named = len(reference.parts) == len(("env", "NAME"))
        if reference.root not in known:
            message = f"{reference.root} is not known there; one of {', '.join(known)} is"
            findings.add(findings.locate_word(node, str(reference)), f"{where}: {message}")
        elif named != (reference.root in _NAMED):
            right = f"{reference.root}.NAME" if reference.root in _NAMED else reference.root
            message = f"write {{{{ {right} }}}}, not {reference}"
            findings.add(findings.locate_word(node, str(reference)), f"{where}: {message}")
