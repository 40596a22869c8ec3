"""What is asked about hooks: that they are kept, or kept no more."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.engine.asked import Keys, Operation
from holdfast.model.hook import hook_step


@dataclass(frozen=True, kw_only=True, slots=True)
class RegisterHooks(Operation):
    """Each a name, its ends, what it is about, and the template of its tasks."""

    hooks: tuple[tuple[str, str, str | None, str], ...]

    @property
    def keys(self) -> Keys:
        return tuple(hook_step(name) for name, *_ in self.hooks)


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoveHook(Operation):
    name: str

    @property
    def keys(self) -> Keys:
        return (hook_step(self.name),)
