"""The port of the durable bus: at least once, in order for each run, to each group.

The channels of the execution bus, and how their messages are divided among partitions.
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


class Channel(StrEnum):
    COMMANDS = "workflow.commands"
    EVENTS = "workflow.events"
    TASKS = "agent.tasks"
    RESULTS = "agent.results"


COMMAND_CHANNELS = (Channel.COMMANDS, Channel.TASKS)
# On the channel of events are those of the store, and nobody else's.
EVENT_CHANNELS = (Channel.RESULTS,)


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


PARTITIONS = 4
# What the positions are called of those who are no groups of the bus in the store.
RESERVED = ("elsewhere/", "relay/")


@dataclass(frozen=True, kw_only=True, slots=True)
class Subscription:
    """A group on a channel; a new one is given what is there already, unless told otherwise."""

    channel: Channel
    group: str
    from_now: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "channel", read_channel(self.channel))


@dataclass(frozen=True, kw_only=True, slots=True)
class PartitionShare:
    """A consumer of a group, by a name that it keeps, and the partitions that are its alone."""

    subscription: Subscription
    consumer: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageBatch:
    """Messages in their order; nothing of them comes again once the batch is acknowledged."""

    share: PartitionShare
    envelopes: tuple[Envelope, ...]
    receipt: object


@dataclass(frozen=True, kw_only=True, slots=True)
class Health:
    """Whether a bus answers, and how soon, in seconds."""

    ok: bool
    latency: float
    detail: str = ""


class ExecutionBus(ABC):
    # Whether it can be lost while the store is not.
    is_external = False
    # What the names begin with that the store keeps of it: a group may be on several buses.
    key_prefix = ""

    def __init__(self, partitions: int) -> None:
        if partitions < 1 or SLOTS % partitions:
            raise InvalidInput("partitions", f"must be a power of two up to {SLOTS}")
        self.partitions = partitions

    def _refuse_partitions(self, kept: int) -> None:
        """Refuse to divide anew what others have divided: messages would be passed by."""
        if kept != self.partitions:
            reason = f"there are {kept} already, and this bus was opened with {self.partitions}"
            raise InvalidInput("partitions", f"{reason}; open it with partitions={kept}")

    def partition_of(self, envelope: Envelope) -> int:
        return slot_of(envelope.about) % self.partitions

    def publish_command(
        self, channel: Channel, *envelopes: Envelope, connection: object = None
    ) -> None:
        """Ask for something: of the engine on `workflow.commands`, of agents on `agent.tasks`."""
        self._publish_on(COMMAND_CHANNELS, channel, envelopes, connection)

    def publish_event(
        self, channel: Channel, *envelopes: Envelope, connection: object = None
    ) -> None:
        """Tell what happened; agents tell their results on `agent.results`."""
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
        """Make the group, unless it is there."""

    @abstractmethod
    def forget(self, subscription: Subscription) -> None:
        """Remove the group, so that nothing is kept for it any more."""

    @abstractmethod
    def fetch(self, share: PartitionShare, *, count: int, wait: float = 0.0) -> list[MessageBatch]:
        """The next messages of the seat's partitions; when there are none, wait for some."""

    @abstractmethod
    def recover(self, share: PartitionShare, *, count: int) -> list[MessageBatch]:
        """What was delivered in the seat's partitions to whomever, and never acknowledged.

        Called until it gives nothing when partitions are new to a seat, before `fetch`.
        """

    @abstractmethod
    def acknowledge(self, batch: MessageBatch) -> bool:
        """Whether it was this seat's to acknowledge; what is not acknowledged comes again."""

    @abstractmethod
    def rewind(self, subscription: Subscription, since: int) -> None:
        """Have the group given again whatever is kept since a moment, in microseconds.

        What it was not given yet still comes, however old.
        """

    @abstractmethod
    def lag(self, subscription: Subscription) -> int:
        """How many messages the group has not acknowledged yet."""

    @abstractmethod
    def groups(self, channel: Channel) -> list[str]:
        """The groups that there are on a channel."""

    @abstractmethod
    def latest(self, channel: Channel, count: int) -> list[Envelope]:
        """The newest messages that are kept of a channel, the last of them last."""

    @abstractmethod
    def oldest(self, channel: Channel) -> int | None:
        """When the oldest message came that is kept here and not in the store."""

    @abstractmethod
    def trim(self, channel: Channel, *, groups: Sequence[str] = (), before: int = 0) -> int:
        """Remove what every group has acknowledged; nothing while one of `groups` is missing.

        Where a bus keeps the time of each message, only what came `before` that is removed.
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
