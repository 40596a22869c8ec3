"""Finds the guards in the SQL: every conjunct that decides which rows a statement may change.

So does what an insert does about a row that is there already.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_TOKEN = re.compile(
    r"""
      '(?:[^']|'')*' | "(?:[^"]|"")*"
    | --[^\n]*
    | \{[a-z_ ]+\}
    | (?P<open>\() | (?P<close>\))
    | (?P<word>[A-Za-z_][A-Za-z0-9_.]*)
    """,
    re.VERBOSE,
)
_NAME = re.compile(r"^-- name: (?P<name>\w+)$", re.MULTILINE)
_WRITES = re.compile(r"\b(?:(?<!KEY\s)UPDATE|INSERT\s+INTO|DELETE\s+FROM)\b")
_COMMENT = re.compile(r"--[^\n]*")
_CONFLICT = re.compile(
    r"""
    ^\s* (?P<head> ON\ CONFLICT\b .*? \bDO\ (?:NOTHING|UPDATE)\b ) .*?
    (?= \s* (?: ^\s*RETURNING\b | \Z ) )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)

# Each of these words begins a clause; whatever was being read before has ended.
_CLAUSES = {
    "WITH", "SELECT", "FROM", "SET", "VALUES", "ORDER", "GROUP", "LIMIT", "RETURNING", "UNION",
    "ON", "DO", "UPDATE", "INSERT", "DELETE", "WHERE", "CONFLICT", "HAVING",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Predicate:
    """One conjunct of one guard, or all of a conflict, and where it stands in its file."""

    path: Path
    query: str
    text: str
    place: int
    start: int
    end: int
    leads_line: bool
    on_one_line: bool
    alone: bool
    conflict: bool = False

    @property
    def name(self) -> str:
        again = f" (place {self.place})" if self.place > 1 else ""
        return f"{self.query}: {self.text}{again}"


@dataclass(kw_only=True)
class _Frame:
    """What is being read between two parentheses, or outside all of them."""

    guards: bool
    begin: int
    clause: str = ""
    conflict: bool = False
    cases: int = 0
    between: bool = False
    conjunct: tuple[int, int] | None = None
    found: list[tuple[int, int, int]] = field(default_factory=list)

    def close_conjunct(self, end: int) -> None:
        if self.conjunct is not None:
            keyword, start = self.conjunct
            self.found.append((keyword, start, end))
            self.conjunct = None


def writes(body: str) -> bool:
    """Whether a statement changes rows."""
    return _WRITES.search(_COMMENT.sub("", body)) is not None


def find(directory: Path) -> list[Predicate]:
    """Every guarding predicate of every query that writes, in the order of the files."""
    paths = sorted(directory.rglob("*.sql"), key=lambda path: path.relative_to(directory).parts)
    return [predicate for path in paths for predicate in _read(path)]


def _read(path: Path) -> Iterator[Predicate]:
    text = path.read_text(encoding="utf-8")
    names = list(_NAME.finditer(text))
    for name, following in zip(names, [*names[1:], None], strict=True):
        end = following.start() if following else len(text)
        if writes(text[name.end() : end]):
            found = [
                *_conjuncts(path, name["name"], text, name.end(), end),
                *_conflicts(path, name["name"], text, name.end(), end),
            ]
            yield from sorted(found, key=lambda predicate: predicate.start)


def _conflicts(path: Path, query: str, text: str, begin: int, end: int) -> Iterator[Predicate]:
    for found in _CONFLICT.finditer(text, begin, end):
        yield Predicate(
            path=path,
            query=query,
            text=" ".join(found["head"].split()),
            place=1,
            start=found.start("head"),
            end=found.end(),
            leads_line=True,
            on_one_line=False,
            alone=False,
            conflict=True,
        )


def _conjuncts(path: Path, query: str, text: str, begin: int, end: int) -> Iterator[Predicate]:
    frames = [_Frame(guards=True, begin=begin)]
    closed: list[tuple[_Frame, int]] = []
    for token in _TOKEN.finditer(text, begin, end):
        frame = frames[-1]
        if token["open"]:
            # No clause yet: a parenthesis that only groups, inside a guard.
            inside = frame.guards and frame.clause in {"WHERE", "WITH", ""}
            frames.append(_Frame(guards=inside, begin=token.end()))
        elif token["close"]:
            frame.close_conjunct(token.start())
            closed.append((frames.pop(), token.start()))
        elif token["word"] and frame.guards:
            _read_word(frame, token)
    frames[0].close_conjunct(end)
    closed.append((frames[0], end))
    places = sorted((place, frame, stop) for frame, stop in closed for place in frame.found)
    seen: Counter[str] = Counter()
    for (keyword, start, stop), frame, frame_end in places:
        predicate = " ".join(_COMMENT.sub("", text[start:stop]).split())
        if predicate != "true":
            seen[predicate] += 1
            yield Predicate(
                path=path,
                query=query,
                text=predicate,
                place=seen[predicate],
                start=start,
                end=start + len(text[start:stop].rstrip()),
                leads_line=not text[text.rfind("\n", 0, keyword) + 1 : keyword].strip(),
                on_one_line="\n" not in text[frame.begin : frame_end].strip(),
                alone=len(frame.found) == 1,
            )


def _read_word(frame: _Frame, token: re.Match[str]) -> None:
    word = token["word"]
    frame.cases += (word == "CASE") - (word == "END")
    if frame.cases or word == "END":
        return
    if word == "BETWEEN":
        frame.between = True
    elif word == "AND" and frame.clause == "WHERE":
        if frame.between:
            frame.between = False
        elif frame.conjunct is not None:
            frame.close_conjunct(token.start())
            frame.conjunct = (token.start(), token.end())
    elif word in _CLAUSES:
        frame.close_conjunct(token.start())
        frame.clause = word
        # ON CONFLICT (key) WHERE … only names an index; DO UPDATE … WHERE guards again.
        frame.conflict = word == "CONFLICT" or (frame.conflict and word != "DO")
        if word == "WHERE" and not frame.conflict:
            frame.conjunct = (token.start(), token.end())
