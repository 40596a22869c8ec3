"""Branches: the name of the branch on which people see the commits of a run."""

from __future__ import annotations

import re
import unicodedata

from holdfast.model.workflow.declarations import Workspace
from holdfast.model.workflow.reference import Unresolved
from holdfast.model.workflow.template import Variables, parse_template

PREFIX = "holdfast/"
# Enough of the random end of an id that two runs of one name do not share a branch.
ID_CHARACTERS = 6
LONGEST_SLUG = 40
LONGEST_BRANCH = 200
_PATH = re.compile(r"[.~]|/|[A-Za-z]:[\\/]|[A-Za-z][A-Za-z0-9+.-]*://")
# What git refuses in the name of a branch: see `git help check-ref-format`.
_REFUSED = re.compile(
    r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|^[-./]|[./]$|\.lock(?=/|$)|^@$|^HEAD$"
)


def name_branch(workspace: Workspace, variables: Variables) -> str:
    """The branch of the run that the variables `input` and `run` are of; raises `Unresolved`.

    The name follows from the run alone, so it is known before the branch is made.
    """
    if workspace.branch is not None:
        named = parse_template("workspace.branch", workspace.branch).text(variables).text
        if (mistake := find_branch_mistake(named)) is not None:
            raise Unresolved(f"{named[:LONGEST_BRANCH]!r} cannot be a branch: {mistake}")
        return named
    run = variables["run"]
    told = (run["key"], _longest_text(variables["input"]), run["workflow"])
    slug = next((made for each in told if (made := _make_slug(each))), "run")
    return f"{PREFIX}{slug}-{run['id'][-ID_CHARACTERS:]}"


def find_branch_mistake(name: str) -> str | None:
    """The reason why git takes no branch of this name, or None."""
    if not name.strip():
        return "it is empty"
    if len(name) > LONGEST_BRANCH:
        return f"it is longer than {LONGEST_BRANCH} characters"
    if (found := _REFUSED.search(name)) is not None:
        return f"git takes no {found[0]!r} there"
    return None


def _longest_text(value: object) -> str | None:
    """The longest text of an input that is no path and no address, whatever the order of names."""
    inner = value.values() if isinstance(value, dict) else (value,)
    texts = sorted(each.strip() for each in inner if isinstance(each, str))
    return max((each for each in texts if not _PATH.match(each)), key=len, default=None)


def _make_slug(text: str | None) -> str:
    """The words of a text in lower case, as many as fit, joined by hyphens."""
    plain = unicodedata.normalize("NFKD", (text or "")[: 10 * LONGEST_SLUG])
    words = re.findall(r"[a-z0-9]+", plain.encode("ascii", "ignore").decode().lower())
    slug = ""
    for word in words:
        longer = f"{slug}-{word}" if slug else word[:LONGEST_SLUG]
        if len(longer) > LONGEST_SLUG:
            break
        slug = longer
    return slug
