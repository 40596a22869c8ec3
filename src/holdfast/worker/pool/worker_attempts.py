"""Worker attempts: those that run or wait for their turn, and how ends elsewhere are heard."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from holdfast.clock import MICROSECONDS
from holdfast.model.worker import Overrun
from holdfast.worker.attempt.execution import Execution
from holdfast.worker.store_port import StorePort

# The worker's own thread looks so often while anything may change that no hint tells it of, and so
# soon after a hint while steps wait for their turn.
LOOK_EVERY, LOOK_SOON = 0.1, 0.02

# An attempt that is over is an overrun once its function has gone on for so many seconds. At most
# so many are told.
OVERRUN_AFTER = 1.0
MOST_OVERRUNS = 100

Key = tuple[str, int]


class WorkerAttempts:
    """The executions of a worker by task and attempt.

    An attempt that ends elsewhere, mostly by a cancel, is told so, and never begins if it has not
    begun yet: also when it ends between the commit of its claim and `add`, which `note_claim`
    announces.
    """

    def __init__(self, store: StorePort) -> None:
        self._store = store
        self._lock = store.threads.lock()
        self._held: dict[Key, Execution] = {}
        # How many claims have tasks that are not added yet, and which of these have ended.
        self._claims_under_way = 0
        self._ended_early: set[Key] = set()
        self._seen: set[Key] = set()
        self._looked_at = self._looked_at_waiting = store.clock.monotonic()
        # Whether there was a hint since the attempts that wait for their turn were looked at.
        self._hinted = False
        # Since when attempts that are over were seen to go on, and those that have for a while.
        self._over_since: dict[Key, float] = {}
        self.overruns: tuple[Overrun, ...] = ()

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def list(self) -> Sequence[Execution]:
        with self._lock:
            return list(self._held.values())

    def list_begun(self) -> Sequence[Execution]:
        return [each for each in self.list() if each.began_at is not None]

    def note_claim(self) -> None:
        """Note that there is a claim whose tasks will be added."""
        with self._lock:
            self._claims_under_way += 1

    def add(self, executions: Sequence[Execution]) -> None:
        """Add the executions of one claim."""
        with self._lock:
            self._held.update({each.key: each for each in executions})
            ended = [each for each in executions if each.key in self._ended_early]
            self._claims_under_way -= 1
            if not self._claims_under_way:
                self._ended_early.clear()
        for each in ended:
            each.end()

    def forget(self, execution: Execution) -> None:
        with self._lock:
            self._held.pop(execution.key, None)

    def end(self, keys: Collection[Key]) -> None:
        """Stop attempts that have ended, unless they have reported themselves."""
        with self._lock:
            ended = [self._held[key] for key in keys if key in self._held]
            if self._claims_under_way:
                self._ended_early.update(key for key in keys if key not in self._held)
        for execution in ended:
            if not execution.reported:
                execution.end()

    def note_hint(self) -> None:
        """Note that another process may have ended attempts."""
        self._hinted = True

    def end_over_and_choose_pause(self, *, waiting: bool) -> float:
        """End attempts that another process has ended; gives when to look again at the latest.

        `waiting` says that some wait for their turn, and must not begin.
        """
        if not self._held:
            changed = self._note_overruns((), self._looked_at)
            return LOOK_EVERY if changed else self._store.settings.poll
        now = self._store.clock.monotonic()
        if waiting:
            self._look_at_waiting(now)
        if now < self._looked_at + LOOK_EVERY:
            return LOOK_SOON if waiting and self._hinted else LOOK_EVERY
        self._looked_at = now
        held = self.list()
        changed = self._note_overruns(held, now)
        live = {each.key for each in held if not each.ended.is_set()}
        # Most steps end before a second look, so the store is asked only about those that last.
        lasting, self._seen = live & self._seen, live
        if lasting:
            self.end(self._store.work.attempts_over(lasting))
        soon = waiting or changed or live - lasting
        return LOOK_EVERY if soon else self._store.settings.poll

    def _note_overruns(self, held: Sequence[Execution], now: float) -> bool:
        """Note which attempts are over and yet go on; gives whether that is still changing.

        Commands and coroutines end soon after their attempts, and a plain function when it likes.
        """
        over = {
            each.key: each.began_at
            for each in held
            if each.began_at is not None and not each.returned and each.ended.is_set()
        }
        self._over_since = {key: self._over_since.get(key, now) for key in over}
        found = [key for key, since in self._over_since.items() if now >= since + OVERRUN_AFTER]
        lasting = sorted(found)[:MOST_OVERRUNS]
        if lasting == [(each.task_id, each.attempt) for each in self.overruns]:
            return len(found) < len(over)
        clock = self._store.now()
        self.overruns = tuple(
            Overrun(*key, clock - round((now - over[key]) * MICROSECONDS)) for key in lasting
        )
        return True

    def _look_at_waiting(self, now: float) -> None:
        """After a hint, look at once at those that wait for their turn, though not too often."""
        if self._hinted and now >= self._looked_at_waiting + LOOK_SOON:
            self._hinted, self._looked_at_waiting = False, now
            waiting = [each.key for each in self.list() if each.began_at is None]
            self.end(self._store.work.attempts_over(waiting))
