"""What a workflow file says of the whole workflow, besides its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.model.budget import Budget


@dataclass(frozen=True, kw_only=True, slots=True)
class Declared:
    """A workflow that has this was read from a file: its texts are templates.

    `input` is the JSON Schema of what a run is started with, `env` the names of the variables that
    texts may take from the worker's environment, `agents` what the file says of each.
    """

    input: Mapping[str, Any] | None = None
    budget: Budget | None = None
    agents: Mapping[str, Any] = field(default_factory=dict)
    env: tuple[str, ...] = ()
