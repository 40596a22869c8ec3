"""Names of keys in other tools, and the key of a workflow file that says the same."""

from __future__ import annotations

import re
from collections.abc import Collection

from holdfast.definition.keys import AGENT, MERGE, STEP, WORKFLOW, WORKSPACE, Section
from holdfast.model.workflow.flaw import suggest

_REMINDERS = {"max_attempts": "it counts the first attempt too"}
_ATTEMPT_NAMES = {
    "timeout": "deadline time_limit timeout_minutes timeout_seconds",
    "max_attempts": "retries retry attempts max_retries tries",
    "backoff": "delay retry_delay retry_wait",
    "tags": "labels runs_on queue",
    "env": "environment vars",
    "cwd": "dir directory folder working_dir working_directory workdir",
}
# For each section the names that other tools give to its keys, in snake case.
KEY_NAMES: dict[str, dict[str, str]] = {
    WORKFLOW.name: {
        "name": "id title",
        "description": "about",
        "input": "inputs params parameters args arguments",
        "env": "environment",
        "labels": "tags metadata annotations",
        "budget": "cost max_cost",
        "deadline": "timeout time_limit",
        "agents": "roles workers",
        "steps": "jobs tasks stages pipeline nodes",
        "workspace": "worktree repository repo git checkout",
    },
    AGENT.name: {
        "command": "run cmd script exec",
        "external": "remote",
        "use": "preset client uses",
        "access": "permission permissions mode permission_mode sandbox",
        "turns": "max_turns",
        "usd": "budget max_budget max_budget_usd cost",
        "flags": "args arguments options",
        **_ATTEMPT_NAMES,
    },
    STEP.name: {
        "id": "name key",
        "title": "name label description display_name",
        "agent": "role assignee",
        "prompt": "instructions instruction message ask",
        "run": "command commands cmd script shell bash exec",
        "http": "url request webhook",
        "workflow": "uses call subworkflow",
        "input": "with inputs args arguments params parameters",
        "outputs": "output returns result produces",
        "needs": "depends_on depends dependencies requires after upstream",
        "when": "if condition only only_if",
        "for_each": "foreach each loop items with_items matrix map",
        "parallel": "max_parallel parallelism max_concurrency",
        "steps": "tasks jobs do body",
        "approval": "approve manual gate confirm",
        "verifies": "verify checks reviews validates",
        "max_rounds": "rounds max_iterations",
        "on_failure": "on_error catch continue_on_error allow_failure ignore_errors",
        "concurrency": "lock mutex concurrency_key",
        "merge": "merge_into rebase squash",
        "workspace": "worktree access",
        **_ATTEMPT_NAMES,
    },
    WORKSPACE.name: {
        "git": "repository repo url path",
        "from": "base start ref commit",
        "setup": "install prepare run command init",
        "copy": "files include",
        "keep": "retention keep_for",
        "filters": "lfs",
        "max_file": "max_size max_file_size",
    },
    MERGE.name: {"into": "target to onto branch base", "strategy": "method mode"},
}


def suggest_key(section: Section, name: str, given: Collection[str]) -> str:
    """A hint with the key that is meant by an unknown name; keys that are `given` come last."""
    known = {key.name: key for key in section.keys if key.supported}
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).replace("-", "_").lower()
    meant = [
        key
        for key, names in KEY_NAMES.get(section.name, {}).items()
        if key in known and plain in names.split()
    ]
    meant.sort(key=lambda key: key in given)
    if not meant:
        return suggest(plain, known)
    reminder = known[meant[0]].reminder or _REMINDERS.get(meant[0], "")
    return f"did you mean {meant[0]!r}?" + (f" {reminder}" if reminder else "")
