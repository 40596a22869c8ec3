"""The commands that control runs and tasks: cancel, retry, pause, approve, answer, signal."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app.command_registry import command
from holdfast.cli.app.options import Address, AnyAddress, AnyAddresses, DryRun, Json, read_value
from holdfast.cli.app.run_selection import RunSelection, takes_selection
from holdfast.cli.app.session import open_service, with_store
from holdfast.cli.app.terminal import escape, paint, print_json, print_line, print_note
from holdfast.cli.render.bulk_progress import change_all
from holdfast.cli.render.formats import format_count, format_state
from holdfast.cli.render.preview import preview_each, print_preview
from holdfast.errors import InvalidInput

if TYPE_CHECKING:
    from holdfast.service.service import Service

View = dict[str, Any]
CHOICES = 10
_COMMENT = re.compile(r"(?P<file>.+?):(?P<line>[0-9]{1,9})?\s+(?P<text>.*\S.*)", re.DOTALL)


@command("cancel", example="holdfast cancel --all --label customer=7 --dry-run")
@takes_selection()
def cancel(
    addresses: AnyAddresses = None,
    dry_run: DryRun = False,
    json: Json = False,
    *,
    selection: RunSelection,
) -> int:
    """Cancel runs or tasks, with everything open in them."""
    selection.require_either(bool(addresses))
    if selection.everything:
        return change_all("cancel", selection, dry_run=dry_run, json=json)
    return _change_each("cancel", addresses or [], dry_run=dry_run, json=json)


@command("retry", example="holdfast retry @last --from test")
@takes_selection(status=True)
def retry(
    address: AnyAddress = None,
    step: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="STEP",
            help="Start again from this step of a run, and all that needs it.",
        ),
    ] = None,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="Redo a task even if done, and all that needs it; effects run again.",
        ),
    ] = False,
    dry_run: DryRun = False,
    json: Json = False,
    *,
    selection: RunSelection,
) -> int:
    """Retry what failed or was cancelled, with fresh budgets."""
    selection.require_either(address is not None)
    if address is None:
        if step is not None or again:
            raise InvalidInput("all", "tries again what failed; --from and --again are of one run")
        return change_all("retry", selection, dry_run=dry_run, json=json)
    with open_service() as service:
        found = service.addresses.find(address)
        if step is not None and (again or found.startswith("t_")):
            raise InvalidInput("from", "is for a run; of a task, --again does it and what needs it")
        if again and found.startswith("r_"):
            raise InvalidInput("again", "is for a task; of a run, --from STEP does it again")
        if dry_run:
            preview = (
                service.previews.preview("reopen", found)
                if again
                else service.previews.preview("retry", found, step=step)
            )
            how = " --again" if again else "" if step is None else f" --from {step}"
            print_preview(preview, "retry", f"{found}{how}", json=json)
            return 0
        change = service.commands.reopen if again else partial(service.commands.retry, step=step)
        return _reopen_each(service, found, change, json=json)


@command("pause", example="holdfast pause @last")
@takes_selection()
def pause(
    addresses: AnyAddresses = None,
    dry_run: DryRun = False,
    json: Json = False,
    *,
    selection: RunSelection,
) -> int:
    """Let running steps finish, and start nothing new."""
    selection.require_either(bool(addresses))
    if selection.everything:
        return change_all("pause", selection, dry_run=dry_run, json=json)
    return _change_each("pause", addresses or [], dry_run=dry_run, json=json)


@command("resume", example="holdfast resume @last --add-usd 5")
@takes_selection()
def resume(
    addresses: AnyAddresses = None,
    agent: Annotated[
        str | None, typer.Option(help="Resume this agent, which is at its usage limit.")
    ] = None,
    add_usd: Annotated[
        float | None, typer.Option(help="Add dollars to the budget of a run.")
    ] = None,
    add_attempts: Annotated[
        int | None, typer.Option(help="Add attempts to the budget of a run.")
    ] = None,
    dry_run: DryRun = False,
    json: Json = False,
    *,
    selection: RunSelection,
) -> int:
    """Resume what is paused, out of budget, or at a usage limit."""
    if agent is not None:
        typed = addresses or selection.everything or any(selection.filters.values())
        if typed or add_usd is not None or add_attempts is not None:
            raise InvalidInput("agent", "is for all of that agent, and takes nothing else")
        _resume_agent(agent, dry_run=dry_run, json=json)
        return 0
    if not addresses and not selection.everything and not any(selection.filters.values()):
        raise InvalidInput("id", "is missing: name a run or a task, --all or --agent NAME")
    selection.require_either(bool(addresses))
    added = {"add_usd": add_usd, "add_attempts": add_attempts}
    more = {name: value for name, value in added.items() if value is not None}
    if not addresses:
        if more:
            raise InvalidInput("all", "lifts pauses; a budget is raised run by run")
        return change_all("resume", selection, dry_run=dry_run, json=json)
    return _change_each("resume", addresses, dry_run=dry_run, json=json, **more)


@command("approve", example='holdfast approve @last:approve --note "looks good"')
def approve(
    address: Address,
    text: Annotated[
        str | None, typer.Option("--note", help="A note to keep with the approval.")
    ] = None,
    json: Json = False,
) -> None:
    """Approve what waits for approval."""
    with open_service() as service:
        asked = _find_one_asking(service, address, "approve")
        print_changed(service, service.commands.approve(asked, text), json=json)


CommentOptions = Annotated[
    list[str] | None,
    typer.Option(metavar='"FILE:LINE TEXT"', help="A comment on a line of a file."),
]


@command("reject", example='holdfast reject @last:approve --reason "not yet"')
def reject(
    address: Address,
    reason: Annotated[str | None, typer.Option(help="The reason; it becomes the error.")] = None,
    comment: CommentOptions = None,
    json: Json = False,
) -> None:
    """Reject what waits for approval; it fails or goes back."""
    comments = _read_comments(comment)
    with open_service() as service:
        asked = _find_one_asking(service, address, "reject")
        print_changed(service, service.commands.reject(asked, reason, comments), json=json)


def _read_comments(given: Sequence[str] | None) -> list[View]:
    """Comments on a line of a file, or on a file as a whole."""
    comments: list[View] = []
    for each in given or ():
        found = _COMMENT.fullmatch(each)
        if found is None:
            reason = f"{each[:40]!r} names no file; write --comment 'src/a.py:3 Why?'"
            raise InvalidInput("comment", reason)
        line = {} if found["line"] is None else {"line": int(found["line"])}
        comments.append({"file": found["file"], **line, "text": found["text"]})
    return comments


@command("answer", example='holdfast answer @last:plan "use the new API"')
def answer(
    address: Address,
    text: Annotated[str, typer.Argument(metavar="ANSWER", help="The answer: text or JSON.")],
    json: Json = False,
) -> None:
    """Answer a step's question; the step goes on with the answer."""
    with open_service() as service:
        asked = _find_one_asking(service, address, "approve")
        print_changed(service, service.commands.answer(asked, read_value(text)), json=json)


def _find_one_asking(service: Service, address: str, verb: str) -> str:
    """The task that waits for a person; if several tasks of a run do, the error lists them all."""
    from holdfast.cli.render.step_status import advise_answer, describe_waiting

    found = service.addresses.find(address)
    waiting = [] if found.startswith("t_") else service.queries.tasks_for_people(run=found)
    if len(waiting) <= 1:
        return service.commands.find_task_for_person(found)
    choices = [
        f"  {with_store(advise_answer(task, verb))}   {describe_waiting(task)}"
        for task in waiting[:CHOICES]
    ]
    more = len(waiting) - CHOICES
    rest = [f"  and {more} more: {with_store(f'holdfast why {found}')}"] if more > 0 else []
    told = [f"several tasks of {found} wait for a person; name one:", *choices, *rest]
    raise InvalidInput("task", "\n".join(told))


@command("continue", example='holdfast continue @last:implement "also update the docs"')
def continue_task(
    address: Address,
    message: Annotated[
        str | None, typer.Argument(metavar="MESSAGE", help="The message: text or JSON.")
    ] = None,
    comment: CommentOptions = None,
    json: Json = False,
) -> int:
    """Re-open a finished task with a message or comments."""
    said = None if message is None else read_value(message)
    comments = _read_comments(comment)
    with open_service() as service:
        found = service.addresses.task(address)
        follow_up = partial(service.commands.follow_up, message=said, comments=comments)
        return _reopen_each(service, found, follow_up, json=json)


@command("signal", example='holdfast signal @last courier.arrived \'{"at": "noon"}\'')
def signal(
    address: Address,
    name: Annotated[str, typer.Argument(help="The name of the signal.")],
    payload: Annotated[
        str | None, typer.Argument(help="What the step receives: text or JSON.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="Send only once under this key.")] = None,
    json: Json = False,
) -> None:
    """Send a signal that a step waits for."""
    with open_service() as service:
        found = service.addresses.find(address)
        value = None if payload is None else read_value(payload)
        sent = service.commands.signal(found, name, value, key)
    if json:
        print_json(sent)
        return
    print_line(f"{found} got {escape(name)}" + (" before" if sent["repeated"] else ""))
    if not sent.get("waited_for", True):
        from holdfast.cli.render.side_effects import note_unheard

        more = [] if payload is None else [payload]
        note_unheard(found, name, sent["awaited"], more + ([] if key is None else ["--key", key]))


def _change_each(
    verb: str, addresses: list[str], *, dry_run: bool, json: bool, **options: Any
) -> int:
    """Apply a command to each address, also after a refusal, and return the worst exit code."""
    from holdfast.cli.app.advice import print_error
    from holdfast.cli.render.side_effects import print_failures_above, read_tasks_above
    from holdfast.service.commands.request_errors import Refused

    worst = 0
    with open_service() as service:
        # All addresses are resolved before the first change.
        every = [service.addresses.find(address) for address in addresses]
        if dry_run:
            return preview_each(service, verb, every, json=json, **options)
        for found in every:
            before = read_tasks_above(service, found) if verb == "cancel" and not json else []
            try:
                answer = getattr(service.commands, verb)(found, **options)
            except Refused as error:
                worst = max(worst, print_error(error, json=json))
                continue
            if verb == "resume":
                _print_goes_on(service, answer, json=json)
            else:
                print_changed(service, answer, json=json)
            print_failures_above(service, before, found)
    return worst


def _resume_agent(agent: str, *, dry_run: bool, json: bool) -> None:
    with open_service() as service:
        if dry_run:
            preview = service.previews.lift_limit(agent)
            print_preview(preview, "resume", f"--agent {agent}", json=json, about={"agent": agent})
            return
        told = service.commands.lift_limit(agent)
    if json:
        print_json(told)
    elif told["repeated"]:
        print_line(f"{escape(agent)} is not at a limit")
    else:
        tasks = format_count(told["tasks"], "task")
        print_line(f"{escape(agent)} goes on, with {tasks} that waited for it")


def _reopen_each(
    service: Service, identifier: str, change: Callable[[str], View], *, json: bool
) -> int:
    """Re-open a run or task, print the runs and plans above that go on, and return the exit code.

    The exit code is FAILED if the run or task has failed again at once.
    """
    from holdfast.cli.app.advice import FAILED
    from holdfast.cli.render.side_effects import note_failed_again, print_reopened, read_tasks_above

    before = [] if json else read_tasks_above(service, identifier)
    answer = change(identifier)
    now = answer.get("run") or answer["task"]
    if now["status"] == "failed":
        print_changed(service, answer, json=json)
        if not json:
            note_failed_again(now)
        return FAILED
    _print_goes_on(service, answer, json=json)
    if before and not answer["repeated"]:
        print_reopened(service, before, identifier)
    return 0


def _print_goes_on(service: Service, answer: View, *, json: bool) -> None:
    print_changed(service, answer, json=json)
    if not json:
        from holdfast.cli.app.temporary_workers import note_unserved_steps
        from holdfast.cli.render.side_effects import note_still_held

        now = answer.get("run") or answer["task"]
        if "run" in answer:
            note_still_held(now)
        if "limit" in now["holds"]:
            lift = with_store(f"holdfast resume --agent {now['agent']}")
            print_note(paint(f"Its agent is at its usage limit; let that go on: {lift}", "dim"))
        note_unserved_steps(service, now)


def print_changed(service: Service, answer: View, *, json: bool) -> None:
    """Print a changed run or task; a task of a run is named by its address."""
    task = answer.get("task", {})
    names = service.queries.name_each([task["id"]]) if "run_id" in task and not json else {}
    print_answer(answer, json=json, place=names.get(task.get("id", "")))


def print_answer(answer: View, *, json: bool, place: str | None = None) -> None:
    if json:
        print_json(answer)
        return
    from holdfast.service.queries.run_tree import name_task

    now = answer.get("run") or answer["task"]
    name = escape(now["workflow"] if "run" in answer else name_task(now, place))
    state = now.get("state") or now["status"]
    held = "" if state == "held" else "held: "
    holds = f" ({held}{', '.join(now['holds'])})" if now["holds"] else ""
    before = " (as before)" if answer["repeated"] else ""
    more = f"; {escape(answer['detail'])}" if "detail" in answer else ""
    print_line(f"{name} {now['id']} is {format_state(state)}{holds}{before}{more}")
