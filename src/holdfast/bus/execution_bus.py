"""The port of the execution bus, its channels, and the partitions of their messages.

Each group gets each message at least once, and the messages of a run in their order.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.bus.envelope import Envelope, write_envelope
from holdfast.errors import InvalidInput
from holdfast.model.text import clean_name

SLOTS = 32
PARTITIONS = 4
# The names of positions that belong to no group on the bus in the store begin so.
RESERVED = ("elsewhere/", "relay/")


class Channel(StrEnum):
    COMMANDS = "workflow.commands"
    EVENTS = "workflow.events"
    TASKS = "agent.tasks"
    RESULTS = "agent.results"


COMMAND_CHANNELS = (Channel.COMMANDS, Channel.TASKS)
# On `workflow.events` only the events of the store are published.
EVENT_CHANNELS = (Channel.RESULTS,)


def read_channel(name: object) -> Channel:
    for each in Channel:
        if each == name:
            return each
    known = ", ".join(each.value for each in Channel)
    raise InvalidInput("channel", f"{str(name)!r} is none; one of {known} is")


def slot_of(about: str) -> int:
    """The slot of a matter, whose messages keep their order; computed alike in every language."""
    return zlib.crc32(about.encode()) % SLOTS


def slots_of(partition: int, partitions: int) -> list[int]:
    return list(range(partition, SLOTS, partitions))


@dataclass(frozen=True, kw_only=True, slots=True)
class Subscription:
    """A group on a channel; a new group gets the existing messages too, unless `from_now`."""

    channel: Channel
    group: str
    from_now: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "channel", read_channel(self.channel))


@dataclass(frozen=True, kw_only=True, slots=True)
class PartitionShare:
    """The share of a consumer in the partitions of a group; no other consumer has those."""

    subscription: Subscription
    consumer: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageBatch:
    """Messages in their order, which are not delivered again once the batch is acknowledged."""

    share: PartitionShare
    envelopes: tuple[Envelope, ...]
    receipt: object


@dataclass(frozen=True, kw_only=True, slots=True)
class Health:
    """Whether a bus answers, and its latency in seconds."""

    ok: bool
    latency: float
    detail: str = ""


class ExecutionBus(ABC):
    # Whether the bus is outside of the store, and can be lost while the store is not.
    is_external = False
    # The prefix of the names that the store has for this bus: a group may be on several buses.
    key_prefix = ""

    def __init__(self, partitions: int) -> None:
        if partitions < 1 or SLOTS % partitions:
            raise InvalidInput("partitions", f"must be a power of two up to {SLOTS}")
        self.partitions = partitions

    def _refuse_partitions(self, kept: int) -> None:
        """Refuse another number of partitions than the bus has: messages would be skipped."""
        if kept != self.partitions:
            reason = f"there are {kept} already, and this bus was opened with {self.partitions}"
            raise InvalidInput("partitions", f"{reason}; open it with partitions={kept}")

    def partition_of(self, envelope: Envelope) -> int:
        return slot_of(envelope.about) % self.partitions

    def publish_command(
        self, channel: Channel, *envelopes: Envelope, connection: object = None
    ) -> None:
        """Publish commands: for the engine on `workflow.commands`, for agents on `agent.tasks`."""
        self._publish_on(COMMAND_CHANNELS, channel, envelopes, connection)

    def publish_event(
        self, channel: Channel, *envelopes: Envelope, connection: object = None
    ) -> None:
        """Publish what happened: agents publish their results on `agent.results`."""
        self._publish_on(EVENT_CHANNELS, channel, envelopes, connection)

    def _publish_on(
        self,
        allowed: Sequence[Channel],
        channel: Channel,
        envelopes: Sequence[Envelope],
        connection: object,
    ) -> None:
        if channel not in allowed:
            names = " or ".join(repr(each.value) for each in allowed)
            raise InvalidInput("channel", f"{str(channel)!r} is not for this; use {names}")
        texts = [(envelope, write_envelope(envelope)) for envelope in envelopes]
        self._publish(Channel(channel), texts, connection)

    @abstractmethod
    def _publish(
        self, channel: Channel, texts: Sequence[tuple[Envelope, str]], connection: object
    ) -> None: ...

    @abstractmethod
    def subscribe(self, subscription: Subscription) -> None:
        """Make the group if it does not exist."""

    @abstractmethod
    def forget(self, subscription: Subscription) -> None:
        """Remove the group; nothing is kept for it any more."""

    @abstractmethod
    def fetch(self, share: PartitionShare, *, count: int, wait: float = 0.0) -> list[MessageBatch]:
        """The next messages of the share's partitions; if there are none, wait for some."""

    @abstractmethod
    def recover(self, share: PartitionShare, *, count: int) -> list[MessageBatch]:
        """Messages of the share's partitions that were delivered and never acknowledged.

        A consumer calls this for new partitions, before `fetch`, until there are no more.
        """

    @abstractmethod
    def acknowledge(self, batch: MessageBatch) -> bool:
        """Acknowledge a batch; False if another consumer has its partitions, and it comes again."""

    @abstractmethod
    def rewind(self, subscription: Subscription, since: int) -> None:
        """Deliver again all messages that are kept since a moment, in microseconds.

        Messages that were not delivered yet still come, however old they are.
        """

    @abstractmethod
    def lag(self, subscription: Subscription) -> int:
        """The number of messages that the group has not acknowledged yet."""

    @abstractmethod
    def groups(self, channel: Channel) -> list[str]:
        """The groups on a channel."""

    @abstractmethod
    def latest(self, channel: Channel, count: int) -> list[Envelope]:
        """The newest messages of a channel that are kept, the newest last."""

    @abstractmethod
    def oldest(self, channel: Channel) -> int | None:
        """The time of the oldest message that is kept on the bus and not in the store."""

    @abstractmethod
    def trim(self, channel: Channel, *, groups: Sequence[str] = (), before: int = 0) -> int:
        """Remove messages that all groups have acknowledged, unless one of `groups` is missing.

        A bus that has the time of each message removes only those that came `before`.
        """

    @abstractmethod
    def health(self) -> Health: ...

    @abstractmethod
    def close(self) -> None: ...


def check_group(name: str) -> None:
    if clean_name("group", name).startswith(RESERVED):
        reason = (
            f"{name!r} begins like what is no group: {' and '.join(RESERVED)} are Holdfast's own"
        )
        raise InvalidInput("group", reason)
