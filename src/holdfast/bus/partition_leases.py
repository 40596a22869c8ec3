"""Partition leases: the share of a consumer in the partitions of its group."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from holdfast.bus.execution_bus import Subscription
from holdfast.engine.engine import Engine
from holdfast.store.database import Row

TTL = 5.0
_MEMBER, _PARTITION = "member/", "partition/"
_LOOKS_PER_TTL = 3


class PartitionLeases:
    """The leases of one consumer, which divide the partitions of a group evenly among its members.

    The leases of a consumer that is gone end after `ttl` seconds, and others take its partitions.
    """

    def __init__(
        self,
        engine: Engine,
        subscription: Subscription,
        consumer: str,
        *,
        key_prefix: str = "",
        ttl: float = TTL,
    ) -> None:
        self._engine = engine
        self._consumer = consumer
        self._ttl = ttl
        # A group may be on several buses, with partitions on each.
        self._key_prefix = _make_key_prefix(subscription, key_prefix)
        self._tokens: dict[str, str] = {}
        self._renewed_at: float | None = None

    def update_share(self, partitions: int) -> tuple[int, ...]:
        """The partitions of this consumer; the leases are looked at three times per `ttl`."""
        if self._renew_when_due() and self._acquire(_MEMBER + self._consumer):
            self._balance_share(partitions)
        return self._held_partitions()

    def renew_when_due(self) -> None:
        """Renew the leases during long work, if that is due; the share does not grow."""
        if self._renewed_at is not None:
            self._renew_when_due()

    def close(self) -> None:
        """Release all leases, which others may have at once."""
        for name in list(self._tokens):
            self._release(name)
        self._renewed_at = None

    def _renew_when_due(self) -> bool:
        """Renew the leases if that is due; True if it was."""
        now = self._engine.clock.monotonic()
        due = self._renewed_at is None or now - self._renewed_at >= self._ttl / _LOOKS_PER_TTL
        if due:
            self._renewed_at = now
            self._renew()
        return due

    def _balance_share(self, partitions: int) -> None:
        members = len(self._live_names(_MEMBER))
        share = -(-partitions // max(1, members))
        for partition in self._held_partitions()[share:]:
            self._release(f"{_PARTITION}{partition:02}")
        taken = self._live_names(_PARTITION)
        for partition in range(partitions):
            name = f"{_PARTITION}{partition:02}"
            if len(self._held_partitions()) < share and name not in taken:
                self._acquire(name)

    def _held_partitions(self) -> tuple[int, ...]:
        kinds = (name.partition("/") for name in self._tokens)
        return tuple(sorted(int(number) for kind, _, number in kinds if kind == "partition"))

    def _renew(self) -> None:
        renew = self._engine.leases.renew
        asked = {
            name: renew.submit(self._key_prefix + name, token, ttl=self._ttl)
            for name, token in self._tokens.items()
        }
        for name, answer in asked.items():
            if not answer.result().ok:
                del self._tokens[name]

    def _acquire(self, name: str) -> bool:
        if name not in self._tokens:
            lease = self._engine.leases.acquire(
                self._key_prefix + name, self._consumer, ttl=self._ttl
            )
            if lease is not None:
                self._tokens[name] = lease.token
        return name in self._tokens

    def _release(self, name: str) -> None:
        self._engine.leases.release(self._key_prefix + name, self._tokens.pop(name))

    def _live_names(self, kind: str) -> set[str]:
        return _list_live(self._engine, self._key_prefix, kind)


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupReader:
    """A live consumer of a group: its stable name, since when, and how many partitions it reads."""

    name: str
    since: int | None
    partitions: int


def list_readers(
    engine: Engine, subscription: Subscription, *, key_prefix: str = ""
) -> list[GroupReader]:
    """The live consumers of a group, by name."""
    prefix = _make_key_prefix(subscription, key_prefix)
    rows = _read_live_leases(engine, prefix)
    names = {row["key"].removeprefix(prefix): row for row in rows}
    held = Counter(row["owner"] for name, row in names.items() if name.startswith(_PARTITION))
    members = {
        name.removeprefix(_MEMBER): row["held_since"]
        for name, row in names.items()
        if name.startswith(_MEMBER)
    }
    return [
        GroupReader(name=name, since=since, partitions=held[name])
        for name, since in sorted(members.items())
    ]


def _make_key_prefix(subscription: Subscription, bus: str) -> str:
    return f"bus/{bus}{subscription.channel.value}/{subscription.group}/"


def _list_live(engine: Engine, key_prefix: str, kind: str) -> set[str]:
    rows = _read_live_leases(engine, key_prefix + kind)
    return {row["key"].removeprefix(key_prefix) for row in rows}


def _read_live_leases(engine: Engine, first: str) -> list[Row]:
    """The live leases whose keys begin with a text that ends with a slash; "0" comes after it."""
    last = first[:-1] + "0"
    return engine.database.view(lambda tx: tx.read("live_leases", first=first, last=last))
