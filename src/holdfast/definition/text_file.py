"""Text file: the text of a file within bounds, and the nodes in it."""

from __future__ import annotations

from pathlib import Path

from holdfast.definition.composer import Composer
from holdfast.definition.findings import Findings, UnreadableValue
from holdfast.definition.lexer import read_json, read_yaml
from holdfast.definition.nodes import FileNode, Mark
from holdfast.definition.quotes import suggest_quotes
from holdfast.errors import InvalidFile, InvalidInput, InvalidWorkflowFile, Mistake
from holdfast.settings import MEBIBYTE

MAX_BYTES = MEBIBYTE


def read_text(path: Path, kind: type[InvalidFile] = InvalidWorkflowFile) -> str:
    """The text of a file; a file that is too long, or no UTF-8, raises an error of that kind."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InvalidInput(str(path), f"cannot be read: {reason}") from error
    if len(content) > MAX_BYTES:
        raise make_length_error(str(path), kind)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        mark = Mark(before.count(b"\n") + 1, error.start - before.rfind(b"\n"))
        told = "this byte is not UTF-8; save the file as UTF-8"
        raise make_single_error(str(path), mark, told, kind) from None


def read_nodes(text: str, findings: Findings) -> FileNode | None:
    """The top node of a text; a text whose name ends in `.json` is JSON, any other YAML."""
    composer = Composer()
    read = read_json if findings.name.endswith(".json") else read_yaml
    top = None
    try:
        top = composer.build(read(text))
    except UnreadableValue as error:
        quotes = "" if read is read_json else suggest_quotes(text, error.mark, _read_yaml_nodes)
        findings.add(error.mark, error.message, quotes or error.hint)
    for name, again, first in composer.repeated:
        findings.add(
            again, f"the key {name!r} is here a second time", f"first in line {first.line}"
        )
    return top


def _read_yaml_nodes(text: str) -> FileNode | None:
    return Composer().build(read_yaml(text))


def make_length_error(name: str, kind: type[InvalidFile] = InvalidWorkflowFile) -> InvalidFile:
    told = f"a workflow has at most {MAX_BYTES} bytes; split it"
    if kind is not InvalidWorkflowFile:
        told = f"more than {MAX_BYTES} bytes"
    return make_single_error(name, Mark(1, 1), told, kind)


def make_single_error(
    name: str, mark: Mark, message: str, kind: type[InvalidFile] = InvalidWorkflowFile
) -> InvalidFile:
    """The error with a single mistake."""
    return kind(name, [Mistake(line=mark.line, column=mark.column, message=message)])
