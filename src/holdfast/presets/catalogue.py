"""Catalogue: the presets of the well-known agent command lines, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from holdfast.presets.aider import AIDER
from holdfast.presets.claude import CLAUDE
from holdfast.presets.codex import CODEX
from holdfast.presets.copilot import COPILOT
from holdfast.presets.cursor import CURSOR
from holdfast.presets.gemini import GEMINI
from holdfast.presets.opencode import OPENCODE
from holdfast.presets.preset import Preset
from holdfast.presets.qwen import QWEN

_ALL = (CLAUDE, CODEX, GEMINI, COPILOT, OPENCODE, QWEN, AIDER, CURSOR)
PRESETS: Mapping[str, Preset] = MappingProxyType({each.name: each for each in _ALL})
