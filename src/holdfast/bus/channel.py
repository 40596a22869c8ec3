"""The channels of the execution bus, and how their messages are divided among partitions."""

from __future__ import annotations

import zlib
from enum import StrEnum

from holdfast.errors import InvalidInput

SLOTS = 32


class Channel(StrEnum):
    COMMANDS = "workflow.commands"
    EVENTS = "workflow.events"
    TASKS = "agent.tasks"
    RESULTS = "agent.results"


FOR_COMMANDS = (Channel.COMMANDS, Channel.TASKS)
# On the channel of events are those of the store, and nobody else's.
FOR_EVENTS = (Channel.RESULTS,)


def read_channel(name: object) -> Channel:
    for each in Channel:
        if each == name:
            return each
    known = ", ".join(each.value for each in Channel)
    raise InvalidInput("channel", f"{str(name)!r} is none; one of {known} is")


def slot_of(about: str) -> int:
    """The same for all that keeps its order together, in whatever language it is reckoned."""
    return zlib.crc32(about.encode()) % SLOTS


def slots_of(partition: int, partitions: int) -> list[int]:
    return list(range(partition, SLOTS, partitions))
