"""Operations put aside because another transaction has locked their rows, until they are written.

The one writer of a process must not wait with all that others ask of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic

from holdfast.clock import Clock
from holdfast.settings import Settings
from holdfast.store.group_commit.entries import Entry, O

FIRST_PAUSE = 0.02
LONGEST_PAUSE = 0.2
# How many are tried again at a time, and for how long they are waited for in vain.
RETRIED_AT_ONCE = 16
LONGEST_VAIN_WAIT = 0.06
# How long who is tried waits for a row, in parts of the time it has waited already: among others
# that take turns at one, who never stays in line never comes to it.
PATIENCE_SHARE = 0.05
SHORTEST_PATIENCE, LONGEST_PATIENCE = 0.02, 0.25


def longest_deferral(settings: Settings) -> float:
    """Several times within a lease: who renews one, and waits in vain, can still ask again."""
    return max(1.0, settings.lease / 3)


class DeferredEntries(Generic[O]):
    """What was put aside, and what has to be written after it, in the order it came."""

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
        """Put an operation aside; False when it has waited for long enough."""
        if entry.deferred_since is None and not self._deferred:
            self._pause, self._due = FIRST_PAUSE, self._clock.monotonic() + FIRST_PAUSE
        if self._age(entry) >= self._longest:
            return False
        self._deferred[entry] = None
        self._keys.update(entry.operation.keys)
        return True

    def defer_behind(self, entry: Entry[O]) -> bool:
        """Put an operation behind another about the same run or task, where one is aside."""
        keys = entry.operation.keys
        if self._keys.isdisjoint(keys):
            return False
        self._age(entry)
        self._keys.update(keys)
        self._followers.append(entry)
        return True

    def _age(self, entry: Entry[O]) -> float:
        """For how long an operation has waited; from now on, it waits."""
        now = self._clock.monotonic()
        if entry.deferred_since is None:
            entry.deferred_since = now
        return now - entry.deferred_since

    def seconds_to_retry(self) -> float | None:
        """In how many seconds something is to be tried again."""
        return max(0.0, self._due - self._clock.monotonic()) if self._deferred else None

    def retry_soon(self) -> None:
        self._due = 0.0

    def wait_for_retry(self) -> None:
        """Wait until something is to be tried again."""
        self._clock.sleep(self.seconds_to_retry() or 0.0)
        self.retry_soon()

    def retry_due(self, write: Callable[[Entry[O], float], object]) -> list[Entry[O]]:
        """Have each written that it is time for; who is still locked is put aside once more.

        Those who have waited the longest come first, and not all of them at a time.
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
        """Those who have waited for long enough, though it was not their turn to be tried."""
        late = [entry for entry in self._deferred if self._age(entry) >= self._longest]
        for entry in late:
            del self._deferred[entry]
        return late

    def release_followers(self, tried: Sequence[Entry[O]]) -> list[Entry[O]]:
        """What need not wait behind those that were tried, and have gone."""
        if all(entry in self._deferred for entry in tried):
            return []
        # Each of them is looked at again: another that is aside may be about the same.
        self._keys = {key for entry in self._deferred for key in entry.operation.keys}
        freed, self._followers = self._followers, []
        return freed

    def _set_pause(self, *, longer: bool) -> None:
        self._pause = min(LONGEST_PAUSE, 2 * self._pause) if longer else 0.0
        self._due = self._clock.monotonic() + self._pause
        self._pause = max(FIRST_PAUSE, self._pause)

    def take_all(self) -> tuple[list[Entry[O]], list[Entry[O]]]:
        """Give up what was put aside, and what has not begun behind it."""
        kept, self._deferred = list(self._deferred), {}
        behind, self._followers = self._followers, []
        return kept, behind
