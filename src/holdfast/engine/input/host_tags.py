"""Host tags: tasks that work in a folder of one machine go to the workers of that machine alone."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Sequence

from holdfast.model.workflow.declarations import Workspace
from holdfast.model.workflow.reference import Unresolved
from holdfast.model.workflow.step_template import render_workspace
from holdfast.model.workflow.template import Variables

PREFIX = "host:"
_SSH_PLACE = re.compile(r"[\w.~-]+@[\w.-]+:(?!/?/)[^\s:][^\s]*")


def name_own_host() -> str:
    """The name of this machine, as far as a tag may hold it."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", socket.gethostname()).strip(".-") or "here"


def make_host_tag(host: str | None = None) -> str:
    return PREFIX + (name_own_host() if host is None else host)


def add_own_host(tags: Sequence[str]) -> tuple[str, ...]:
    """The tags that a worker offers: its own, and that of its machine."""
    return tuple(dict.fromkeys((*tags, make_host_tag())))


def find_host_tag(tags: str) -> str | None:
    """The host tag among the tags of a task, which the store keeps as JSON."""
    return next((each for each in json.loads(tags) if each.startswith(PREFIX)), None)


def is_folder(repository: str) -> bool:
    """Whether a repository is named by a folder of a machine, and not by a URL."""
    elsewhere = "://" in repository and not repository.startswith("file://")
    return not elsewhere and _SSH_PLACE.fullmatch(repository) is None


def choose_host_tag(
    workspace: Workspace | None, variables: Variables, host: str | None
) -> str | None:
    """The tag of the tasks of a run whose repository is a folder; that of this machine, or host."""
    if workspace is None:
        return None
    try:
        repository = render_workspace(workspace, {**variables, "feedback": "", "attempt": 0}).git
    except Unresolved:
        return None
    return make_host_tag(host) if is_folder(repository) else None
