"""Own preset: an agent command line that a project describes in its settings."""

from __future__ import annotations

from holdfast.presets.catalogue import PRESETS
from holdfast.presets.preset import Access, Preset
from holdfast.presets.stream_reader import TextReader
from holdfast.settings import OwnPreset

TEXT = "text"
STREAMS = (*PRESETS, TEXT)


def make_own_preset(own: OwnPreset) -> Preset:
    like = PRESETS.get(own.stream)
    return Preset(
        name=own.name,
        title=own.name,
        program=own.command,
        prompt=own.prompt,
        access={name: Access(flags=flags) for name, flags in own.access.items()},
        reader=TextReader if like is None else like.reader,
        model=own.model,
        turns=own.turns,
        usd=own.usd,
        session=own.session,
        variables=own.env,
        totals_go_on=like is not None and like.totals_go_on,
        silent_at_limit=like is not None and like.silent_at_limit,
    )
