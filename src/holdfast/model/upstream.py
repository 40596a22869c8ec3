"""Which steps of a body come before which, for all of them at once."""

from __future__ import annotations

from collections import deque

from holdfast.model.step import Step, links


class Upstream:
    """A bit for each step that another needs, near or far; of steps in a circle, all."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self.needs = {name: set(needs) for name, needs in links(steps).items()}
        self._bits = {name: 1 << place for place, name in enumerate(self.needs)}
        self._before: dict[str, int] = {}
        following: dict[str, list[str]] = {}
        for name, needs in self.needs.items():
            for need in needs:
                following.setdefault(need, []).append(name)
        unmet = {name: len(needs) for name, needs in self.needs.items()}
        ready = deque(name for name, count in unmet.items() if not count)
        while ready:
            done = ready.popleft()
            self._before[done] = self._mask(done)
            for name in following.get(done, ()):
                unmet[name] -= 1
                if not unmet[name]:
                    ready.append(name)

    def _mask(self, name: str) -> int:
        mask = 0
        for need in self.needs[name]:
            mask |= self._before[need] | self._bits[need]
        return mask

    @property
    def circling(self) -> dict[str, set[str]]:
        """The steps that cannot be put in an order, and which of each other they need."""
        left = self.needs.keys() - self._before.keys()
        return {name: self.needs[name] & left for name in self.needs if name in left}

    def precedes(self, name: str, step: str) -> bool:
        """Whether a step of this body is done before another one begins."""
        return bool(self._before.get(step, -1) & self._bits.get(name, 0))
