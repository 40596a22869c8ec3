"""Nodes: the values of a file with their positions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Mark:
    """A line and a column of a text, counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, kw_only=True, slots=True)
class FileNode:
    """A value of a file, with the mark where it begins."""

    mark: Mark
    # The last line of the value: words inside it are searched up to there.
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Scalar(FileNode):
    value: str | int | float | bool | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Items(FileNode):
    nodes: tuple[FileNode, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fields(FileNode):
    keys: dict[str, Mark] = field(default_factory=dict)
    nodes: dict[str, FileNode] = field(default_factory=dict)

    def items(self) -> Iterator[tuple[str, Mark, FileNode]]:
        for name, node in self.nodes.items():
            yield name, self.keys[name], node


def plain_value(node: FileNode) -> Any:  # noqa: ANN401 - JSON is any value
    """The value of a node as JSON, without marks."""
    if isinstance(node, Fields):
        return {name: plain_value(inner) for name, inner in node.nodes.items()}
    if isinstance(node, Items):
        return [plain_value(inner) for inner in node.nodes]
    return node.value if isinstance(node, Scalar) else None


def describe_node(node: FileNode) -> str:
    """The kind of a node in words for people."""
    if isinstance(node, Fields):
        return "a mapping"
    if isinstance(node, Items):
        return "a list"
    value = node.value if isinstance(node, Scalar) else None
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true or false"
    return "text" if isinstance(value, str) else "a number"
