"""aider: its flags, and its plain text.

It exits with 0 whatever happened, so its text alone tells of an error. It tries again by itself
after a rate limit: only a limit that no later answer follows counts.
"""

from __future__ import annotations

import re

from holdfast.presets.preset import Access, Preset
from holdfast.presets.stream_reader import StreamReader, make_usage

MOST_KEPT = 400
_TOKENS = re.compile(r"Tokens: ([\d.,]+)([kKmM]?) sent, (?:.*?)([\d.,]+)([kKmM]?) received")
_COST = re.compile(r"Cost: \$([\d.,]+) message")
_ERROR = re.compile(r"litellm\.([A-Za-z]+(?:Error|Exception)): (.*)")
_RETRY = re.compile(r"Retrying in [\d.]+ seconds")
_START = re.compile(r"(?:Repo-map|Restored previous conversation|Git repo|Added .* to the chat)\b")
_DONE = re.compile(r"(?:Applied edit to|Commit [0-9a-f]{7,40}) ")
_SIZES = {"": 1, "k": 1_000, "m": 1_000_000}
_OWN = re.compile(r"(?:Retrying in|Model:|Main model:|Weak model:|Aider v|Tokens:)")


class AiderReader(StreamReader):
    def __init__(self) -> None:
        super().__init__()
        self._said: list[str] = []
        self._error: list[str] | None = None
        self._error_kind = ""

    def read_line(self, line: str) -> None:
        if found := _ERROR.search(line):
            self._error_kind, self._error = found[1], [found[2]]
        elif self._error is not None and not _OWN.match(line):
            # A message goes on in the next lines, folded at the width of a terminal.
            self._error.append(line)
        if self._error is not None:
            self._note_error()
        if found := _TOKENS.search(line):
            self._read_tokens(found, line)
        elif _RETRY.match(line):
            self._error = None
        elif _START.match(line):
            self._said = []
        elif _DONE.match(line):
            self.report.show(line)
        elif self._error is None and not _OWN.match(line):
            self._said = [*self._said[-MOST_KEPT:], line]
            if line.strip():
                self.report.show(line)

    def _note_error(self) -> None:
        message = " ".join(" ".join(self._error or ()).split())
        if self._error_kind == "RateLimitError":
            self.report.meet_limit(message)
        else:
            self.report.fail(message, login=self._error_kind == "AuthenticationError")

    def _read_tokens(self, found: re.Match[str], line: str) -> None:
        sent, received = (_number(found[n]) * _SIZES[found[n + 1].lower()] for n in (1, 3))
        cost = _COST.search(line)
        usd = None if cost is None else _number(cost[1])
        report = self.report
        report.usage.add(make_usage(fresh=sent, written=received, usd=usd))
        # An answer came, so what went wrong before it is over.
        report.error, report.limit, report.login, self._error = None, None, False, None
        report.text = report.result = "\n".join(self._said).strip()
        report.ended, self._said = True, []


def _number(text: str) -> float:
    return float(text.replace(",", ""))


AIDER = Preset(
    name="aider",
    title="aider",
    program=(
        *("aider", "--yes-always", "--no-check-update", "--no-show-release-notes"),
        *("--no-show-model-warnings", "--no-pretty", "--no-stream", "--analytics-disable"),
        *("--no-gitignore", "--no-auto-commits", "--no-dirty-commits"),
        *("--no-suggest-shell-commands", "--input-history-file", "/dev/null"),
        *("--chat-history-file", "/dev/null"),
    ),
    prompt=("--message", "{}"),
    access={
        "read": Access(flags=("--chat-mode", "ask")),
        "edit": Access(),
    },
    reader=AiderReader,
    model=("--model", "{}"),
    install="pip install aider-chat",
    advice={
        "AuthenticationError": "set OPENAI_API_KEY, ANTHROPIC_API_KEY or the key of another model "
        "in the environment of this worker, then retry",
    },
    notes=(
        "it cannot run commands, and so has no access full",
        "it continues no session",
        "it commits nothing; new files are staged",
    ),
)
