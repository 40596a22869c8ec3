"""What a person is told to type is there: in messages, in help, in pages and in examples."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tools.commands import every_command

ROOT = Path(__file__).parents[2]
OPTIONS = {
    each.name: {word for option in each.options for word in re.findall(r"--?[\w-]+", option.name)}
    for each in every_command()
}
ALWAYS = {"-h", "--help"}
PROGRAM = {"--install-completion", "--show-completion"}
GROUPS = {name.split()[0] for name in OPTIONS if " " in name}
MODULES = sorted((ROOT / "src").rglob("*.py"))
PAGES = sorted(
    path
    for folder in (".", "docs", "examples", "deploy")
    for path in (ROOT / folder).glob("*.md" if folder == "." else "**/*")
    if path.suffix in {".md", ".sh", ".yaml", ".service"} and path.name != "CHANGELOG.md"
)
# From the program's name to where the line, the quotation or the command ends.
TYPED = re.compile(r"(?<![\w./-])holdfast ((?:[a-z]|-)[^`\n]*)")
ENDS = re.compile(r"   |  #| #|&&|\|\||[|;)<]|…`")
OPTION = re.compile(r"(?<![\w\[])(--?[a-z][\w-]*)")
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
# A page also speaks of the program by its name.
CODE = re.compile(
    r"`(holdfast [^`]+)`|^((?:    |\$ ?|[A-Z_]+=\S+ )*holdfast [^\n]+)$", re.MULTILINE
)


def source_texts(path: Path) -> Iterator[str]:
    """The strings of a module, with a blank for whatever is put into them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    made = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    inside = {id(part) for each in made for part in each.values}
    for each in made:
        yield "".join(
            str(part.value) if isinstance(part, ast.Constant) else "…" for part in each.values
        )
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in inside
        ):
            yield node.value


def page_texts(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".md":
        yield from (
            line for line in text.splitlines() if "holdfast " in line and "ExecStart" in line
        )
        return
    yield from ("".join(found) for found in CODE.findall(text))


def missing(text: str) -> Iterator[str]:
    """What a text tells to type and is not there."""
    for typed in TYPED.findall(text):
        line = ENDS.split(typed)[0]
        known = options_of(line.split())
        given = set(OPTION.findall(QUOTED.sub("", line)))
        if known is None:
            yield f"holdfast {line}: no such command"
        elif strange := given - known - ALWAYS:
            yield f"holdfast {line}: no {', '.join(sorted(strange))}"


def options_of(words: list[str]) -> set[str] | None:
    """The options of the command that begins a line; a blank may stand for the rest of its name."""
    first, *rest = [word.rstrip("….,:") for word in words]
    if first.startswith("-"):
        return PROGRAM
    if first not in GROUPS:
        return OPTIONS.get(first)
    second = rest[0] if rest else ""
    if not second or second.startswith("\\"):
        return OPTIONS.get(first, set())
    return OPTIONS.get(f"{first} {second}", OPTIONS.get(first))


def test_every_command_that_a_message_names_is_there() -> None:
    told = ((path, text) for path in MODULES for text in source_texts(path))
    wrong = [f"{path.relative_to(ROOT)}: {each}" for path, text in told for each in missing(text)]
    assert wrong == [], "\n".join(wrong)


def test_every_command_of_a_page_is_there() -> None:
    told = ((path, text) for path in PAGES for text in page_texts(path))
    wrong = [f"{path.relative_to(ROOT)}: {each}" for path, text in told for each in missing(text)]
    assert wrong == [], "\n".join(wrong)
