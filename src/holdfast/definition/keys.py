"""Keys of a workflow file, in one table that the reader, the schema and the page follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ValueKind = Literal[
    "access",
    "action",
    "agents",
    "any",
    "budget",
    "command",
    "concurrency",
    "count",
    "duration",
    "flag",
    "globs",
    "flags",
    "http",
    "integer",
    "labels",
    "merge",
    "method",
    "money",
    "name",
    "names",
    "on_failure",
    "preset",
    "preset_access",
    "reference",
    "size",
    "steps",
    "strategy",
    "template",
    "templates",
    "text",
    "types",
    "variables",
    "workspace",
]
StepKind = Literal["work", "loop", "approval", "workflow"]
WORK: tuple[StepKind, ...] = ("work",)
LOOP: tuple[StepKind, ...] = ("loop",)
APPROVAL: tuple[StepKind, ...] = ("approval",)
CALL: tuple[StepKind, ...] = ("workflow",)
ALL: tuple[StepKind, ...] = ("work", "loop", "approval", "workflow")


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """One key; only steps of `step_kinds` have it, and a key that is not `supported` is refused.

    `reminder` is told to those who call the key by another name, or give it a wrong value.
    """

    name: str
    kind: ValueKind
    about: str
    default: str = ""
    required: bool = False
    supported: bool = True
    step_kinds: tuple[StepKind, ...] = ALL
    reminder: str = ""


@dataclass(frozen=True, kw_only=True)
class Section:
    """One mapping of a file, with its keys."""

    name: str
    about: str
    keys: tuple[Key, ...]

    @property
    def known(self) -> dict[str, Key]:
        return {key.name: key for key in self.keys}


def _key(name: str, kind: ValueKind, about: str, default: str = "") -> Key:
    return Key(name=name, kind=kind, about=about, default=default)


def _required(name: str, kind: ValueKind, about: str) -> Key:
    return Key(name=name, kind=kind, about=about, required=True)


def _work(name: str, kind: ValueKind, about: str, default: str = "") -> Key:
    return Key(name=name, kind=kind, about=about, default=default, step_kinds=WORK)


def _unsupported(name: str, about: str) -> Key:
    return Key(name=name, kind="any", about=about, supported=False)


_CWD = ("the folder its command runs in", "the folder its worker was started in")
_ATTEMPT_KEYS: tuple[tuple[str, ValueKind, str, str], ...] = (
    ("timeout", "duration", "how long one attempt may take", "30m"),
    ("idle_timeout", "duration", "how long a command may be silent", "10m"),
    ("max_attempts", "count", "how many attempts may fail", "3"),
    ("max_lost", "count", "how many attempts may vanish with their worker", "5"),
    ("backoff", "duration", "the wait after the first failure, doubled each time", "5s"),
    ("backoff_max", "duration", "the longest wait", "5m"),
)
_PRESET_KEYS: tuple[tuple[str, ValueKind, str, str], ...] = (
    ("access", "preset_access", "what the preset lets the agent do: read, edit or full", "edit"),
    ("model", "text", "the model that the preset asks for", "that of the program"),
    ("turns", "count", "how many turns one run of the preset may have", ""),
    ("usd", "money", "the dollars for one run of the preset, where its program limits them", ""),
    ("account", "name", "whose usage limit stops the agent", "the name of the preset"),
    (
        "schema",
        "flag",
        "the program itself holds its answer to `outputs`, and asks nothing",
        "false",
    ),
    ("mcp", "text", "a file with MCP servers, in the form of the program", ""),
    ("flags", "flags", "more flags for the program of the preset", ""),
)

WORKFLOW = Section(
    name="workflow",
    about="The file itself.",
    keys=(
        _required("name", "name", "the name of the workflow"),
        _key("description", "text", "what it is for, for people"),
        _key("input", "types", "what a run is started with; without it any object is taken"),
        Key(
            name="env",
            kind="names",
            about="the environment variables of the worker that texts may name",
            reminder="here stand names alone; a step or an agent sets values: env: {NAME: value}",
        ),
        _key("labels", "labels", "labels of a run, by which it is found again, made of its input"),
        _key("concurrency", "concurrency", "how many runs go on at once"),
        _key("budget", "budget", "what one run may cost"),
        _key("deadline", "duration", "how long a run may take, from its start to its end"),
        _key("agents", "agents", "who does the work, by name"),
        _required("steps", "steps", "what is to be done, in the order it is written"),
        _key("workspace", "workspace", "the git worktrees in which its steps work"),
    ),
)
AGENT = Section(
    name="agent",
    about="One of `agents:`. What it says holds for each of its steps that does not say otherwise.",
    keys=(
        _key("command", "command", "the command line that does its work; the prompt is its input"),
        _key("external", "flag", "somebody else pulls its tasks, so it needs no command", "false"),
        _key("env", "variables", "variables for its command"),
        _key("cwd", "template", *_CWD),
        _key("tags", "names", "what a worker must offer to take its steps"),
        *(_key(*each) for each in _ATTEMPT_KEYS),
        _key("use", "preset", "the preset of a well-known agent program, instead of a command"),
        *(_key(*each) for each in _PRESET_KEYS),
    ),
)
STEP = Section(
    name="step",
    about="One of `steps:`: work for an agent, a command, an HTTP call, a workflow, a merge, "
    "a loop, or an approval.",
    keys=(
        _required("id", "name", "the name of the step, once in a file"),
        _key("title", "template", "what people read of it; of a loop, of each of its items"),
        _work("agent", "name", "who does it"),
        _work("prompt", "template", "what the agent is asked to do"),
        _work("run", "command", "a command line to run, as a list"),
        _work("http", "http", "a request to make"),
        Key(
            name="workflow",
            kind="name",
            about="another workflow, whose run it waits for",
            step_kinds=CALL,
        ),
        Key(
            name="input",
            kind="any",
            about="what that is started with; texts are templates",
            step_kinds=CALL,
        ),
        Key(
            name="outputs",
            kind="types",
            about="what it must give; an attempt that gives something else failed",
            step_kinds=(*WORK, *CALL),
        ),
        _key(
            "needs",
            "names",
            "the steps that must be done before; `[]` starts at once",
            "the step written before it",
        ),
        Key(
            name="when",
            kind="reference",
            about="a value without which the step is skipped",
            reminder='it takes one variable, as in when: "{{ steps.plan.go }}"',
        ),
        Key(
            name="for_each",
            kind="reference",
            about="a list: its steps run for each item",
            step_kinds=LOOP,
        ),
        Key(
            name="parallel",
            kind="count",
            about="how many items at once",
            default="1",
            step_kinds=LOOP,
        ),
        Key(name="steps", kind="steps", about="what is done for each item", step_kinds=LOOP),
        Key(
            name="approval",
            kind="template",
            about="what a person is asked to approve",
            step_kinds=APPROVAL,
        ),
        _work("verifies", "name", "the step that it accepts or sends back"),
        _work("max_rounds", "count", "how often a verifier may judge", "3"),
        Key(
            name="on_failure",
            kind="on_failure",
            about="`fail`, `skip`, `ask`, `{goto: step, max_rounds: n}` or `{escalate: agent}`",
            default="fail",
            step_kinds=(*WORK, *CALL, *APPROVAL),
            reminder="as in on_failure: skip",
        ),
        *(_work(*each) for each in _ATTEMPT_KEYS),
        _key("priority", "integer", "higher goes first", "0"),
        _work("tags", "names", "what a worker must offer to take it"),
        _work("concurrency", "concurrency", "how many tasks of one key run at once"),
        _work("env", "variables", "variables for its command"),
        _work("cwd", "template", *_CWD),
        _work("merge", "merge", "the branch that the commits of the run are merged into"),
        _work(
            "workspace",
            "access",
            "what becomes of its changes in the worktree: `edit` commits them, `read` drops them; "
            "`none` runs it elsewhere",
            "edit; of a verifier, read",
        ),
    ),
)
CONCURRENCY = Section(
    name="concurrency",
    about="Of a workflow it counts runs, of a step tasks. A text alone is the key, one at a time.",
    keys=(
        _required("key", "template", "what is counted together"),
        _key("limit", "count", "how many at once", "1"),
    ),
)
BUDGET = Section(
    name="budget",
    about="What one run may cost. At a limit it is held, until `holdfast resume` adds to that.",
    keys=(
        _key("usd", "money", "dollars in all, as the attempts tell what they used"),
        _key("usd_per_attempt", "money", "dollars for one attempt; one that tells of more failed"),
        _key("attempts", "count", "attempts in all, whatever became of them"),
    ),
)
HTTP = Section(
    name="http",
    about="One request. A text alone is its URL.",
    keys=(
        _required("url", "template", "where it goes"),
        _key("method", "method", "GET, POST, PUT, PATCH or DELETE", "POST"),
        _key("headers", "templates", "its headers"),
        _key("body", "any", "the JSON that is sent; its texts are templates"),
    ),
)
GOTO = Section(
    name="on_failure",
    about="Where to begin again after a failure for good.",
    keys=(
        _required("goto", "name", "the step to begin again at, which this one needs"),
        _key("max_rounds", "count", "how often", "3"),
    ),
)
ESCALATION = Section(
    name="escalation",
    about="Who a step is handed to after a failure for good, once, with the error as feedback.",
    keys=(
        _required("escalate", "name", "the agent that does the step then, with budgets of its own"),
        _key("on_failure", "action", "what follows when that agent fails for good too", "fail"),
    ),
)
WORKSPACE = Section(
    name="workspace",
    about="The git worktrees of a run. A text alone is the repository.",
    keys=(
        _required("git", "template", "the repository: a folder of the worker's machine, or a URL"),
        _key("from", "template", "the branch or commit to begin at", "what is checked out there"),
        _key("branch", "template", "the branch that shows the commits of the run", "after its run"),
        _key("setup", "command", "a command line that a new worktree is made ready with"),
        _key(
            "copy", "globs", "files of the repository's folder that git does not track, copied in"
        ),
        _key("keep", "duration", "how long a worktree is kept after the end of its run", "3d"),
        _key(
            "filters", "flag", "the filters of the user's git settings run, as of git-lfs", "false"
        ),
        _key("max_file", "size", "the largest file that is committed", "10MB"),
    ),
)
MERGE = Section(
    name="merge",
    about="One merge of the commits of a run. A text alone is the branch; `leave` merges nothing.",
    keys=(
        _key("into", "template", "the branch to merge into"),
        _key(
            "strategy", "strategy", "`merge`, `squash`, `rebase`, or `leave` for a person", "merge"
        ),
    ),
)
SECTIONS = (
    WORKFLOW,
    AGENT,
    STEP,
    CONCURRENCY,
    BUDGET,
    HTTP,
    GOTO,
    ESCALATION,
    WORKSPACE,
    MERGE,
)
ACTIONS = ("fail", "skip", "ask")
ACCESSES = ("edit", "read", "none")
STRATEGIES = ("merge", "squash", "rebase", "leave")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
