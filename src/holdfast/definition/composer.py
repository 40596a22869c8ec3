"""Composer: builds nodes from the tokens of a file, within fixed bounds of depth and size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from holdfast.definition.findings import UnreadableValue
from holdfast.definition.lexer import Token
from holdfast.definition.nodes import Fields, FileNode, Items, Mark, Scalar
from holdfast.errors import InvalidInput
from holdfast.model.text import clean_text

MAX_DEPTH = 40
MAX_NODES = 20_000
MERGE = "<<"


@dataclass(slots=True)
class _OpenCollection:
    """A list or mapping that has begun; in a mapping, `key` waits for its value."""

    token: Token
    nodes: list[FileNode] = field(default_factory=list)
    fields: dict[str, FileNode] = field(default_factory=dict)
    keys: dict[str, Mark] = field(default_factory=dict)
    key: tuple[str, Mark] | None = None
    size: int = 1


class Composer:
    """Builds the top node; `repeated` has each key given twice, with its second and first mark."""

    def __init__(self) -> None:
        self.repeated: list[tuple[str, Mark, Mark]] = []
        self._open: list[_OpenCollection] = []
        self._anchors: dict[str, tuple[FileNode, int] | None] = {}
        self._count = 0
        self._top: FileNode | None = None

    def build(self, tokens: Iterable[Token]) -> FileNode | None:
        for token in tokens:
            match token.kind:
                case "[" | "{":
                    self._begin(token)
                case "]" | "}":
                    self._end(token)
                case "alias":
                    node, size = self._look_up(token)
                    self._add(token, node, size)
                case _:
                    self._scalar(token)
        return self._top

    def _begin(self, token: Token) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise UnreadableValue(token.mark, f"nested deeper than {MAX_DEPTH} levels")
        self._expect_value(token)
        if token.anchor is not None:
            self._anchors[token.anchor] = None
        self._open.append(_OpenCollection(token))

    def _end(self, token: Token) -> None:
        done = self._open.pop()
        begun = done.token
        node: FileNode
        if token.kind == "]":
            node = Items(mark=begun.mark, end=token.end, nodes=tuple(done.nodes))
        else:
            node = Fields(mark=begun.mark, end=token.end, keys=done.keys, nodes=done.fields)
        self._add(begun, node, done.size)

    def _scalar(self, token: Token) -> None:
        if isinstance(token.value, str):
            try:
                clean_text("text", token.value, limit=len(token.value))
            except InvalidInput as error:
                raise UnreadableValue(token.mark, f"this text {error.reason}") from None
        self._add(token, Scalar(mark=token.mark, end=token.end, value=token.value), 1)

    def _look_up(self, token: Token) -> tuple[FileNode, int]:
        if token.anchor not in self._anchors:
            raise UnreadableValue(token.mark, f"nothing before this is named &{token.anchor}")
        found = self._anchors[token.anchor]
        if found is None:
            raise UnreadableValue(token.mark, f"*{token.anchor} stands inside of itself")
        return found

    def _add(self, token: Token, node: FileNode, size: int) -> None:
        """Add a finished node to what is open; an alias counts as all nodes that it stands for."""
        self._count += size if token.kind == "alias" else 1
        if self._count > MAX_NODES:
            raise UnreadableValue(token.mark, f"more than {MAX_NODES} values; split the workflow")
        if token.anchor is not None and token.kind != "alias":
            self._anchors[token.anchor] = (node, size)
        if not self._open:
            self._top = node
            return
        around = self._open[-1]
        around.size += size
        if around.token.kind == "[":
            around.nodes.append(node)
        elif around.key is None:
            around.key = self._key(node), token.mark
        else:
            self._put(around, node)

    def _put(self, around: _OpenCollection, node: FileNode) -> None:
        if around.key is None:
            return
        name, mark = around.key
        around.key = None
        if name in around.fields:
            self.repeated.append((name, mark, around.keys[name]))
        else:
            around.fields[name], around.keys[name] = node, mark

    def _key(self, node: FileNode) -> str:
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            raise UnreadableValue(node.mark, "a key must be text", "put it in quotes")
        if node.value == MERGE:
            raise UnreadableValue(
                node.mark, "mappings are not merged with <<", "write the keys out"
            )
        return node.value

    def _expect_value(self, token: Token) -> None:
        if not self._open or self._open[-1].token.kind != "{" or self._open[-1].key is not None:
            return
        outer = self._open[-1].token.mark
        if token.kind == "{" and token.mark == Mark(outer.line, outer.column + 1):
            raise UnreadableValue(outer, "a text that begins with {{ needs quotes")
        raise UnreadableValue(token.mark, "a key must be text, not a list or a mapping")
