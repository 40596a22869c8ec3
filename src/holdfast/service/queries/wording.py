"""What the engine says of the Python API, in the words of the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import partial

# A command as it is to be typed, where more than it stands for is to be named.
Typed = Callable[[str], str]
PROGRAM = "MODULE:NAME"
DEFAULT = "default"

_QUOTED = r'"([^"]*)"'
_OFFER = r"agents=(\[[^\]]*\])(?:, tags=(\[[^\]]*\]))?"
_WORKER = re.compile(rf"hf\.worker\({_OFFER}\)(?:\.run\(\))?")
_IN_TICKS = re.compile("`([^`]*)`")
# What such a command is about needs no more to be said.
_SETTLED = (" --db ", " --server ", " --help")


def tell_worker(agents: Sequence[str], tags: Sequence[str], app: str | None = None) -> str:
    """The worker to start; of a program, where the functions are that it runs."""
    # A program's worker serves the default agent unless it is told another.
    named = [] if app is not None and {*agents} == {DEFAULT} else agents
    return " ".join(["holdfast worker", *([app] if app else []), *_options(named, tags)])


def _options(agents: Sequence[str], tags: Sequence[str]) -> list[str]:
    return [f"--agent {agent}" for agent in agents] + [f"--tag {tag}" for tag in tags]


def _offer(match: re.Match[str]) -> tuple[list[str], list[str]]:
    agents, tags = (json.loads(each) if each else [] for each in match.group(1, 2))
    return agents, tags


def _claim(match: re.Match[str]) -> str:
    return " ".join(["holdfast work claim", *_options(*_offer(match))])


def _resume(match: re.Match[str]) -> str:
    options = re.findall("add_([a-z]+)", match.group(2))
    return " ".join([f"holdfast resume {match.group(1)}", *(f"--add-{each} N" for each in options)])


_SAID: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"print\((hf\.why\([^)]*\))\)"), r"\1"),
    (re.compile(rf"hf\.work\.claim\(…, {_OFFER}\)"), _claim),
    (
        re.compile(rf"hf\.tasks\.(enqueue|run_now|reset|delete)\({_QUOTED}\)"),
        r"holdfast task \1 \2",
    ),
    (re.compile(rf"hf\.tasks\.unblock\({_QUOTED}\)"), r"holdfast task unblock \1"),
    (
        re.compile(rf"hf\.tasks\.unblock\({_QUOTED}, \[{_QUOTED}\]\)"),
        r"holdfast task unblock \1 --needs \2",
    ),
    (re.compile(rf"hf\.(?:tasks|runs)\.retry\({_QUOTED}\)"), r"holdfast retry \1"),
    (re.compile(rf"hf\.tasks\.reopen\({_QUOTED}\)"), r"holdfast retry --again \1"),
    (re.compile(rf"hf\.(?:tasks|runs)\.cancel\({_QUOTED}\)"), r"holdfast cancel \1"),
    (re.compile(rf"hf\.(?:tasks\.unhold|runs\.resume)\({_QUOTED}\)"), r"holdfast resume \1"),
    (re.compile(rf'hf\.tasks\.unhold\({_QUOTED}, "(?:limit|version)"\)'), r"holdfast resume \1"),
    (re.compile(rf"hf\.tasks\.lift_limit\({_QUOTED}\)"), r"holdfast resume --agent \1"),
    (re.compile(rf"hf\.runs\.resume\({_QUOTED}((?:, add_[a-z]+=…)+)\)"), _resume),
    (re.compile(rf"hf\.(approve|reject|why)\({_QUOTED}\)"), r"holdfast \1 \2"),
    (re.compile(rf"hf\.answer\({_QUOTED}, …\)"), r"holdfast answer \1 …"),
    (re.compile(rf"hf\.signal\({_QUOTED}, {_QUOTED}\)"), r"holdfast signal \1 \2"),
    (re.compile(rf"hf\.signal\({_QUOTED}, {_QUOTED}, …\)"), r"holdfast signal \1 \2 [PAYLOAD]"),
    (re.compile(rf"hf\.runs\.retry\({_QUOTED}, step=…\)"), r"holdfast retry \1 --from STEP"),
    (
        re.compile(rf"hf\.runs\.retry\({_QUOTED}, step={_QUOTED}\)"),
        r"holdfast retry \1 --from \2",
    ),
    (re.compile(r"hf\.workers\.list\(\)"), "holdfast workers"),
    (re.compile(r"hf\.tasks\.finalize_plan\(…\)"), "holdfast plan finalize ID"),
    (re.compile(rf"hf\.tasks\.finalize_plan\({_QUOTED}\)"), r"holdfast plan finalize \1"),
    (re.compile(rf"hf\.tasks\.start_planning\({_QUOTED}\)"), r"holdfast plan start \1"),
    (
        re.compile(rf"hf\.tasks\.create\(NewTask\(title=…, parent={_QUOTED}, enqueue=False\)\)"),
        r"holdfast plan add \1 TITLE",
    ),
    (re.compile(rf"hf\.runs\.tasks\({_QUOTED}\)"), r"holdfast tasks --run \1"),
    (
        re.compile(r"hf\.tasks\.events\(id\) or hf\.runs\.events\(id\) say"),
        "`holdfast events ID` says",
    ),
    (re.compile(r'run\.task\("…"\)'), "RUN:step"),
    (re.compile(r"raise the setting 'patience'"), "try again when it is done"),
    (
        re.compile(r"pass a datetime with a time zone, .* or a timedelta"),
        "write a time such as 2030-01-31T09:00+01:00, or a duration from now such as 10m",
    ),
)


def in_commands(text: str, typed: Typed = str, *, app: str | None = None) -> str:
    """The same text, with commands where it speaks of calls; each as `typed` has it be typed.

    With an `app`, the workers it speaks of are those of that program.
    """

    def command(whole: str) -> str:
        if not whole.startswith("holdfast ") or any(each in whole for each in _SETTLED):
            return whole
        return typed(whole.replace("task run_now", "task run-now"))

    text = _WORKER.sub(lambda found: command(tell_worker(*_offer(found), app)), text)
    for said, instead in _SAID:
        text = said.sub(partial(_replace, instead, command), text)
    return _IN_TICKS.sub(lambda found: f"`{command(found[1])}`", text)


def _replace(
    instead: str | Callable[[re.Match[str]], str],
    command: Callable[[str], str],
    found: re.Match[str],
) -> str:
    return command(found.expand(instead) if isinstance(instead, str) else instead(found))
