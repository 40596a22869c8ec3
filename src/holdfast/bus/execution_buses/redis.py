"""The execution bus on Redis Streams, for Redis 6.2 and later: a stream for each partition."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.bus.envelope import Envelope, encode_envelope, read_entry
from holdfast.bus.execution_bus import (
    PARTITIONS,
    Channel,
    ExecutionBus,
    Health,
    MessageBatch,
    PartitionShare,
    Subscription,
    check_group,
)
from holdfast.bus.redis_client import connect, translate_redis_errors
from holdfast.clock import MICROSECONDS, Clock, SystemClock
from holdfast.errors import BusUnreachable, InvalidInput
from holdfast.model.text import clean_name

PREFIX = "holdfast"
# The seconds that one read waits at most: well below the client's timeout.
LONGEST_WAIT = 5.0
PAGE = 1_000
MOST_REPLIES, REPLIES_KEPT = 1_000, 3_600
_SCRIPTS = Path(__file__).parent

Entries = Sequence[tuple[str, dict[str, str]]]


class RedisBus(ExecutionBus):
    """Streams `{prefix}:CHANNEL:PARTITION`; each message is an entry with the field `envelope`."""

    is_external = True

    def __init__(
        self,
        url: str,
        *,
        partitions: int = PARTITIONS,
        prefix: str = PREFIX,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(partitions)
        self._prefix = clean_name("prefix", prefix)
        # In braces, which no name contains: a prefix and a group may contain slashes.
        self.key_prefix = f"elsewhere/{{{prefix}}}/"
        self._clock = clock or SystemClock()
        self._client = connect(url)
        self._checked = False
        self._publish_script = self._client.register_script((_SCRIPTS / "publish.lua").read_text())
        self._trim_script = self._client.register_script((_SCRIPTS / "trim.lua").read_text())

    @property
    def owner_key(self) -> str:
        return f"{{{self._prefix}}}:store"

    def stream(self, channel: Channel, partition: int | str) -> str:
        # In braces, so that a cluster keeps all streams on one node, for one script.
        return f"{{{self._prefix}}}:{channel.value}:{partition}"

    def _publish(
        self, channel: Channel, texts: Sequence[tuple[Envelope, str]], connection: object
    ) -> None:
        if connection is not None:
            reason = "Redis takes part in no transaction; publish after it, or to a SqlBus"
            raise InvalidInput("connection", reason)
        with translate_redis_errors(), self._client.pipeline(transaction=False) as pipeline:
            if not self._checked:
                self._check_partitions()
            for envelope, text in texts:
                stream = self.stream(channel, self.partition_of(envelope))
                pipeline.xadd(stream, {"envelope": text})
            pipeline.execute()

    def subscribe(self, subscription: Subscription) -> None:
        check_group(subscription.group)
        self._create(subscription, "$" if subscription.from_now else "0")

    def _create(self, subscription: Subscription, start: str) -> None:
        # In all streams at one moment, so that no later message is skipped.
        with translate_redis_errors(), self._client.pipeline(transaction=True) as pipeline:
            self._check_partitions()
            for stream in self._streams(subscription.channel):
                pipeline.xgroup_create(stream, subscription.group, start, mkstream=True)
            for answer in pipeline.execute(raise_on_error=False):
                if isinstance(answer, Exception) and not str(answer).startswith("BUSYGROUP"):
                    raise answer

    def forget(self, subscription: Subscription) -> None:
        with translate_redis_errors():
            for stream in self._existing_streams(subscription.channel):
                self._client.xgroup_destroy(stream, subscription.group)

    def fetch(self, share: PartitionShare, *, count: int, wait: float = 0.0) -> list[MessageBatch]:
        if not share.partitions:
            return []
        channel, group = share.subscription.channel, share.subscription.group
        block = max(1, round(min(wait, LONGEST_WAIT) * 1000)) if wait > 0 else None
        wanted = {self.stream(channel, each): ">" for each in share.partitions}
        found = self._with_group(
            share.subscription,
            lambda: self._client.xreadgroup(group, share.consumer, wanted, count, block),
        )
        return [self._batch(share, stream, entries) for stream, entries in found or () if entries]

    def recover(self, share: PartitionShare, *, count: int) -> list[MessageBatch]:
        batches: list[MessageBatch] = []
        for each in share.partitions:
            stream = self.stream(share.subscription.channel, each)
            entries = self._claim_pending(share, stream, count)
            if entries:
                batches.append(self._batch(share, stream, entries))
        return batches

    def _claim_pending(self, share: PartitionShare, stream: str, count: int) -> Entries:
        """The first pending entries of a stream, which are this consumer's from now on."""
        group, start = share.subscription.group, "0-0"
        while True:
            start, found, *_ = self._with_group(
                share.subscription,
                lambda start=start: self._client.xautoclaim(
                    stream, group, share.consumer, 0, start, count
                ),
            )
            entries = [(entry, fields) for entry, fields in found if entry is not None]
            if len(entries) < len(found):
                self._acknowledge_deleted(share, stream, {entry for entry, _ in entries})
            if entries or start == "0-0":
                return entries

    def _acknowledge_deleted(self, share: PartitionShare, stream: str, there: set[str]) -> None:
        """Acknowledge entries that were deleted: Redis 6.2 gives them as None, again and again."""
        group = share.subscription.group
        with translate_redis_errors():
            for each in self._client.xpending_range(stream, group, "-", "+", PAGE, share.consumer):
                entry = each["message_id"]
                if entry not in there and not self._client.xrange(stream, entry, entry):
                    self._client.xack(stream, group, entry)

    def _batch(self, share: PartitionShare, stream: str, entries: Entries) -> MessageBatch:
        envelopes = tuple(
            read_entry(fields.get("envelope"), f"{stream}/{entry}") for entry, fields in entries
        )
        ids = [entry for entry, _ in entries]
        return MessageBatch(share=share, envelopes=envelopes, receipt=(stream, ids))

    def acknowledge(self, batch: MessageBatch) -> bool:
        match batch.receipt:
            case (str(stream), [*ids]):
                with translate_redis_errors():
                    if ids:
                        self._client.xack(stream, batch.share.subscription.group, *ids)
                return True
            case _:
                raise InvalidInput("batch", "was fetched from another bus")

    def rewind(self, subscription: Subscription, since: int) -> None:
        milliseconds = max(0, since // 1000)
        before = f"{milliseconds - 1}-{2**64 - 1}" if milliseconds else "0-0"
        for stream in self._streams(subscription.channel):
            self._with_group(
                subscription,
                lambda stream=stream: self._rewind_stream(stream, subscription.group, before),
            )

    def _rewind_stream(self, stream: str, group: str, before: str) -> None:
        """Move a group back, and never ahead, which would skip entries."""
        for each in self._client.xinfo_groups(stream):
            if each["name"] == group and _parse_entry_id(
                str(each["last-delivered-id"])
            ) < _parse_entry_id(before):
                return
        self._client.xgroup_setid(stream, group, before)

    def lag(self, subscription: Subscription) -> int:
        with translate_redis_errors():
            return sum(
                self._count_behind(stream, group)
                for stream in self._existing_streams(subscription.channel)
                for group in self._client.xinfo_groups(stream)
                if group["name"] == subscription.group
            )

    def _count_behind(self, stream: str, group: dict[str, Any]) -> int:
        """The number of pending and undelivered entries; only Redis 7 counts the latter itself."""
        if group.get("lag") is not None:
            return int(group["pending"]) + int(group["lag"])
        count, after = 0, str(group["last-delivered-id"])
        while page := self._client.xrange(stream, f"({after}", "+", PAGE):
            count, after = count + len(page), page[-1][0]
        return int(group["pending"]) + count

    def groups(self, channel: Channel) -> list[str]:
        with translate_redis_errors():
            return sorted(
                {
                    str(group["name"])
                    for stream in self._existing_streams(channel)
                    for group in self._client.xinfo_groups(stream)
                }
            )

    def latest(self, channel: Channel, count: int) -> list[Envelope]:
        with translate_redis_errors():
            found = [
                (_parse_entry_id(entry), read_entry(fields.get("envelope"), f"{stream}/{entry}"))
                for stream in self._streams(channel)
                for entry, fields in self._client.xrevrange(stream, count=count)
            ]
        return [envelope for _, envelope in sorted(found, key=lambda each: each[0])[-count:]]

    def oldest(self, channel: Channel) -> int | None:
        # Events are in the store too, where the relay notes what was acknowledged.
        if channel is Channel.EVENTS:
            return None
        with translate_redis_errors():
            firsts = [self._client.xrange(each, "-", "+", 1) for each in self._streams(channel)]
        return min(
            (_parse_entry_id(found[0][0])[0] * 1000 for found in firsts if found), default=None
        )

    def trim(self, channel: Channel, *, groups: Sequence[str] = (), before: int = 0) -> int:  # noqa: ARG002 - acknowledged entries have no use
        with translate_redis_errors():
            return sum(
                int(self._trim_script(keys=[stream], args=list(groups)))
                for stream in self._streams(channel)
            )

    def reply(self, replies: Sequence[tuple[str, Envelope]]) -> None:
        """Send replies to the streams that their receivers named; an unread stream expires.

        Each stream has one reader, so that secrets in a reply reach nobody else.
        """
        with translate_redis_errors(), self._client.pipeline(transaction=False) as pipeline:
            for name, envelope in replies:
                stream = f"{{{self._prefix}}}:replies:{name}"
                pipeline.xadd(stream, {"envelope": encode_envelope(envelope)}, maxlen=MOST_REPLIES)
                pipeline.expire(stream, REPLIES_KEPT)
            pipeline.execute()

    def relay_key(self, store: str) -> str:
        """The key that says how far the events of a store are published."""
        return self.stream(Channel.EVENTS, f"relayed:{store}")

    def begin_relay(self, store: str, passed: int) -> None:
        """Note that all events up to a number are published, and none after it."""
        with translate_redis_errors():
            self._check_partitions()
            self._client.delete(self.relay_key(store))
            self._client.hset(self.relay_key(store), "passed", passed)

    def relay(
        self, store: str, texts: Sequence[tuple[Envelope, str]], passed: tuple[int, int, int]
    ) -> bool:
        """Publish events of a store; False, and nothing published, if Redis lost earlier ones.

        `passed` has three numbers: up to which the store knows events to be published, up to which
        they are with these, and above which all events are that may still come.
        """
        keys = [self.relay_key(store), *self._streams(Channel.EVENTS)]
        pairs = [each for envelope, text in texts for each in (self.partition_of(envelope), text)]
        with translate_redis_errors():
            return bool(self._publish_script(keys=keys, args=[store, *passed, *pairs]))

    def least_kept(self, store: str) -> int | None:
        """The number above which all events of a store are that Redis still keeps."""
        with translate_redis_errors():
            firsts = [
                self._read_first_number(store, each) for each in self._streams(Channel.EVENTS)
            ]
        return min((each for each in firsts if each is not None), default=None)

    def _read_first_number(self, store: str, stream: str) -> int | None:
        """The number before the first event of a store in a stream; None if there is none.

        Events of another store, or of the same before a restore, have other numbers.
        """
        page: Entries = ()
        for count in (1, PAGE):
            page = self._client.xrange(stream, "-", "+", count)
            for _, fields in page:
                if fields.get("store", store) == store:
                    return int(fields.get("after", 0))
        # Behind a whole page of other events it is not looked for, and nothing is acknowledged.
        return 0 if len(page) == PAGE else None

    def owner(self, store: str) -> str:
        """The store that owns this Redis: the first one that asked."""
        with translate_redis_errors():
            self._client.set(self.owner_key, store, nx=True)
            return str(self._client.get(self.owner_key) or store)

    def health(self) -> Health:
        begun = self._clock.now()
        try:
            with translate_redis_errors():
                self._client.ping()
        except BusUnreachable as error:
            return Health(ok=False, latency=self._since(begun), detail=str(error))
        return Health(ok=True, latency=self._since(begun))

    def close(self) -> None:
        self._client.close()

    def _check_partitions(self) -> None:
        key = f"{{{self._prefix}}}:partitions"
        self._client.set(key, self.partitions, nx=True)
        self._refuse_partitions(int(self._client.get(key) or self.partitions))
        self._checked = True

    def _since(self, begun: int) -> float:
        return (self._clock.now() - begun) / MICROSECONDS

    def _streams(self, channel: Channel) -> list[str]:
        return [self.stream(channel, each) for each in range(self.partitions)]

    def _existing_streams(self, channel: Channel) -> list[str]:
        return [each for each in self._streams(channel) if self._client.exists(each)]

    def _with_group(self, subscription: Subscription, ask: Any) -> Any:  # noqa: ANN401 - the client's
        """Call `ask`; if Redis has lost the group, make it again, from all entries, and retry."""
        import redis  # noqa: PLC0415 - installed only for Redis

        with translate_redis_errors():
            try:
                return ask()
            except redis.ResponseError as error:
                # A command that was blocked while its stream was removed gets another message.
                if not str(error).startswith(
                    ("NOGROUP", "UNBLOCKED", "ERR The XGROUP", "ERR no such key")
                ):
                    raise
            self._create(subscription, "0")
            return ask()


def _parse_entry_id(entry: str) -> tuple[int, int]:
    time, _, place = entry.partition("-")
    return int(time), int(place)
