"""Own presets: the agent command lines that a project describes in its `holdfast.yaml`."""

from __future__ import annotations

from typing import Any

from holdfast.definition.findings import Findings, UnreadableValue
from holdfast.definition.keys import Key, Section
from holdfast.definition.nodes import Fields, FileNode, Scalar, describe_node
from holdfast.definition.values import read_name, read_section
from holdfast.model.workflow.flaw import suggest
from holdfast.presets.catalogue import PRESETS
from holdfast.presets.own_preset import STREAMS
from holdfast.settings import OwnPreset

PLACE = "{}"
_VALUED = ("model", "turns", "usd", "session")
PRESET = Section(
    name="preset",
    about="An agent command line of your own; {} stands for a value in its flags.",
    keys=(
        Key(name="command", kind="command", about="how it begins", required=True),
        Key(name="prompt", kind="flags", about="the flags with the prompt, else its input"),
        Key(name="access", kind="any", about="the flags for read, edit and full", required=True),
        *(Key(name=name, kind="flags", about=f"the flags with the {name}") for name in _VALUED),
        Key(name="env", kind="variables", about="variables for it, unless its worker has them"),
        Key(name="stream", kind="name", about="the preset whose stream it writes, or text"),
    ),
)
ACCESS = Section(
    name="access",
    about="The flags for each access that it can be given.",
    keys=tuple(Key(name=name, kind="flags", about="flags") for name in ("read", "edit", "full")),
)


def read_own_presets(node: FileNode, findings: Findings) -> dict[str, OwnPreset]:
    if not isinstance(node, Fields):
        findings.add(node.mark, f"presets must be a mapping of names, not {describe_node(node)}")
        return {}
    found: dict[str, OwnPreset] = {}
    for name, mark, inner in node.items():
        try:
            read_name(Scalar(mark=mark, end=mark.line, value=name), findings)
        except UnreadableValue as error:
            findings.add(error.mark, f"preset: {error.message}", error.hint)
        if name in PRESETS:
            findings.add(mark, f"there is a preset {name!r} already", "give yours another name")
        said = read_section(PRESET, inner, findings)
        if not isinstance(inner, Fields):
            continue
        access = inner.nodes.get("access")
        said["access"] = {} if access is None else read_section(ACCESS, access, findings)
        if isinstance(access, Fields) and not access.nodes:
            findings.add(access.mark, f"preset {name!r} has no access", "as in access: {edit: []}")
        _check_values(name, said, inner, findings)
        if "command" in said and said["access"]:
            found[name] = OwnPreset(name=name, **said)
    return found


def _check_values(name: str, said: dict[str, Any], node: Fields, findings: Findings) -> None:
    for key in ("prompt", *_VALUED):
        if said.get(key) and not any(PLACE in flag for flag in said[key]):
            message = f"preset {name!r}: {key}: no flag has {PLACE}, where its value goes"
            findings.add(node.nodes[key].mark, message, f'as in {key}: [--{key}, "{PLACE}"]')
    stream = said.get("stream")
    if stream is not None and stream not in STREAMS:
        hint = suggest(stream, STREAMS) or f"one of {', '.join(STREAMS)}"
        message = f"preset {name!r}: stream: no preset is {stream!r}"
        findings.add(node.nodes["stream"].mark, message, hint)
