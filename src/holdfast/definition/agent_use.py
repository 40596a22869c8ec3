"""Agent use: the preset of an agent, and what its program cannot do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.definition.findings import Findings
from holdfast.definition.nodes import Fields
from holdfast.model.workflow.flaw import suggest
from holdfast.presets.catalogue import PRESETS
from holdfast.presets.preset import Preset
from holdfast.settings import AgentUse

KEYS = ("access", "model", "turns", "usd", "account", "schema", "mcp", "flags")
_LIMITS = ("turns", "usd")
_LACKS = {
    "model": "takes no model",
    "turns": "takes no limit of turns",
    "usd": "takes no limit of money",
    "schema": "takes no schema",
    "mcp": "takes no file of MCP servers",
}


def read_agent_use(
    name: str,
    said: Mapping[str, Any],
    node: Fields,
    findings: Findings,
    presets: Mapping[str, Preset] = PRESETS,
) -> AgentUse | None:
    """The preset of an agent; each key that its program has nothing for is a finding."""
    if "use" not in node.nodes:
        for key in KEYS:
            if key in node.nodes:
                message = f"agent {name!r}: {key!r} is for an agent with a preset"
                findings.add(node.keys[key], message, "name the preset, as in use: claude")
        return None
    if "use" not in said:
        return None
    chosen = said["use"]
    preset = presets.get(chosen)
    if preset is None:
        hint = suggest(chosen, presets) or f"there are {', '.join(presets)}"
        findings.add(node.nodes["use"].mark, f"agent {name!r}: no preset is {chosen!r}", hint)
        return None
    use = AgentUse(preset=chosen, **{key: said[key] for key in KEYS if key in said})
    _check_access(name, use, preset, node, findings)
    for key, lack in _LACKS.items():
        if said.get(key) and not preset.takes(key):
            message = f"agent {name!r}: {key}: the preset {chosen!r} has none, as {preset.title}"
            bounded = "; its timeout bounds each attempt" if key in _LIMITS else ""
            findings.add(node.keys[key], f"{message} {lack}", f"leave it out{bounded}")
    return use


def _check_access(
    name: str, use: AgentUse, preset: Preset, node: Fields, findings: Findings
) -> None:
    if use.access in preset.access:
        return
    at = node.nodes.get("access", node.nodes["use"])
    told = use.access if "access" in node.nodes else f"{use.access}, which holds unless said"
    findings.add(
        at.mark,
        f"agent {name!r}: access: the preset {use.preset!r} has no access {told}",
        f"write access: {' or '.join(preset.access)}",
    )
