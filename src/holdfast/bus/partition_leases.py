"""Which partitions of a group are a consumer's: its share, by leases that end by themselves."""

from __future__ import annotations

from holdfast.bus.execution_bus import Subscription
from holdfast.engine.engine import Engine

TTL = 5.0
_LOOKS_PER_TTL = 3


class Seats:
    """Shares the partitions of a group out among those who are there, evenly.

    A consumer that is gone is missed after `ttl` seconds, and its partitions go to the others.
    """

    def __init__(
        self,
        engine: Engine,
        subscription: Subscription,
        consumer: str,
        *,
        place: str = "",
        ttl: float = TTL,
    ) -> None:
        self._engine = engine
        self._consumer = consumer
        self._ttl = ttl
        # A group may be on several buses, with partitions on each.
        self._place = _place(subscription, place)
        self._tokens: dict[str, str] = {}
        self._looked: float | None = None

    def look(self, partitions: int) -> tuple[int, ...]:
        """The partitions that are this consumer's now; asked as often as one likes."""
        if self._keep() and self._hold(f"member/{self._consumer}"):
            self._share(partitions)
        return self._held()

    def keep(self) -> None:
        """Renew what is held, in the middle of long work: nothing is taken or given meanwhile."""
        if self._looked is not None:
            self._keep()

    def close(self) -> None:
        """Give back what others may have at once."""
        for name in list(self._tokens):
            self._release(name)
        self._looked = None

    def _keep(self) -> bool:
        """Whether it was time to renew, and that is done."""
        now = self._engine.clock.monotonic()
        due = self._looked is None or now - self._looked >= self._ttl / _LOOKS_PER_TTL
        if due:
            self._looked = now
            self._renew()
        return due

    def _share(self, partitions: int) -> None:
        members = len(self._leases("member/"))
        share = -(-partitions // max(1, members))
        for partition in self._held()[share:]:
            self._release(f"partition/{partition:02}")
        taken = self._leases("partition/")
        for partition in range(partitions):
            name = f"partition/{partition:02}"
            if len(self._held()) < share and name not in taken:
                self._hold(name)

    def _held(self) -> tuple[int, ...]:
        kinds = (name.partition("/") for name in self._tokens)
        return tuple(sorted(int(number) for kind, _, number in kinds if kind == "partition"))

    def _renew(self) -> None:
        renew = self._engine.leases.renew
        asked = {
            name: renew.submit(self._place + name, token, ttl=self._ttl)
            for name, token in self._tokens.items()
        }
        for name, answer in asked.items():
            if not answer.result().ok:
                del self._tokens[name]

    def _hold(self, name: str) -> bool:
        if name not in self._tokens:
            lease = self._engine.leases.acquire(self._place + name, self._consumer, ttl=self._ttl)
            if lease is not None:
                self._tokens[name] = lease.token
        return name in self._tokens

    def _release(self, name: str) -> None:
        self._engine.leases.release(self._place + name, self._tokens.pop(name))

    def _leases(self, kind: str) -> set[str]:
        return _live(self._engine, self._place, kind)


def members(engine: Engine, subscription: Subscription, *, place: str = "") -> list[str]:
    """The consumers of a group that live."""
    found = _live(engine, _place(subscription, place), "member/")
    return sorted(each.removeprefix("member/") for each in found)


def _place(subscription: Subscription, bus: str) -> str:
    return f"bus/{bus}{subscription.channel.value}/{subscription.group}/"


def _live(engine: Engine, place: str, kind: str) -> set[str]:
    first = place + kind
    rows = engine.database.view(
        lambda tx: tx.read("live_leases", first=first, last=first[:-1] + "0")
    )
    return {row["key"].removeprefix(place) for row in rows}
