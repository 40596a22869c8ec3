"""Values of keys, read by their kinds; a value that cannot be read is left out as a finding."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast.definition.command_text import find_expansions, suggest_list
from holdfast.definition.findings import Findings, UnreadableValue
from holdfast.definition.key_names import suggest_key
from holdfast.definition.keys import (
    ACCESSES,
    ACTIONS,
    BUDGET,
    CONCURRENCY,
    ESCALATION,
    GOTO,
    HTTP,
    MERGE,
    METHODS,
    STRATEGIES,
    WORKSPACE,
    Key,
    Section,
    ValueKind,
)
from holdfast.definition.nodes import Fields, FileNode, Items, Scalar, describe_node, plain_value
from holdfast.definition.types import read_fields
from holdfast.errors import InvalidInput
from holdfast.model.budget import Budget, to_millionths
from holdfast.model.labels import MAX_LABELS
from holdfast.model.retry import MAX_COUNT, positive_microseconds
from holdfast.model.units import parse_duration, parse_size
from holdfast.model.workflow.declarations import HttpCall, Merge, Workspace
from holdfast.model.workflow.flaw import suggest
from holdfast.model.workflow.graph_checks import MAX_PRIORITY
from holdfast.model.workflow.reference import Reference
from holdfast.model.workflow.step import Concurrency, Escalation, FailureAction, OnFailure
from holdfast.presets.preset import ACCESS

MAX_NAME = 100
# Names have no dots or slashes, because they are parts of addresses and of paths.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
RESERVED_PREFIX = "HOLDFAST_"
# A URL may begin with a variable, whose value is not known yet.
URLS = ("http://", "https://", "{{")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_section(section: Section, node: FileNode, findings: Findings) -> dict[str, Any]:
    """The values of a mapping by their keys; an unknown key is a finding with a hint."""
    if not isinstance(node, Fields):
        what = f"{section.name} must be a mapping, not {describe_node(node)}"
        findings.add(node.mark, what)
        return {}
    known = section.known
    for name, mark, _ in node.items():
        if name not in known:
            message = f"{section.name} has no key {name[:MAX_NAME]!r}"
            findings.add(mark, message, partial(suggest_key, section, name[:MAX_NAME], node.nodes))
        elif not known[name].supported:
            findings.add(mark, f"{name!r} is not there yet: {known[name].about}")
    for key in section.keys:
        if key.required and key.name not in node.nodes:
            findings.add(node.mark, f"{section.name} has no {key.name!r}: {key.about}")
    return {
        key.name: value
        for key in section.keys
        if key.supported
        and key.name in node.nodes
        and key.kind in READERS
        and (value := read_value(key, node.nodes[key.name], findings)) is not None
    }


def read_value(key: Key, node: FileNode, findings: Findings) -> Any:  # noqa: ANN401 - by its kind
    try:
        return READERS[key.kind](node, findings)
    except UnreadableValue as error:
        findings.add(error.mark, f"{key.name}: {error.message}", error.hint or key.reminder)
    except InvalidInput as error:
        findings.add(node.mark, f"{key.name}: {error.reason}", key.reminder)
    return None


def _text(node: FileNode, _: Findings) -> str:
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        hint = "put it in quotes" if isinstance(node, Scalar) and node.value is not None else ""
        raise UnreadableValue(node.mark, f"must be text, not {describe_node(node)}", hint)
    return node.value


def _template(node: FileNode, findings: Findings) -> str:
    text = _text(node, findings)
    if not text.strip():
        raise UnreadableValue(node.mark, "must say something")
    return text


def read_name(node: FileNode, findings: Findings) -> str:
    text = _text(node, findings)
    if not _NAME.fullmatch(text) or len(text) > MAX_NAME:
        hint = f"letters, digits, _ and -, at most {MAX_NAME}, not starting with -"
        raise UnreadableValue(node.mark, f"{text[:MAX_NAME]!r} is no name", hint)
    return text


def _names(node: FileNode, findings: Findings) -> tuple[str, ...]:
    """A list of names, each once, or one name alone."""
    if isinstance(node, Fields):
        raise UnreadableValue(node.mark, "must be a list of names, not a mapping")
    nodes = node.nodes if isinstance(node, Items) else (node,)
    return tuple(dict.fromkeys(read_name(each, findings) for each in nodes))


def _command(node: FileNode, findings: Findings) -> tuple[str, ...]:
    if isinstance(node, Scalar) and isinstance(node.value, str):
        hint = suggest_list(node.value) if node.value.strip() else "write [npm, test]"
        raise UnreadableValue(node.mark, "must be a list of the command and its arguments", hint)
    if not isinstance(node, Items) or not node.nodes:
        raise UnreadableValue(node.mark, "must be a list of the command and its arguments")
    command = tuple(_argument(each) for each in node.nodes)
    for place, message, hint in find_expansions(command):
        findings.add(node.nodes[place].mark, message, hint)
    return command


def _argument(node: FileNode) -> str:
    """An argument of a command line; a number without quotes stands for its text."""
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return node.value
    if isinstance(node, Scalar) and isinstance(node.value, int | float):
        return str(node.value).lower()
    raise UnreadableValue(node.mark, f"an argument must be text, not {describe_node(node)}")


def _templates(node: FileNode, _: Findings) -> dict[str, str]:
    if not isinstance(node, Fields):
        raise UnreadableValue(
            node.mark, f"must be a mapping of names to texts, not {describe_node(node)}"
        )
    return {name: _argument(inner) for name, inner in node.nodes.items()}


def _variables(node: FileNode, findings: Findings) -> dict[str, str]:
    """Variables of an environment; a file may not set those that begin with HOLDFAST_."""
    said = _templates(node, findings)
    for name in said:
        if not _VARIABLE.fullmatch(name) or name.startswith(RESERVED_PREFIX):
            mark = node.keys[name] if isinstance(node, Fields) else node.mark
            hint = f"letters, digits and _, not starting with a digit or {RESERVED_PREFIX}"
            raise UnreadableValue(mark, f"{name[:MAX_NAME]!r} is no name of a variable", hint)
    return said


def _labels(node: FileNode, findings: Findings) -> dict[str, str]:
    said = _templates(node, findings)
    if len(said) > MAX_LABELS:
        raise UnreadableValue(node.mark, f"has {len(said)} labels; at most {MAX_LABELS} are kept")
    for name in said:
        mark = node.keys[name] if isinstance(node, Fields) else node.mark
        read_name(Scalar(mark=mark, end=mark.line, value=name), findings)
    return said


def _count(node: FileNode, _: Findings) -> int:
    return _whole(node, 1, MAX_COUNT)


def _integer(node: FileNode, _: Findings) -> int:
    return _whole(node, -MAX_PRIORITY, MAX_PRIORITY)


def _whole(node: FileNode, least: int, most: int) -> int:
    value = node.value if isinstance(node, Scalar) else None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UnreadableValue(node.mark, f"must be a whole number from {least} to {most}")
    return value


def _money(node: FileNode, _: Findings) -> float:
    value = node.value if isinstance(node, Scalar) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise UnreadableValue(node.mark, "must be a number of dollars, more than 0")
    to_millionths("", value)
    return value


def _flag(node: FileNode, _: Findings) -> bool:
    if not isinstance(node, Scalar) or not isinstance(node.value, bool):
        raise UnreadableValue(node.mark, f"must be true or false, not {describe_node(node)}")
    return node.value


def _duration(node: FileNode, _: Findings) -> float:
    seconds = parse_duration("", node.value if isinstance(node, Scalar) else plain_value(node))
    positive_microseconds("", seconds)
    return seconds


def _size(node: FileNode, _: Findings) -> int:
    return parse_size("", node.value if isinstance(node, Scalar) else plain_value(node))


def _reference(node: FileNode, findings: Findings) -> Reference:
    return Reference.parse("", _text(node, findings))


def _method(node: FileNode, findings: Findings) -> str:
    text = _text(node, findings).upper()
    if text not in METHODS:
        raise UnreadableValue(node.mark, f"must be one of {', '.join(METHODS)}")
    return text


def _concurrency(node: FileNode, findings: Findings) -> Concurrency | None:
    if isinstance(node, Scalar):
        return Concurrency(key=_template(node, findings))
    said = read_section(CONCURRENCY, node, findings)
    return Concurrency(**said) if "key" in said else None


def _budget(node: FileNode, findings: Findings) -> Budget:
    return Budget(**read_section(BUDGET, node, findings))


def _http(node: FileNode, findings: Findings) -> HttpCall | None:
    if isinstance(node, Scalar):
        return HttpCall(url=_checked_url(node, _template(node, findings), findings))
    said = read_section(HTTP, node, findings)
    if "url" not in said or not isinstance(node, Fields):
        return None
    _checked_url(node.nodes["url"], said["url"], findings)
    return HttpCall(**said)


def _checked_url(node: FileNode, url: str, findings: Findings) -> str:
    if not url.startswith(URLS):
        hint = "write https://…, or a variable that holds the whole beginning"
        findings.add(node.mark, f"{url[:MAX_NAME]!r} is no URL of the web", hint)
    return url


def _on_failure(node: FileNode, findings: Findings) -> OnFailure | None:
    if isinstance(node, Fields) and "escalate" in node.nodes:
        said = read_section(ESCALATION, node, findings)
        if "escalate" not in said:
            return None
        handed = Escalation(agent=said["escalate"], then=said.get("on_failure", "fail"))
        return OnFailure(action="escalate", escalation=handed)
    if isinstance(node, Fields):
        said = read_section(GOTO, node, findings)
        if "goto" not in said:
            return None
        return OnFailure(action="goto", step=said["goto"], max_rounds=said.get("max_rounds", 3))
    others = ", {goto: step, max_rounds: 2} or {escalate: agent}"
    return OnFailure(action=_read_action(node, others))


def _action(node: FileNode, _: Findings) -> FailureAction:
    return _read_action(node, "")


def _read_action(node: FileNode, others: str) -> FailureAction:
    match node:
        case Scalar(value="fail" | "skip" | "ask" as action):
            return action
    near = suggest(str(node.value), ACTIONS) if isinstance(node, Scalar) else ""
    raise UnreadableValue(node.mark, f"must be one of {', '.join(ACTIONS)}{others}", near)


def _globs(node: FileNode, findings: Findings) -> tuple[str, ...]:
    """A list of patterns of files, each once, or one pattern alone."""
    if isinstance(node, Fields):
        raise UnreadableValue(node.mark, "must be a list of files, not a mapping")
    nodes = node.nodes if isinstance(node, Items) else (node,)
    return tuple(dict.fromkeys(_template(each, findings) for each in nodes))


def _workspace(node: FileNode, findings: Findings) -> Workspace | None:
    if isinstance(node, Scalar):
        return Workspace(git=_template(node, findings))
    said = read_section(WORKSPACE, node, findings)
    begins = {"start": said.pop("from")} if "from" in said else {}
    return Workspace(**said, **begins) if "git" in said else None


def _access(node: FileNode, findings: Findings) -> str:
    """The word itself: `none` is a value too, and not the lack of one."""
    return _one_of(ACCESSES, node, findings)


def _strategy(node: FileNode, findings: Findings) -> str:
    return _one_of(STRATEGIES, node, findings)


def _one_of(words: tuple[str, ...], node: FileNode, findings: Findings) -> str:
    text = _text(node, findings)
    if text not in words:
        raise UnreadableValue(
            node.mark, f"must be one of {', '.join(words)}", suggest(text[:MAX_NAME], words)
        )
    return text


def _merge(node: FileNode, findings: Findings) -> Merge | None:
    if isinstance(node, Scalar):
        into = _template(node, findings)
        return Merge(strategy="leave") if into == "leave" else Merge(into=into)
    said = read_section(MERGE, node, findings)
    if isinstance(node, Fields) and "into" not in node.nodes and said.get("strategy") != "leave":
        raise UnreadableValue(node.mark, "names no branch", "write merge: {into: main}")
    return Merge(**said)


def _preset_access(node: FileNode, findings: Findings) -> str:
    return _one_of(ACCESS, node, findings)


def _flags(node: FileNode, _: Findings) -> tuple[str, ...]:
    if not isinstance(node, Items):
        hint = 'write each in the list, as in flags: [--allowedTools, "Bash(npm test)"]'
        raise UnreadableValue(node.mark, "must be a list of flags and their values", hint)
    return tuple(_argument(each) for each in node.nodes)


def _any(node: FileNode, _: Findings) -> Any:  # noqa: ANN401 - JSON is any value
    return plain_value(node)


READERS: dict[ValueKind, Callable[[FileNode, Findings], Any]] = {
    "access": _access,
    "action": _action,
    "any": _any,
    "budget": _budget,
    "command": _command,
    "concurrency": _concurrency,
    "count": _count,
    "duration": _duration,
    "flag": _flag,
    "globs": _globs,
    "flags": _flags,
    "http": _http,
    "integer": _integer,
    "labels": _labels,
    "merge": _merge,
    "method": _method,
    "money": _money,
    "name": read_name,
    "names": _names,
    "on_failure": _on_failure,
    "preset": read_name,
    "preset_access": _preset_access,
    "reference": _reference,
    "size": _size,
    "strategy": _strategy,
    "template": _template,
    "templates": _templates,
    "text": _text,
    "types": read_fields,
    "variables": _variables,
    "workspace": _workspace,
}
