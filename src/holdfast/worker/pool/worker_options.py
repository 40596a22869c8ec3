"""Worker options: the name of a worker, the agents it serves, and how much it does at once."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.engine.input import validation
from holdfast.model.text import MAX_NAME, clean_name
from holdfast.model.units import parse_size
from holdfast.settings import LEAST_DISK

MAX_CONCURRENCY = 10_000
LARGE_CONCURRENCY = 16


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """The options of a worker.

    Without a `name`, a worker takes the first free name made of its service and its host. With a
    name that another live worker has, it takes that name with a number.
    """

    name: str | None = None
    service: str = "worker"
    agents: Sequence[str] = ("default",)
    tags: Sequence[str] = ()
    concurrency: int = field(default_factory=lambda: os.cpu_count() or 1)
    least_disk: int | str = LEAST_DISK

    def __post_init__(self) -> None:
        clean_name("service", self.service)
        clean_name("name", self.named)
        parse_size("least_disk", self.least_disk)
        validation.agents(self.agents)
        validation.tags(self.tags)
        validation.number("concurrency", self.concurrency, least=1, most=MAX_CONCURRENCY)

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
    def claimed_at_once(self) -> int:
        """How many tasks the worker takes with one commit.

        With many tasks, one half runs while the reports of the other half are written.
        """
        many = self.concurrency
        return many if many < LARGE_CONCURRENCY else (many + 1) // 2

    def __str__(self) -> str:
        agents, tags = (", ".join(each) for each in (self.agents, self.tags))
        offer = f"agents {agents}" + (f", tags {tags}" if tags else "")
        many = f"up to {self.concurrency} steps at once"
        return f"worker {self.named} (process {os.getpid()}, {offer}, {many})"


def _host_name() -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", socket.gethostname()).lstrip(".-") or "worker"
