"""Who holds the places of a concurrency key, and whether any of them will be free.

Runs that hold each other's concurrency keys, and wait for ever unless somebody ends one.

A run has the place of its key until all that it has called has ended, so families that call for
each other's keys wait in a circle. None of them is failed for it: who looks is told, and chooses.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.engine.core.task_rows import RUN_PREFIX
from holdfast.store.database import Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyWait:
    """A run that has a place of a key, and one that it called, near or far, that waits."""

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
        """The youngest makes way, and goes on behind the others."""
        youngest = max(link.holder for link in self.links)
        return f'hf.runs.cancel("{youngest}"); hf.runs.retry("{youngest}")'


def find_circle(tx: Transaction, key: str) -> Circle | None:
    """The circle in which the wait for a key ends, if it does."""
    return _KeyWaits(tx).circle(key)


def find_circles(tx: Transaction) -> list[Circle]:
    """All circles, each once."""
    keys = _KeyWaits(tx)
    found = {frozenset(circle.links): circle for key in keys.wanted if (circle := keys.circle(key))}
    return list(found.values())


class _KeyWaits:
    """Who has the places of keys, and what each of those waits for, read as it is asked for."""

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
        """A key and those behind it, less all that have a place which will be free."""
        found = [key]
        for each in found:
            behind = {link.wanted for links in self._holders(each) for link in links}
            found += sorted(behind.difference(found))
        stuck = set(found)
        while moving := {each for each in stuck if self._will_be_free(each, stuck)}:
            stuck -= moving
        return stuck

    def _will_be_free(self, key: str, stuck: set[str]) -> bool:
        """Whether there is room, or one of those who have a place waits for nothing stuck."""
        waits = [any(link.wanted in stuck for link in links) for links in self._holders(key)]
        return not waits or not all(waits)

    def _holders(self, key: str) -> list[list[KeyWait]]:
        """For each who has a place of a key, what it waits for; nobody where there is room."""
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
    """How full a key is, and of whose tasks or runs; what would change it, if nothing else will."""
    (slot,) = tx.read("slot_by_key", key=key)
    held = [row["id"] for row in tx.read("slot_holders", key=key)]
    holders, full = ", ".join(held), slot["used"] >= slot["capacity"]
    state = "is full" if full else "has room"
    told = f"{key.partition(':')[2]} {state}, {slot['used']} of {slot['capacity']}"
    told = f"{told}: {holders}" if holders else told
    # A task gives its place back whenever it waits for others.
    circle = find_circle(tx, key) if key.startswith(RUN_PREFIX) else None
    if circle is not None:
        return f"{told}; {circle}", circle.fix
    return told, f'hf.why("{held[0]}")' if full and held else ""


def explain_place_in_key_queue(tx: Transaction, run_id: str) -> tuple[str, str]:
    """What a run waits for that has no place of its key yet."""
    (run,) = tx.read("run_by_id", run_id=run_id)
    return explain_slot(tx, run["concurrency_key"]) if run["concurrency_key"] else ("", "")
