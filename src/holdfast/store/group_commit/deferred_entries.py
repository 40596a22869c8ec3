"""Deferred entries: operations that wait because another transaction has locked their rows.

The writer of a process goes on with other operations meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic

from holdfast.clock import Clock
from holdfast.settings import Settings
from holdfast.store.group_commit.entries import Entry, O

FIRST_PAUSE = 0.02
LONGEST_PAUSE = 0.2
# Deferred entries that are retried in one turn of the writer, and the seconds that their failing
# retries may take together.
RETRIED_AT_ONCE = 16
LONGEST_VAIN_WAIT = 0.06
# A retry waits for its row for a part of the time since the entry was deferred, within bounds. A
# retry that does not wait never gets a row for which other transactions wait in PostgreSQL's queue.
PATIENCE_SHARE = 0.05
SHORTEST_PATIENCE, LONGEST_PATIENCE = 0.02, 0.25


def longest_deferral(settings: Settings) -> float:
    """The seconds that an operation is deferred at most: a renewal can come again in its lease."""
    return max(1.0, settings.lease / 3)


class DeferredEntries(Generic[O]):
    """The deferred entries, and the entries that must follow them, in the order they came."""

    def __init__(self, clock: Clock, settings: Settings) -> None:
        self._clock = clock
        self._longest = longest_deferral(settings)
        self._deferred: dict[Entry[O], None] = {}
        self._followers: list[Entry[O]] = []
        self._keys: set[str] = set()
        self._pause = FIRST_PAUSE
        self._due = 0.0

    def __bool__(self) -> bool:
        return bool(self._deferred)

    def defer(self, entry: Entry[O]) -> bool:
        """Defer an entry; False when the entry has waited for long enough."""
        if entry.deferred_since is None and not self._deferred:
            self._pause, self._due = FIRST_PAUSE, self._clock.monotonic() + FIRST_PAUSE
        if self._age(entry) >= self._longest:
            return False
        self._deferred[entry] = None
        self._keys.update(entry.operation.keys)
        return True

    def defer_behind(self, entry: Entry[O]) -> bool:
        """Keep an entry behind a deferred one about the same run or task, if there is one."""
        keys = entry.operation.keys
        if self._keys.isdisjoint(keys):
            return False
        self._age(entry)
        self._keys.update(keys)
        self._followers.append(entry)
        return True

    def _age(self, entry: Entry[O]) -> float:
        """The seconds since an entry was first deferred; the first call starts the time."""
        now = self._clock.monotonic()
        if entry.deferred_since is None:
            entry.deferred_since = now
        return now - entry.deferred_since

    def seconds_to_retry(self) -> float | None:
        """The seconds until the next retry; None when nothing is deferred."""
        return max(0.0, self._due - self._clock.monotonic()) if self._deferred else None

    def retry_soon(self) -> None:
        self._due = 0.0

    def wait_for_retry(self) -> None:
        """Sleep until the next retry is due."""
        self._clock.sleep(self.seconds_to_retry() or 0.0)
        self.retry_soon()

    def retry_due(self, write: Callable[[Entry[O], float], object]) -> list[Entry[O]]:
        """Write deferred entries if that is due; an entry that is still locked is deferred again.

        The entries that have waited longest are retried first, up to a limit. The result is the
        entries that were retried.
        """
        tried: list[Entry[O]] = []
        misses, in_vain = 0, 0.0
        if self._deferred and self._clock.monotonic() >= self._due:
            while self._deferred and in_vain < LONGEST_VAIN_WAIT and len(tried) < RETRIED_AT_ONCE:
                entry = next(iter(self._deferred))
                if entry in tried:
                    break
                del self._deferred[entry]
                tried.append(entry)
                patience = min(
                    LONGEST_PATIENCE, max(SHORTEST_PATIENCE, PATIENCE_SHARE * self._age(entry))
                )
                write(entry, patience)
                if entry in self._deferred:
                    misses, in_vain = misses + 1, in_vain + patience
            self._set_pause(longer=misses == len(tried))
        return tried

    def take_expired(self) -> list[Entry[O]]:
        """Remove and return the entries that have waited for long enough."""
        late = [entry for entry in self._deferred if self._age(entry) >= self._longest]
        for entry in late:
            del self._deferred[entry]
        return late

    def release_followers(self, tried: Sequence[Entry[O]]) -> list[Entry[O]]:
        """Remove and return the followers, if any entry of `tried` is no longer deferred."""
        if all(entry in self._deferred for entry in tried):
            return []
        # The caller queues all followers again: another deferred entry may be about the same task.
        self._keys = {key for entry in self._deferred for key in entry.operation.keys}
        freed, self._followers = self._followers, []
        return freed

    def _set_pause(self, *, longer: bool) -> None:
        self._pause = min(LONGEST_PAUSE, 2 * self._pause) if longer else 0.0
        self._due = self._clock.monotonic() + self._pause
        self._pause = max(FIRST_PAUSE, self._pause)

    def take_all(self) -> tuple[list[Entry[O]], list[Entry[O]]]:
        """Remove and return the deferred entries, and the followers, which have not begun."""
        kept, self._deferred = list(self._deferred), {}
        behind, self._followers = self._followers, []
        return kept, behind
