"""Command as text: the list to write instead of a command line in one text."""

from __future__ import annotations

import re
import shlex

from holdfast.definition.quotes import quote, quote_word

LONGEST = 1_000
_VARIABLE = re.compile(r"\{\{(.*?)\}\}")
# What a shell acts on, whether in quotes or not: a shell is never wrong where a list would do too.
_SHELL = re.compile(r"[|&;<>()$`*?~#\n]|^\w+=")
_COMPOUND = re.compile(
    r"(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|\{|\})\b|.*(?:<<|\{$)"
)
_FILE = "put it into a file and write [sh, ./that-file.sh]"


def suggest_list(text: str) -> str:
    """A hint with the list that does what a command line in one text was meant to do."""
    line = _join_lines(text) if len(text) <= LONGEST else None
    if line is None:
        return _FILE
    if not _SHELL.search(_VARIABLE.sub("", line)):
        words = _split_words(line)
        if words:
            return f"write [{', '.join(map(quote_word, words))}]"
    return _suggest_shell(line)


def _join_lines(text: str) -> str | None:
    """The commands of a text as one line, or None where a line is only a part of a command."""
    joined = re.sub(r"\\\n\s*", "", text)
    lines = [line.strip() for line in joined.splitlines()]
    commands = [line for line in lines if line and not line.startswith("#")]
    if len(commands) > 1 and any(_COMPOUND.match(line) for line in commands):
        return None
    return " && ".join(line.removesuffix(" &&").removesuffix(";") for line in commands)


def _split_words(line: str) -> list[str]:
    """The words of a command; a variable with spaces in its braces stays one word."""
    whole = _VARIABLE.sub(lambda found: "{{" + found[1].strip() + "}}", line)
    try:
        words = shlex.split(whole)
    except ValueError:
        return []
    return [_VARIABLE.sub(r"{{ \1 }}", word) for word in words]


def _suggest_shell(line: str) -> str:
    """A shell with the line; the values of variables come from its environment."""
    names: dict[str, str] = {}

    def replace(found: re.Match[str]) -> str:
        name = re.sub(r"\W+", "_", found[1].strip()).upper()
        names[name] = found[0]
        inside = line[: found.start()].count('"') % 2
        return f"${name}" if inside else f'"${name}"'

    written = f"[sh, -c, {quote(_VARIABLE.sub(replace, line))}]"
    given = ", ".join(f"{name}: {quote(value)}" for name, value in names.items())
    return f"write {written}" + (f" and env: {{{given}}}" if given else "")
