"""The coding agents of the command line that are known by name, and which of them are installed."""

from __future__ import annotations

import shutil

KNOWN = ("claude", "codex", "gemini", "opencode", "aider", "cursor-agent", "amp", "goose")


def installed_agents() -> list[str]:
    return [name for name in KNOWN if shutil.which(name)]
