"""Preset: the flags of one agent command line, and the command that is made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from holdfast.presets.stream_reader import StreamReader
from holdfast.settings import AgentUse

ACCESS = ("read", "edit", "full")


@dataclass(frozen=True, kw_only=True, slots=True)
class Access:
    """The flags and variables by which a client is let do so much."""

    flags: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions:
    """What one run of a client is given beyond what its agent asks for."""

    session: str | None = None
    schema: str | None = None
    # The money limit of the attempt, where that is lower than that of the agent.
    usd: float | None = None


NO_OPTIONS = RunOptions()


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """One agent command line.

    Each table of flags has `{}` where its value goes; None says that the client has no such flag.

    - `program`: how every command begins
    - `prompt`: the last flags, with the prompt; without `{}` the prompt is on standard input
    - `access`: `read`, `edit` and `full`, those that the client has
    - `schema`, `schema_file`: the flags for a JSON Schema of the answer, as a text or as a file
    - `session`: the flags that continue a conversation
    - `variables`: what keeps the client from updating itself, asking, or waiting, unless the worker
      has these variables itself
    - `totals_go_on`: whether its usage counts the earlier runs of a session too
    - `silent_at_limit`: whether it waits out a usage limit and writes nothing
    - `status`: the command that tells whether somebody is logged in
    - `advice`: what to do about an error, by a part of its message
    - `notes`: what is worth knowing and shows in no stream
    """

    name: str
    title: str
    program: tuple[str, ...]
    prompt: tuple[str, ...]
    access: Mapping[str, Access]
    reader: Callable[[], StreamReader]
    model: tuple[str, ...] | None = None
    turns: tuple[str, ...] | None = None
    usd: tuple[str, ...] | None = None
    schema: tuple[str, ...] | None = None
    schema_file: tuple[str, ...] | None = None
    mcp: tuple[str, ...] | None = None
    session: tuple[str, ...] | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    totals_go_on: bool = False
    silent_at_limit: bool = False
    untried: bool = False
    status: tuple[str, ...] | None = None
    install: str = ""
    login: str = ""
    advice: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def takes_prompt(self) -> bool:
        """Whether an argument holds the prompt, so that standard input does not."""
        return any("{}" in flag for flag in self.prompt)

    def make_command(
        self, use: AgentUse, prompt: str, options: RunOptions = NO_OPTIONS
    ) -> tuple[str, ...]:
        """The arguments of one run; `prompt` stands in them only where the client wants it so."""
        limits = [each for each in (use.usd, options.usd) if each is not None]
        given = (
            *_fill(self.model, use.model),
            *_fill(self.turns, use.turns),
            *_fill(self.usd, f"{min(limits):g}" if limits else None),
            *_fill(self.schema or self.schema_file, options.schema),
            *_fill(self.mcp, use.mcp),
            *use.flags,
            # The last before the prompt, because `codex exec resume` takes no flags after it.
            *_fill(self.session, options.session),
        )
        # Whoever writes prompts chooses no options of the client.
        said = f"\n{prompt}" if prompt.startswith("-") else prompt
        return (*self.program, *self.access[use.access].flags, *given, *_fill(self.prompt, said))

    def takes(self, key: str) -> bool:
        """Whether the client has flags for a key of an agent."""
        if key == "schema":
            return self.schema is not None or self.schema_file is not None
        return getattr(self, key) is not None

    def find_advice(self, message: str) -> str:
        """What to do about an error, where that is known."""
        return next((told for part, told in self.advice.items() if part in message), "")


def _fill(flags: tuple[str, ...] | None, value: object) -> tuple[str, ...]:
    if flags is None or value is None:
        return ()
    return tuple(flag.replace("{}", str(value)) for flag in flags)
