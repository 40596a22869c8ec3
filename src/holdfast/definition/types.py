"""Types of inputs and outputs: short forms such as `[string]`, or JSON Schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.definition.findings import Findings
from holdfast.definition.nodes import Fields, FileNode, Items, Scalar, describe_node, plain_value
from holdfast.model import json_schema
from holdfast.model.workflow.flaw import suggest

Schema = dict[str, Any]
SHORT_TYPES: dict[str, Schema] = {
    "string": {"type": "string"},
    "int": {"type": "integer"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "bool": {"type": "boolean"},
    "boolean": {"type": "boolean"},
    "path": {"type": "string", "format": "path"},
    "any": {},
    "object": {"type": "object"},
    "list": {"type": "array"},
    "array": {"type": "array"},
    "null": {"type": "null"},
}
OPTIONAL = "?"


def read_fields(node: FileNode, findings: Findings) -> Schema | None:
    """The type of an object, from the types of its fields or from JSON Schema."""
    if not isinstance(node, Fields):
        findings.add(node.mark, f"must be a mapping of names to types, not {describe_node(node)}")
        return None
    kind = node.nodes.get("type")
    if isinstance(kind, Scalar) and kind.value == "object" and "properties" in node.nodes:
        return read_type(node, findings)
    return _read_object(node, findings)


def read_type(node: FileNode, findings: Findings) -> Schema:
    match node:
        case Scalar(value=str(word)):
            return _read_short_type(node, word, findings)
        case Items(nodes=(inner,)):
            return {"type": "array", "items": read_type(inner, findings)}
        case Fields() if "type" in node.nodes:
            return _SchemaReader(findings).read(node)
        case Fields():
            return _read_object(node, findings)
    hint = "write string, int, number, bool, path, any, [string] or {name: string}"
    findings.add(node.mark, f"a type cannot be {describe_node(node)}", hint)
    return {}


def _read_short_type(node: FileNode, word: str, findings: Findings) -> Schema:
    name = word.removesuffix(OPTIONAL)
    if name not in SHORT_TYPES:
        there = ", ".join(SHORT_TYPES)
        message = f"{word!r} is no type; there is {there}"
        findings.add(node.mark, message, lambda: suggest(name, SHORT_TYPES))
        return {}
    found = dict(SHORT_TYPES[name])
    if name != word and "type" in found:
        found["type"] = [found["type"], "null"]
    return found


def _read_object(node: Fields, findings: Findings) -> Schema:
    fields = {name: read_type(inner, findings) for name, inner in node.nodes.items()}
    required = [
        name
        for name, inner in fields.items()
        if "default" not in inner and not _may_be_left_out(node.nodes[name], inner)
    ]
    return {"type": "object", "properties": fields, "required": required}


def _may_be_left_out(node: FileNode, schema: Schema) -> bool:
    if isinstance(node, Scalar) and str(node.value).endswith(OPTIONAL):
        return True
    return "null" in schema.get("type", ())


class _SchemaReader:
    """Reads the part of JSON Schema that is checked; refuses keywords that are not."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._readers: dict[str, Callable[[FileNode], Any]] = {
            "properties": self._properties,
            "items": self._inner,
            "additionalProperties": self._additional,
            "anyOf": self._any_of,
            "required": self._names,
            "enum": self._listed,
        }

    def read(self, node: Fields) -> Schema:
        schema = self._type(node.nodes["type"])
        for name, mark, inner in node.items():
            if name == "type":
                continue
            if name not in json_schema.KEYWORDS:
                self._findings.add(mark, f"{name!r} is not checked here", self._hint(name))
            elif name in json_schema.LIMITS:
                schema[name] = self._limit(name, inner)
            else:
                schema[name] = self._readers.get(name, plain_value)(inner)
        if "default" in schema:
            self._default(node, schema)
        return schema

    def _default(self, node: Fields, schema: Schema) -> None:
        for misfit in json_schema.find_misfits(schema, schema["default"], "the default"):
            self._findings.add(node.nodes["default"].mark, misfit)

    def _hint(self, name: str) -> Callable[[], str]:
        advice = "a field called type: {type: object, properties: {type: string}}"
        return lambda: suggest(name, json_schema.KEYWORDS) or advice

    def _type(self, node: FileNode) -> Schema:
        if isinstance(node, Items) and node.nodes:
            kinds = [self._word(inner) for inner in node.nodes]
            return {"type": [kind for kind in kinds if kind is not None]}
        if isinstance(node, Scalar) and isinstance(node.value, str):
            return _read_short_type(node, node.value, self._findings)
        self._findings.add(node.mark, f"a type must be a word, not {describe_node(node)}")
        return {}

    def _word(self, node: FileNode) -> str | None:
        """One type in a list of types; null needs no quotes."""
        if isinstance(node, Scalar) and node.value is None:
            return "null"
        kind = self._inner(node).get("type")
        return kind if isinstance(kind, str) else None

    def _properties(self, node: FileNode) -> dict[str, Schema]:
        if isinstance(node, Fields):
            return {name: self._inner(inner) for name, inner in node.nodes.items()}
        self._findings.add(node.mark, f"properties must be a mapping, not {describe_node(node)}")
        return {}

    def _inner(self, node: FileNode) -> Schema:
        return read_type(node, self._findings)

    def _additional(self, node: FileNode) -> Schema | bool:
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            return node.value
        return self._inner(node)

    def _any_of(self, node: FileNode) -> list[Schema]:
        return [self._inner(each) for each in self._nodes(node)]

    def _names(self, node: FileNode) -> list[str]:
        return [str(plain_value(each)) for each in self._nodes(node)]

    def _listed(self, node: FileNode) -> list[Any]:
        return [plain_value(each) for each in self._nodes(node)]

    def _nodes(self, node: FileNode) -> tuple[FileNode, ...]:
        if isinstance(node, Items):
            return node.nodes
        self._findings.add(node.mark, f"must be a list, not {describe_node(node)}")
        return ()

    def _limit(self, name: str, node: FileNode) -> float:
        value = plain_value(node)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        self._findings.add(node.mark, f"{name} must be a number, not {describe_node(node)}")
        return 0
