"""Worker options: the name of a worker, the agents it serves, and how much it does at once."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from holdfast.engine.input import validation
from holdfast.engine.input.host_tags import add_own_host
from holdfast.model.text import MAX_NAME, clean_name
from holdfast.model.units import parse_grace, parse_size
from holdfast.settings import LEAST_DISK

MAX_CONCURRENCY = 10_000
DEFAULT_CONCURRENCY = 32
LARGE_CONCURRENCY = 16


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """The options of a worker.

    Without a `name`, a worker takes the first free name made of its service and its host. With a
    name that another live worker has, it takes that name with a number.

    A worker that is told no `concurrency` runs up to 32 steps at once, and claims short ones ahead.

    After a signal or Ctrl-C, running steps have `grace` to end, or without one as long as they
    take.
    """

    name: str | None = None
    service: str = "worker"
    agents: Sequence[str] = ("default",)
    tags: Sequence[str] = ()
    concurrency: int | None = None
    least_disk: int | str = LEAST_DISK
    grace: float | str | timedelta | None = None

    def __post_init__(self) -> None:
        clean_name("service", self.service)
        clean_name("name", self.named)
        parse_size("least_disk", self.least_disk)
        _ = self.grace_seconds
        validation.agents(self.agents)
        validation.tags(self.tags)
        validation.number("concurrency", self.limit, least=1, most=MAX_CONCURRENCY)

    @property
    def offered_tags(self) -> tuple[str, ...]:
        """Its tags, and that of its machine, for steps in folders of that machine."""
        return add_own_host(self.tags)

    @property
    def grace_seconds(self) -> float | None:
        """How long running steps may go on after a signal; None for as long as they take."""
        return None if self.grace is None else parse_grace("grace", self.grace)

    @property
    def named(self) -> str:
        """The name of the worker, or the first name that it would take."""
        return self.number_name(1)

    def number_name(self, number: int) -> str:
        """The name of the worker with a number, or of its service and host with a number.

        The name is shortened if its number would make it too long.
        """
        if self.name is not None and number == 1:
            return self.name
        end = f"-{number}"
        whole = f"{self.service}-{_host_name()}" if self.name is None else self.name
        return whole[: MAX_NAME - len(end)] + end

    @property
    def limit(self) -> int:
        """How many steps the worker runs at one instant."""
        return DEFAULT_CONCURRENCY if self.concurrency is None else self.concurrency

    @property
    def claims_ahead(self) -> bool:
        """Whether the worker claims short steps before they can begin."""
        return self.concurrency is None

    def __str__(self) -> str:
        agents, tags = (", ".join(each) for each in (self.agents, self.tags))
        offer = f"agents {agents}" + (f", tags {tags}" if tags else "")
        many = f"up to {self.limit} steps at once"
        if self.claims_ahead:
            many += " and short ones claimed ahead"
        return f"worker {self.named} (process {os.getpid()}, {offer}, {many})"


def claimed_at_once(many: int) -> int:
    """How many of `many` tasks a worker takes with one commit.

    With many tasks, one half runs while the reports of the other half are written.
    """
    return many if many < LARGE_CONCURRENCY else (many + 1) // 2


def _host_name() -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", socket.gethostname()).lstrip(".-") or "worker"
