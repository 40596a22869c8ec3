"""Settings of one store and of one project, each with its default; durations are seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from holdfast.errors import InvalidInput

MEBIBYTE = 1024 * 1024
LEAST_DISK = 2_000_000_000
DAY = 86_400.0
COUNTS = ((1, 2**31 - 1), f"1 and {2**31 - 1}")
SECONDS = ((0.000_001, 10 * 366 * 86_400.0), "a microsecond and ten years")
# A busy store hardly answers sooner, and every lease would run out.
LEAST_RENEWAL = 0.02
# The least are the writer's, the one that listens, one for views and one for transactions.
CONNECTIONS, LEAST_CONNECTIONS = 8, 4
# How long one attempt of a command may take, and how long the command may be silent.
AGENT_TIMEOUT, AGENT_IDLE_TIMEOUT = 1_800.0, 600.0
# Renewals in the time of one lease, so that it holds when some renewals come late.
RENEWALS = 5


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one store, each with its default.

    - `lease`: how long a worker may be silent before its steps go to another
    - `renewal`: how often it renews its leases; a fifth of a `lease` that is given, at most 10 s
    - `recovery`: how often, at least, leases that ran out are taken back
    - `poll`: how often a worker looks for work when it hears no hint
    - `max_attempts`, `max_lost`: how many attempts may fail, and how many may vanish
    - `backoff`, `backoff_max`: the wait after a failure, doubled each time up to the most
    - `max_payload`, `max_output`: how many bytes of JSON a call and a result may be
    - `max_effects`, `max_kept`: how many effects and artifacts an attempt may keep, and their size
    - `max_run_effects`, `max_run_kept`: the same for a run, or a task without one
    - `group_size`: how many operations are written in one transaction at most
    - `patience`: how long to wait for a database that is locked or does not answer
    - `watch`: how often a SQLite file is looked at for what others wrote, where no system tells
    - `connections`: how many connections to its database a process has at most
    """

    url: str = field(repr=False)
    lease: float = 30.0
    renewal: float = 10.0
    recovery: float = 0.5
    poll: float = 1.0
    max_attempts: int = 3
    max_lost: int = 5
    backoff: float = 5.0
    backoff_max: float = 300.0
    max_payload: int = MEBIBYTE
    max_output: int = MEBIBYTE
    max_effects: int = 10_000
    max_kept: int = 256 * MEBIBYTE
    max_run_effects: int = 100_000
    max_run_kept: int = 1024 * MEBIBYTE
    group_size: int = 500
    patience: float = 30.0
    watch: float = 0.02
    connections: int = CONNECTIONS

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "url":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InvalidInput(each.name, f"must be a number, not {type(value).__name__}")
            if isinstance(each.default, int) and not isinstance(value, int):
                raise InvalidInput(each.name, f"must be a whole number, not {value}")
            (least, most), words = COUNTS if isinstance(each.default, int) else SECONDS
            # `not least <= value` is true of NaN too, so NaN is refused.
            if not least <= value <= most:
                raise InvalidInput(each.name, f"must be between {words}, not {value}")
        check_connections("connections", self.connections)
        if self.renewal < LEAST_RENEWAL:
            reason = f"must be at least {LEAST_RENEWAL} s, not {self.renewal} s"
            raise InvalidInput("renewal", reason)
        if self.renewal >= self.lease:
            reason = f"{self.renewal} s must be less than the lease of {self.lease} s"
            raise InvalidInput("renewal", reason)


def check_connections(field_name: str, value: object) -> int:
    """The number of connections that was given; refuses what a process cannot work with."""
    most = COUNTS[0][1]
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not LEAST_CONNECTIONS <= value <= most
    ):
        reason = f"must be a whole number of at least {LEAST_CONNECTIONS}, not {value!r}"
        raise InvalidInput(field_name, reason)
    return value


# The variables of the environment, for the page that lists them; a test compares the sources.
VARIABLES = {
    "HOLDFAST_DB": "the store, before what `holdfast.yaml` says",
    "HOLDFAST_HOME": "the folder that is used instead of `.holdfast`",
    "HOLDFAST_BUS": "the URL of a Redis that events are relayed to; `holdfast bus` looks at it",
    "HOLDFAST_SERVER": "the URL of a server that `worker`, `open`, `work` and `guard` ask",
    "HOLDFAST_TOKEN": "the token for that server; but for `worker`, the folder's own needs none",
    "HOLDFAST_CONCURRENCY": "how many steps a worker runs at once",
    "HOLDFAST_LEAST_DISK": "workers claim nothing while less is free",
    "HOLDFAST_GRACE": "how long running steps may go on after a signal to `worker` or `up`",
    "HOLDFAST_CONNECTIONS": "how many connections to its database a server or worker has at most",
    "HOLDFAST_PROXIES": "the proxies that `serve` and `up` believe, as `--proxy` names them",
    "HOLDFAST_LOG_JSON": "1 has `serve`, `up` and `worker` log lines of JSON",
    "HOLDFAST_SECRETS": "the file of a worker's secrets",
}
# The variables that a worker sets for its commands.
COMMAND_VARIABLES = {
    "HOLDFAST_TASK": "its task",
    "HOLDFAST_RUN": "its run",
    "HOLDFAST_STEP": "its step",
    "HOLDFAST_WORKFLOW": "its workflow",
    "HOLDFAST_ATTEMPT": "the number of its attempt",
    "HOLDFAST_ATTEMPT_TOKEN": "the secret of its attempt",
    "HOLDFAST_SERVER": "where its worker takes the calls of this attempt alone",
    "HOLDFAST_TOKEN": "the token for that, which ends with the attempt",
    "HOLDFAST_DB": "the store without its password, but for a worker of a server",
    "HOLDFAST_INPUT": "the JSON file of what it is given",
    "HOLDFAST_OUTPUT": "the file to which it may write its answer",
    "HOLDFAST_PROMPT": "its prompt, where that is short",
    "HOLDFAST_USD_PER_ATTEMPT": "the dollars that it may use",
    "HOLDFAST_WORKSPACE": "the git worktree that it works in",
    "HOLDFAST_BRANCH": "the branch of its attempt there, if it may edit",
    "HOLDFAST_COMMIT": "the commit where its attempt begins",
    "HOLDFAST_PORT": "the first of ten free ports",
    "HOLDFAST_SCRATCH": "an empty folder beside the worktree",
}


@dataclass(frozen=True, kw_only=True)
class KeepTimes:
    """The times for which worktrees, logs and ended runs are kept."""

    worktrees: float = 3 * DAY
    logs: float = 14 * DAY
    runs: float = 90 * DAY


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentUse:
    """The preset by which an agent is run, and what the agent asks of it.

    - `access`: `read`, `edit` or `full`
    - `turns`, `usd`: how many turns one run may have, and how many dollars it may cost
    - `account`: whose usage limit stops the agent; unless said, the preset's name
    - `schema`: whether the client itself holds the answer to the declared outputs
    - `mcp`: a file with MCP servers, in the form of the client
    - `flags`: more flags for the client
    """

    preset: str
    access: str = "edit"
    model: str | None = None
    turns: int | None = None
    usd: float | None = None
    account: str | None = None
    schema: bool = False
    mcp: str | None = None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnPreset:
    """A preset of a project; `{}` stands for the value in each list of flags.

    - `prompt`: the flags with the prompt; without them it is the standard input of the command
    - `access`: the flags for `read`, `edit` and `full`, those of them that there are
    - `stream`: the preset whose stream the client writes, or `text`
    """

    name: str
    command: tuple[str, ...]
    prompt: tuple[str, ...] = ()
    access: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    model: tuple[str, ...] | None = None
    turns: tuple[str, ...] | None = None
    usd: tuple[str, ...] | None = None
    session: tuple[str, ...] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    stream: str = "text"


@dataclass(frozen=True, kw_only=True)
class AgentCommand:
    """The command by which a worker does the tasks of an agent; texts of it are templates.

    Instead of a `command` an agent may `use` a preset, a well-known one or its `own`. `timeout`
    holds for tasks that say none; `env` are variables for the command, and `cwd` is the folder that
    it runs in, else that of the worker.
    """

    command: tuple[str, ...] = ()
    use: AgentUse | None = None
    own: OwnPreset | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    timeout: float = AGENT_TIMEOUT
    idle_timeout: float = AGENT_IDLE_TIMEOUT


AgentCommands = Mapping[str, AgentCommand]


@dataclass(frozen=True, kw_only=True)
class ProjectSettings:
    """The settings in the `holdfast.yaml` of a `folder`, for the command line and its workers.

    - `database`: the store, a path of it from that folder
    - `commands`: the command of each agent, for tasks that name neither function nor program
    - `functions`, `agents`: how many steps a worker runs at once, of a program and without one
    - `least_disk`: below how many free bytes workers claim nothing
    - `grace`: how long running steps may go on after a signal; None for as long as they take
    - `connections`: how many connections to its database a server or worker has at most
    """

    folder: Path | None = None
    database: str | None = None
    commands: AgentCommands = field(default_factory=dict)
    functions: int | None = None
    agents: int = 2
    least_disk: int = LEAST_DISK
    grace: float | None = None
    connections: int = CONNECTIONS
    keep: KeepTimes = KeepTimes()
