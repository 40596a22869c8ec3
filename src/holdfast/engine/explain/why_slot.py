"""Full concurrency keys: the holders of their slots, and runs that wait for each other in a circle.

A run holds the slot of its key until all runs that it has called have ended, so runs whose called
runs want each other's keys wait for ever. None of them is failed for that: the explanation tells,
and a person chooses which one to end.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.engine.core.task_rows import RUN_PREFIX
from holdfast.model.advice import Action, AdviceText, advise
from holdfast.store.database import Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyWait:
    """A run that has a slot of a key, and a run called below it that waits for another key."""

    holder: str
    key: str
    waiting: str
    wanted: str

    def __str__(self) -> str:
        key, wanted = (each.partition(":")[2] for each in (self.key, self.wanted))
        return f"{self.holder} has {key}, and {self.waiting} that it called waits for {wanted}"


@dataclass(frozen=True, slots=True)
class Circle:
    links: tuple[KeyWait, ...]

    def __str__(self) -> str:
        return f"they wait for each other in a circle: {'; '.join(map(str, self.links))}"

    @property
    def fix(self) -> str:
        """The calls by which the youngest run makes way, and goes on after the others."""
        youngest = max(link.holder for link in self.links)
        return AdviceText(advise(Action.CANCEL, youngest), "; ", advise(Action.RETRY, youngest))


def find_circle(tx: Transaction, key: str) -> Circle | None:
    """The circle that keeps a key full for ever, if there is one."""
    return _KeyWaits(tx).circle(key)


def find_circles(tx: Transaction) -> list[Circle]:
    """All circles of the store, each once."""
    keys = _KeyWaits(tx)
    found = {frozenset(circle.links): circle for key in keys.wanted if (circle := keys.circle(key))}
    return list(found.values())


class _KeyWaits:
    """The holders of keys, and the waits of each, read when they are needed."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._waits: dict[str, list[tuple[str, str]]] = {}
        for row in tx.read("called_waits"):
            self._waits.setdefault(row["holder"], []).append((row["id"], row["key"]))
        self.wanted = sorted({key for waits in self._waits.values() for _, key in waits})
        self._known: dict[str, list[list[KeyWait]]] = {}

    def circle(self, key: str) -> Circle | None:
        stuck = self._stuck(key)
        path: dict[str, KeyWait] = {}
        while key in stuck and key not in path:
            path[key] = next(link for link in self._holders(key)[0] if link.wanted in stuck)
            key = path[key].wanted
        links = list(path.values())
        return Circle(tuple(links[list(path).index(key) :])) if path else None

    def _stuck(self, key: str) -> set[str]:
        """The key and the keys that its holders wait for, less those that will have a free slot."""
        found = [key]
        for each in found:
            behind = {link.wanted for links in self._holders(each) for link in links}
            found += sorted(behind.difference(found))
        stuck = set(found)
        while moving := {each for each in stuck if self._will_be_free(each, stuck)}:
            stuck -= moving
        return stuck

    def _will_be_free(self, key: str, stuck: set[str]) -> bool:
        """Whether the key has room, or a holder that waits for no stuck key."""
        waits = [any(link.wanted in stuck for link in links) for links in self._holders(key)]
        return not waits or not all(waits)

    def _holders(self, key: str) -> list[list[KeyWait]]:
        """The waits of each holder of a key; no holders if the key has room."""
        if key not in self._known:
            slots = self._tx.read("slot_by_key", key=key)
            full = any(slot["used"] >= slot["capacity"] for slot in slots)
            holders = self._tx.read("slot_holders", key=key) if full else []
            self._known[key] = [self._links(row["id"], key) for row in holders]
        return self._known[key]

    def _links(self, holder: str, key: str) -> list[KeyWait]:
        waits = self._waits.get(holder, ())
        return [
            KeyWait(holder=holder, key=key, waiting=waiting, wanted=wanted)
            for waiting, wanted in waits
        ]


def explain_slot(tx: Transaction, key: str) -> tuple[str, str]:
    """Say how full a key is and which tasks or runs hold it, with a fix if it is full."""
    (slot,) = tx.read("slot_by_key", key=key)
    held = [row["id"] for row in tx.read("slot_holders", key=key)]
    holders, full = ", ".join(held), slot["used"] >= slot["capacity"]
    state = "is full" if full else "has room"
    told = f"{key.partition(':')[2]} {state}, {slot['used']} of {slot['capacity']}"
    told = f"{told}: {holders}" if holders else told
    # Tasks form no circles: a task frees its slot whenever it waits for others.
    circle = find_circle(tx, key) if key.startswith(RUN_PREFIX) else None
    if circle is not None:
        return f"{told}; {circle}", circle.fix
    return told, advise(Action.WHY, held[0]) if full and held else ""


def explain_place_in_key_queue(tx: Transaction, run_id: str) -> tuple[str, str]:
    """Explain the key that a run waits for, while it has no slot of it."""
    (run,) = tx.read("run_by_id", run_id=run_id)
    return explain_slot(tx, run["concurrency_key"]) if run["concurrency_key"] else ("", "")
