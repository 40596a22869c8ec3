"""Addresses: ids, beginnings of ids, `@last`, keys and `RUN:step`, resolved to the id meant."""

from __future__ import annotations

import re
from difflib import get_close_matches

from holdfast.engine.engine import Engine
from holdfast.engine.read.key_addresses import (
    KEY_PREFIX,
    RUN_PREFIX,
    TASK_PREFIX,
    find_by_key,
    read_key,
    read_neighbours,
)
from holdfast.engine.read.pages import choose_runs_query
from holdfast.engine.read.task_state import name_tasks
from holdfast.errors import InvalidInput, NotFound
from holdfast.ids import ALPHABET
from holdfast.model.text import clean_key, is_task_id
from holdfast.service.queries.run_tree import name_task
from holdfast.service.queries.views import describe_removed, view_task
from holdfast.store.database import Transaction

LAST = "@last"
MAX_SHOWN = 8
MAX_COMPARED = 200
ID_LENGTH = 22
_ID_BEGINNING = re.compile(rf"[rt]_[{ALPHABET}]{{1,20}}")
_FORMS = (
    "write an id (r_… or t_…), the beginning of one, @last, key:KEY, or a step of a run as "
    "RUN:step (@last:build.2.implement)"
)
_KINDS = {"r": "run", "t": "task"}


def is_key_address(text: str) -> bool:
    """Whether a text names a run or task by its key, as `key:order-7`."""
    return text.startswith(KEY_PREFIX)


class Addresses:
    """Finds the run or task that a text means; an error lists ids that are near."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def find(self, text: str, wanted: str = "") -> str:
        """The id of the run or task that is meant; `wanted` is the prefix of the ids preferred."""
        given = text.strip()
        if is_key_address(given):
            key = read_key(given) or ""
            return self._engine.database.view(lambda tx: find_by_key(tx, key, wanted))
        run, colon, step = given.partition(":")
        if colon:
            return self._engine.runs.task(self.run(run), step).id if step else self.run(run)
        if given == LAST:
            return self._find_last_run()
        if not _ID_BEGINNING.fullmatch(given):
            raise InvalidInput("id", f"{given[:60]!r} names no run or task; {_FORMS}")
        return self._find_by_beginning(given)

    def run(self, text: str) -> str:
        found = self.find(text, RUN_PREFIX)
        if found.startswith(TASK_PREFIX):
            own = self._engine.tasks.get(found).run_id
            instead = "it is part of no run" if own is None else f"its run is {own}"
            raise InvalidInput("run", f"{found} is a task, and a run is wanted; {instead}")
        return found

    def task(self, text: str) -> str:
        found = self.find(text, TASK_PREFIX)
        if found.startswith(RUN_PREFIX):
            steps = [task.step for task in self._engine.runs.tasks(found) if not task.parent_id]
            names = ", ".join(f"{found}:{step}" for step in steps[:MAX_SHOWN])
            raise InvalidInput("task", f"{found} is a run, and a task is wanted; its are {names}")
        return found

    def task_or_key(self, text: str, *, whole: bool = False) -> str:
        """The id of the task that is meant by an address, or by the key that the task has.

        A `whole` address is an id or a key: programs pass no beginnings of ids, and no `@last`.
        """
        given = text.strip()
        if is_task_id(given) or is_key_address(given):
            return self.task(given)
        key = clean_key("id", given)
        keyed = self._engine.database.view(lambda tx: tx.read("tasks_by_key", keys=[key]))
        if keyed:
            return str(keyed[0]["id"])
        if not whole and (":" in given or given == LAST or _ID_BEGINNING.fullmatch(given)):
            return self.task(given)
        reason = f"{given[:60]!r} is the key of no task; write a key, or an id (t_…)"
        raise InvalidInput("id", reason)

    def complete_id(self, text: str) -> list[str]:
        """The newest ids that begin with a text, for the completion of a shell."""
        if is_key_address(text):
            return self._complete_key(text.removeprefix(KEY_PREFIX))
        found: list[str] = []
        for kind, listed in (("r_", self._engine.runs.list), ("t_", self._engine.tasks.list)):
            if kind.startswith(text[:2]):
                found += [
                    each.id for each in listed(limit=MAX_COMPARED) if each.id.startswith(text)
                ]
        return found

    def _complete_key(self, text: str) -> list[str]:
        known = self._engine.database.view(lambda tx: read_neighbours(tx, text))
        return [KEY_PREFIX + key for key in known if key.startswith(text)]

    def _find_last_run(self) -> str:
        query, asked = choose_runs_query(self._engine.clock.now, limit=1, after=None)
        asked["called"] = False
        newest = self._engine.database.view(lambda tx: tx.read(query, **asked))
        if not newest:
            raise NotFound(LAST, "run", "nothing was ever run; `holdfast run WORKFLOW` starts one")
        return str(newest[0]["id"])

    def _find_by_beginning(self, text: str) -> str:
        query = "run_ids_between" if text.startswith("r_") else "task_ids_between"

        def read(tx: Transaction) -> list[str]:
            # "~" sorts after every character of an id.
            rows = tx.read(query, first=text, last=text + "~", count=MAX_SHOWN + 1)
            return [row["id"] for row in rows]

        found = self._engine.database.view(read)
        if not found:
            removed = self._engine.database.view(lambda tx: describe_removed(tx, text))
            raise NotFound(text, _KINDS[text[0]], removed or self._describe_nearest(text))
        if len(found) > 1:
            more = ", …" if len(found) > MAX_SHOWN else ""
            names = ", ".join(self._describe(each) for each in found[:MAX_SHOWN])
            raise InvalidInput("id", f"{text} is the beginning of several: {names}{more}")
        return found[0]

    def _describe_nearest(self, text: str) -> str:
        listed = self._engine.runs.list if text.startswith("r_") else self._engine.tasks.list
        known = [each.id for each in listed(limit=MAX_COMPARED)]
        if not known:
            return "there is none at all yet"
        close = get_close_matches(text.ljust(ID_LENGTH, known[0][-1]), known, n=3, cutoff=0.8)
        if close and len(text) == ID_LENGTH:
            return f"the nearest: {', '.join(self._describe(each) for each in close)}"
        return f"the newest: {', '.join(self._describe(each) for each in known[:3])}"

    def _describe(self, identifier: str) -> str:
        if identifier.startswith("r_"):
            run = self._engine.runs.get(identifier)
            return f"{identifier} ({run.workflow}, {run.status})"
        task = self._engine.tasks.get(identifier)
        address = self._engine.database.view(lambda tx: name_tasks(tx, [identifier]))[identifier]
        return f"{identifier} ({name_task(view_task(task), address)}, {task.status})"
