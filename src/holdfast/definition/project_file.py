"""Project file: reads `holdfast.yaml` into the settings of a project, or into all its mistakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.definition.findings import Findings
from holdfast.definition.keys import Key, Section
from holdfast.definition.nodes import Fields, describe_node, plain_value
from holdfast.definition.own_presets import read_own_presets
from holdfast.definition.project_agents import read_project_agents
from holdfast.definition.text_file import read_nodes, read_text
from holdfast.definition.values import read_section
from holdfast.errors import InvalidInput, InvalidProjectFile
from holdfast.model.units import parse_grace, parse_size
from holdfast.settings import (
    CONNECTIONS,
    LEAST_CONNECTIONS,
    KeepTimes,
    ProjectSettings,
    check_connections,
)

NAME = "holdfast.yaml"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A setting for the page of settings, and the environment variable that overrides it."""

    name: str
    about: str
    default: str
    variable: str = ""


CONCURRENCY = Section(
    name="concurrency",
    about="How many steps a worker runs at once.",
    keys=(
        Key(name="functions", kind="count", about="in a worker of a Python program"),
        Key(name="agents", kind="count", about="in a worker for commands and agents"),
    ),
)
KEEP = Section(
    name="keep",
    about="How long what has ended is kept.",
    keys=(
        Key(name="worktrees", kind="duration", about="worktrees"),
        Key(name="logs", kind="duration", about="logs"),
        Key(name="runs", kind="duration", about="runs"),
    ),
)
PROJECT = Section(
    name="holdfast.yaml",
    about="The settings of a project.",
    keys=(
        Key(name="database", kind="text", about="the store"),
        Key(name="agents", kind="any", about="the command of each agent"),
        Key(name="presets", kind="any", about="agent command lines of your own"),
        Key(name="concurrency", kind="any", about=CONCURRENCY.about),
        Key(name="least_disk", kind="any", about="a worker claims nothing below it"),
        Key(name="grace", kind="any", about="how long running steps may go on after a signal"),
        Key(name="connections", kind="any", about="the most to the database of the store"),
        Key(name="keep", kind="any", about=KEEP.about),
    ),
)
SETTINGS = (
    Setting(
        name="database",
        about="the store: `sqlite:///file.db`, a path from the folder of the file, or "
        "`postgresql://…`",
        default="`.holdfast/holdfast.db`",
        variable="HOLDFAST_DB",
    ),
    Setting(
        name="agents.NAME",
        about="how workers do the tasks of an agent that name neither function nor program: "
        "`{command: [./agent.sh]}` or `{use: claude}`, with `env`, `cwd`, `timeout`, "
        "`idle_timeout` and the keys of a preset as in a workflow file",
        default="nothing: such tasks wait for whoever claims them",
    ),
    Setting(
        name="presets.NAME",
        about="an agent command line of your own, which agents of this file may `use`: "
        "`{command: [mine, --json], access: {edit: []}}`, with `prompt`, `model`, `turns`, `usd`, "
        "`session`, `env` and `stream`",
        default="the well-known ones",
    ),
    Setting(
        name="concurrency.functions",
        about="how many steps a worker of a Python program runs at once; unless said, it claims "
        "short ones ahead",
        default="32",
        variable="HOLDFAST_CONCURRENCY",
    ),
    Setting(
        name="concurrency.agents",
        about="how many commands and agents a worker without a program runs at once",
        default="2",
        variable="HOLDFAST_CONCURRENCY",
    ),
    Setting(
        name="least_disk",
        about="workers claim nothing while less is free where their logs go; 0 for never",
        default="2GB",
        variable="HOLDFAST_LEAST_DISK",
    ),
    Setting(
        name="grace",
        about="how long running steps of `worker` and `up` may go on after Ctrl-C or SIGTERM; what "
        "still runs then is stopped and given back",
        default="as long as they take",
        variable="HOLDFAST_GRACE",
    ),
    Setting(
        name="connections",
        about="how many connections to its database a server has at most, and a worker without a "
        f"program; {LEAST_CONNECTIONS} or more",
        default=str(CONNECTIONS),
        variable="HOLDFAST_CONNECTIONS",
    ),
    Setting(
        name="keep.worktrees",
        about="how long worktrees are kept; nothing makes any yet",
        default="3d",
    ),
    Setting(
        name="keep.logs",
        about="how long logs are kept; `holdfast doctor` tells of older ones",
        default="14d",
    ),
    Setting(name="keep.runs", about="how long runs that have ended are kept", default="90d"),
)


def read_project_file(path: Path) -> ProjectSettings:
    """The settings of a project; `InvalidProjectFile` has every mistake with its position."""
    return read_project_text(
        read_text(path, InvalidProjectFile), name=str(path), folder=path.parent
    )


def read_project_text(text: str, *, folder: Path, name: str = NAME) -> ProjectSettings:
    findings = Findings(name, text, InvalidProjectFile)
    top = read_nodes(text, findings)
    said: dict[str, Any] = {}
    if isinstance(top, Fields):
        said = _read(top, folder, findings)
    elif top is not None:
        findings.add(top.mark, f"settings are a mapping, not {describe_node(top)}")
    if findings:
        raise findings.make_error()
    return ProjectSettings(folder=folder, **said)


def _read(top: Fields, folder: Path, findings: Findings) -> dict[str, Any]:
    said = read_section(PROJECT, top, findings)
    given = {
        section.name: read_section(section, top.nodes[section.name], findings)
        for section in (CONCURRENCY, KEEP)
        if section.name in top.nodes
    }
    agents, presets = top.nodes.get("agents"), top.nodes.get("presets")
    own = {} if presets is None else read_own_presets(presets, findings)
    commands = {} if agents is None else read_project_agents(agents, folder, findings, own)
    return {
        "commands": commands,
        **({"database": said["database"]} if "database" in said else {}),
        **given.get("concurrency", {}),
        **_read_number("least_disk", parse_size, top, findings),
        **_read_number("grace", parse_grace, top, findings),
        **_read_number("connections", check_connections, top, findings),
        "keep": KeepTimes(**given.get("keep", {})),
    }


def _read_number(
    name: str, read: Callable[[str, object], float], top: Fields, findings: Findings
) -> dict[str, float]:
    """The number that a key has, if it is there; a finding if it cannot be read."""
    node = top.nodes.get(name)
    if node is None:
        return {}
    try:
        return {name: read(name, plain_value(node))}
    except InvalidInput as error:
        findings.add(node.mark, str(error))
        return {}
