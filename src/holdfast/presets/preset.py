"""Preset: the flags of one agent command line, and the command that is made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from holdfast.presets.stream_reader import StreamReader

ACCESS = ("read", "edit", "full")


@dataclass(frozen=True, kw_only=True, slots=True)
class Access:
    """The flags and variables by which a client is let do so much."""

    flags: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentCall:
    """What an agent asks of its preset."""

    access: str
    model: str | None = None
    turns: int | None = None
    usd: float | None = None
    schema: str | None = None
    mcp: str | None = None
    session: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """One agent command line.

    Each table of flags has `{}` where its value goes; None says that the client has no such flag.

    - `program`: how every command begins
    - `prompt`: the last flags, with the prompt; without `{}` the prompt is on standard input
    - `access`: `read`, `edit` and `full`, those that the client has
    - `schema`, `schema_file`: the flags for a JSON Schema of the answer, as a text or as a file
    - `session`: the flags that continue a conversation
    - `variables`: what keeps the client from updating itself, asking, or waiting
    - `totals_go_on`: whether its usage counts the earlier runs of a session too
    - `silent_at_limit`: whether it waits out a usage limit and writes nothing
    - `status`: the command that tells whether somebody is logged in
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
    notes: tuple[str, ...] = ()

    @property
    def takes_prompt(self) -> bool:
        """Whether an argument holds the prompt, so that standard input does not."""
        return any("{}" in flag for flag in self.prompt)

    def make_command(self, call: AgentCall, prompt: str) -> tuple[str, ...]:
        """The arguments of one run; `prompt` stands in them only where the client wants it so."""
        given = (
            *self._fill(self.model, call.model),
            *self._fill(self.turns, call.turns),
            *self._fill(self.usd, None if call.usd is None else f"{call.usd:g}"),
            *self._fill(self.schema or self.schema_file, call.schema),
            *self._fill(self.mcp, call.mcp),
            # The last before the prompt, because `codex exec resume` takes no flags after it.
            *self._fill(self.session, call.session),
        )
        # Whoever writes prompts chooses no options of the client.
        said = f"\n{prompt}" if prompt.startswith("-") else prompt
        flags = self.access[call.access].flags
        return (*self.program, *flags, *given, *self._fill(self.prompt, said))

    def make_variables(self, call: AgentCall) -> dict[str, str]:
        return {**self.variables, **self.access[call.access].variables}

    @staticmethod
    def _fill(flags: tuple[str, ...] | None, value: object) -> tuple[str, ...]:
        if flags is None or value is None:
            return ()
        return tuple(flag.replace("{}", str(value)) for flag in flags)
