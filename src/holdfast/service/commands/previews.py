"""Previews for `--dry-run`: a command is carried out, its changes are read, and it is undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from holdfast.engine.engine import Engine
from holdfast.engine.writer.dry_run import DryRun
from holdfast.model.status import Status, TaskKind
from holdfast.model.text import clean_name
from holdfast.service.commands.commands import ControlCommands
from holdfast.service.commands.request_errors import Refused
from holdfast.service.queries.queries import Queries, add_addresses, view_rows
from holdfast.service.queries.run_tree import order_tasks
from holdfast.service.queries.views import View
from holdfast.store.database import Transaction

# These commands change nothing that a person sees of a task that runs already.
VERBS_SPARING_RUNNING = frozenset({"pause", "resume"})
VERBS_STARTING_AGAIN = frozenset({"retry", "reopen"})
FIELDS_OF_NEW_TASK = ("kind", "run_id", "step", "item", "title", "address")


@dataclass(frozen=True, kw_only=True, slots=True)
class Preview:
    """The tasks that would change, as they are now, and the tasks that would be created.

    Each has its address and the state that it `becomes`; a new task has no id yet. `indirect` is
    the number of tasks that would change only because the command changes others.
    """

    tasks: list[View] = field(default_factory=list)
    new_tasks: list[View] = field(default_factory=list)
    indirect: int = 0

    def view(self, **about: object) -> View:
        """The preview as JSON, of what `about` names; new tasks are `made`."""
        made = {"made": self.new_tasks} if self.new_tasks else {}
        others = {"indirect": self.indirect} if self.indirect else {}
        return {"dry_run": True, **about, **others, "tasks": self.tasks, **made}


class Previews:
    """Carries out commands of `ControlCommands` in the store, of which nothing is committed."""

    def __init__(self, engine: Engine, actor: str = "user") -> None:
        self._engine = engine
        self._actor = actor

    def preview(self, verb: str, identifier: str, *given: object, **options: object) -> Preview:
        """The preview of a command; raises `Refused` where the command would be refused."""
        (told,) = self.preview_each(verb, [identifier], *given, **options)
        if isinstance(told, Refused):
            raise told
        return told

    def preview_each(
        self, verb: str, identifiers: Sequence[str], *given: object, **options: object
    ) -> list[Preview | Refused]:
        """The same for several runs and tasks; each finds the changes of those before it."""

        def work(rehearsal: DryRun) -> list[Preview | Refused]:
            tx = rehearsal.tx
            rehearsal.lock(identifiers)
            queries = Queries(lambda look: look(tx), lambda: self._engine)
            command = getattr(ControlCommands(rehearsal.joined, queries, self._actor), verb)
            told: list[Preview | Refused] = []
            states: dict[str, str] = {}
            for identifier in identifiers:
                refused = _run_command(command, identifier, *given, **options)
                changed = [each for each in tx.take_changed() if each.startswith("t_")]
                shown = _read_changed_tasks(tx, verb, identifier, changed)
                told.append(refused or self._build_preview(tx, verb, shown, states))
            return told

        return self._engine.rehearse(work)

    def lift_limit(self, agent: str) -> Preview:
        """The preview of lifting the usage limit of an agent."""
        named = clean_name("agent", agent)

        def read(tx: Transaction) -> Preview:
            if not tx.read("limit_of_agent", agent=named):
                return Preview()
            rows = tx.read("limited_tasks", agent=named) + tx.read("waiting_tasks", agent=named)
            found = view_rows(tx, tx.read("tasks_by_id", ids=sorted(row["id"] for row in rows)))
            return Preview(tasks=add_addresses(tx, found))

        return self._engine.database.view(read)

    def _build_preview(
        self, tx: Transaction, verb: str, found: list[View], states: dict[str, str]
    ) -> Preview:
        """Compare tasks before and after a command; `states` keeps the states after it."""
        after = {each["id"]: each for each in add_addresses(tx, found)}
        before = self._engine.database.view(
            lambda outside: view_rows(outside, outside.read("tasks_by_id", ids=sorted(after)))
        )
        stood = [each | {"state": states.get(each["id"], each["state"])} for each in before]
        beside = sum(not _is_direct_change(verb, each, after[each["id"]]) for each in stood)
        told = [_view_changed_task(each, after.pop(each["id"])) for each in stood]
        made = [_view_new_task(each) for each in order_tasks([*after.values()])]
        states |= {each["id"]: each["becomes"] for each in told}
        return Preview(tasks=order_tasks(told), new_tasks=made, indirect=beside)


def _run_command(command: Callable[..., View], *given: object, **options: object) -> Refused | None:
    try:
        command(*given, **options)
    except Refused as refused:
        return refused
    return None


def _read_changed_tasks(
    tx: Transaction, verb: str, identifier: str, changed: Sequence[str]
) -> list[View]:
    """The tasks that a command has changed, without those that a person would not expect here."""
    found = view_rows(tx, tx.read("tasks_by_id", ids=sorted(changed)))
    if verb in VERBS_SPARING_RUNNING:
        return [each for each in found if each["status"] != Status.RUNNING]
    if verb == "finalize_plan":
        return [each for each in found if each["id"] != identifier]
    return found


def _is_direct_change(verb: str, before: View, after: View) -> bool:
    """Whether a command changes a task itself, and not only because it changes other tasks."""
    if verb == "cancel":
        return bool(after["status"] == Status.CANCELLED)
    # A group begins again only because a task in it does.
    alone = after["kind"] != TaskKind.GROUP and not after.get("superseded")
    began = alone and after["generation"] > before["generation"]
    return began if verb in VERBS_STARTING_AGAIN else True


def _view_changed_task(before: View, after: View) -> View:
    ceases = after.get("superseded") and after["status"] == before["status"]
    state = "superseded" if ceases else after["state"]
    return before | {"address": after["address"], "becomes": state}


def _view_new_task(task: View) -> View:
    told = {name: task[name] for name in FIELDS_OF_NEW_TASK if name in task}
    return told | {"becomes": task["state"]}
