"""Command as text: the list to write instead of a command line in one text.

Where a command is a list, no shell reads it: what only a shell would expand is found here too.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from holdfast.definition.quotes import quote, quote_word

LONGEST = 1_000
LONGEST_SHOWN = 100
_VARIABLE = re.compile(r"\{\{(.*?)\}\}")
# What a shell acts on, whether in quotes or not: a shell is never wrong where a list would do too.
_SHELL = re.compile(r"[|&;<>()$`*?~#\n]|^\w+=")
_COMPOUND = re.compile(
    r"(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|\{|\})\b|.*(?:<<|\{$)"
)
_SHELL_AROUND = "write [sh, -c, 'command \"$NAME\"'], a shell with the whole command in one text"
_FILE = "put it into a file and write [sh, ./that-file.sh]"
_SHELL_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})((?:/.*)?)", re.DOTALL)
_OTHER_TOOL = re.compile(r"\$(?=\{\{)")
_SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "fish"})
_SHELL_TEXT = re.compile(r"-[A-Za-z]*c")
# These read such words themselves, here or on another machine.
_READERS = frozenset(
    {
        *("awk", "gawk", "mawk", "nawk", "jq", "gojq", "jaq", "yq", "perl", "ruby", "php", "tclsh"),
        *("expect", "pwsh", "powershell", "envsubst", "eval", "su", "ssh", "mosh", "parallel"),
        *("watch", "tmux", "nix-shell", "xonsh", "nu", "Rscript", "gnuplot", "make"),
    }
)


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


def find_expansions(command: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """The places of arguments that only a shell would expand, each with a message and a hint."""
    programs = [PurePosixPath(each).name for each in command]
    for place, written in enumerate(command):
        in_shell = (
            place > 1
            and _SHELL_TEXT.fullmatch(command[place - 1]) is not None
            and not _SHELLS.isdisjoint(programs[: place - 1])
        )
        if in_shell or not _READERS.isdisjoint(programs[:place]):
            continue
        shown = written[:LONGEST_SHOWN]
        if _OTHER_TOOL.search(written):
            hint = f"write {quote(_OTHER_TOOL.sub('', shown))}"
            yield place, f"{shown!r} has a $ before its variable, which stays there", hint
        elif (instead := _replace_expansion(shown)) is not None:
            what = f"no shell reads a command that is a list: {shown!r} stays as it is"
            yield place, what, instead


def _replace_expansion(written: str) -> str | None:
    """The hint for an argument that is a variable or a path of a shell; None for any other."""
    if written.startswith("~/"):
        return f"write {quote('{{ env.HOME }}' + written[1:])}"
    if (found := _SHELL_VARIABLE.fullmatch(written)) is None:
        return None
    name = found[1] or found[2]
    if name.startswith("HOLDFAST_"):
        # These are made for each attempt: the environment of the worker has none of them.
        return _SHELL_AROUND
    return f"write {quote(f'{{{{ env.{name} }}}}{found[3]}')}"


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
