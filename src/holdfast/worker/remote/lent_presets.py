"""Lent presets: the presets that a worker elsewhere lends a server, and up to which access."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping

from holdfast.errors import InvalidInput
from holdfast.presets.catalogue import PRESETS
from holdfast.presets.preset import ACCESS
from holdfast.settings import AgentUse, OwnPreset
from holdfast.worker.steps.permission import NotAllowed

_SIGN = "="


def is_lent_preset(name: str) -> bool:
    """Whether what is allowed is a preset, as in `claude=edit`."""
    return _SIGN in name and "://" not in name and "/" not in name


class LentPresets:
    """Presets with the most access that each is lent with."""

    def __init__(self, names: Iterable[str], own: Mapping[str, OwnPreset]) -> None:
        self._own = own
        self._most: dict[str, str] = {}
        for name in names:
            preset, _, access = name.partition(_SIGN)
            known = [*PRESETS, *own]
            if preset not in known:
                raise InvalidInput("allow", f"{name}: no preset is {preset!r}; {', '.join(known)}")
            if access not in ACCESS:
                raise InvalidInput("allow", f"{name}: the access is one of {', '.join(ACCESS)}")
            self._most[preset] = access

    def __bool__(self) -> bool:
        return bool(self._most)

    @property
    def missing(self) -> list[str]:
        """The programs of lent presets that are missing on this machine."""
        found = [
            PRESETS[name].program[0] if name in PRESETS else self._own[name].command[0]
            for name in self._most
        ]
        return [program for program in found if shutil.which(program) is None]

    def check(self, use: AgentUse) -> None:
        """Raise `NotAllowed` if the preset is not lent, or not with so much access."""
        asked = f"{use.preset}={use.access}"
        advice = f"to have it run here, start this worker again with `--allow {asked}` besides"
        most = self._most.get(use.preset)
        if most is None:
            raise NotAllowed(
                f"the preset {use.preset!a} is not among those that this worker lends, and the "
                f"step is left to others; {advice}"
            )
        if use.access not in ACCESS or ACCESS.index(use.access) > ACCESS.index(most):
            raise NotAllowed(
                f"this worker lends the preset {use.preset!a} up to access {most}, and the step "
                f"asks for {use.access!a} and is left to others; {advice}"
            )
        if use.flags or use.mcp is not None:
            key = "flags" if use.flags else "mcp"
            raise NotAllowed(
                f"the step gives the preset {use.preset!a} {key} of its own, which could give it "
                "more access, and is left to others; only --allow-any allows that"
            )
