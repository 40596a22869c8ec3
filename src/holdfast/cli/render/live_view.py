"""A run as it goes on: a tree that redraws itself on a terminal, lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from holdfast.cli.app.advice import CANCELLED, FAILED, NEEDS_PERSON
from holdfast.cli.app.session import with_store
from holdfast.cli.app.temporary_workers import INTERRUPTED, Beside
from holdfast.cli.app.terminal import escape, is_terminal, note, paint, say, tell_json
from holdfast.cli.render.attention import asking, needs_of, stands_still
from holdfast.cli.render.event_lines import happening
from holdfast.cli.render.formats import cost_of, error_line, is_spent
from holdfast.cli.render.step_status import question
from holdfast.cli.render.tree import draw_run
from holdfast.model.event import read_outcome
from holdfast.service.queries.run_tree import name_steps
from holdfast.service.service import Service

View = dict[str, Any]
Aside = Callable[[], Sequence[str]]
REDRAW = 1.0
PAGE = 1_000
ALONE = Beside()
CODES = {"completed": 0, "failed": FAILED, "cancelled": CANCELLED}


def watch(
    service: Service,
    run_id: str,
    *,
    beside: Beside = ALONE,
    quiet: bool = False,
    aside: Aside = tuple,
) -> int:
    """Show a run until it ends or only a person can move it; the answer is the exit code.

    Who is `beside` it is told to look who works on it. `aside` is asked for lines of something else
    that happens meanwhile.
    """
    try:
        if quiet:
            return _wait(service, run_id, beside)
        shown = _draw if is_terminal() else _tell
        run = shown(service, run_id, beside, aside)
    except KeyboardInterrupt:
        beside.interrupted()
        _say_left(run_id, beside.command)
        return INTERRUPTED
    return _say_end(run, beside.command)


def _wait(service: Service, run_id: str, beside: Beside) -> int:
    with _looks(service, beside) as wait:
        while (code := ended(service.queries.run(run_id, brief=True))) is None:
            wait()
    return code


def _draw(service: Service, run_id: str, beside: Beside, aside: Aside) -> View:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console()
    live = Live(console=console, auto_refresh=False, transient=True)
    with live, _looks(service, beside) as wait:
        while True:
            run = service.queries.run(run_id, brief=True)
            lines = [*draw_run(run, service.read_last_lines(run)), *aside()]
            room = max(5, console.height - 1)
            hidden = [] if len(lines) <= room else [paint(f"… {len(lines) - room + 1} more", "dim")]
            visible = lines if not hidden else [*lines[: room - 1], *hidden]
            live.update(Text.from_ansi("\n".join(visible)), refresh=True)
            if ended(run) is not None:
                break
            wait()
    for line in (*draw_run(service.queries.run(run_id)), *aside()):
        say(line)
    return run


def _tell(service: Service, run_id: str, beside: Beside, aside: Aside) -> View:
    """Say what happens, a line each: first which run it is, last what it gave."""
    after = heard = 0
    asked: set[str] = set()
    tried: set[str] = set()
    with _looks(service, beside) as wait:
        while True:
            run = service.queries.run(run_id, brief=True)
            if not after:
                say(f"{escape(run['workflow'])} {run_id}")
            told = tell_events(service, run, after, tried)
            asked |= _tell_questions(run, asked)
            for line in (said := aside())[heard:]:
                say(line)
            heard = len(said)
            if told == after and ended(run) is not None:
                tell_events(service, run, after, tried, final=True)
                _tell_reason(run)
                _tell_output(service.queries.run(run_id))
                return run
            # What was told may have gone on meanwhile.
            wait(REDRAW if told == after else 0.0)
            after = told


def _tell_questions(run: View, told: set[str]) -> set[str]:
    """Say what is asked of a person and was not yet told; gives all that is asked now."""
    now = {f"{leaf.task['id']} {leaf.task['attempt']}": leaf for leaf in asking(run)}
    for key, leaf in now.items():
        if key not in told:
            said = "\n    ".join(escape(question(leaf.task), keep="\n").splitlines())
            say(f"{escape(leaf.name)}  asks: {said}")
    return set(now)


def _tell_reason(run: View) -> None:
    """Why a run as a whole did not complete, which no event of a step tells."""
    if run.get("error") is not None:
        say(f"because: {error_line(run['error'])}")
    elif is_spent(run):
        say(f"because: its budget is used up, {cost_of(run)}")
    elif ended(run) == NEEDS_PERSON and not asking(run):
        for need in needs_of(run):
            place = run["workflow"] if need.step is None else need.step
            say(f"because: {escape(place)} {need.id}: {need.question}")


def _tell_output(run: View) -> None:
    output = run.get("output")
    if isinstance(output, str):
        say(escape(output, keep="\n\t"))
    elif output not in (None, {}):
        say(tell_json(output, indent=2))


def tell_events(
    service: Service, run: View, after: int, tried: set[str] | None = None, *, final: bool = False
) -> int:
    """Print what happened to a run after an event, a line each; the last event that was told.

    Tasks of which an attempt failed or was lost are kept in `tried`, from one call to the next.
    """
    tried = set() if tried is None else tried
    names = {run["id"]: str(run["workflow"])} | name_steps(run["tasks"])
    look = partial(service.queries.events, run["id"], limit=PAGE, final=final)
    while page := look(after=after)["items"]:
        if any((event.get("task_id") or event.get("run_id", "")) not in names for event in page):
            names |= name_steps(service.queries.run(run["id"], brief=True)["tasks"])
        for event in page:
            known = str(event.get("task_id") or event.get("run_id", ""))
            line = happening(event, names.get(known, known), tried=known in tried)
            if line is not None:
                say(line)
            if read_outcome(event["type"], event.get("data", {})) in {"failed", "lost"}:
                tried.add(known)
        after = int(page[-1]["seq"])
        if len(page) < PAGE:
            break
    return after


class Wait(Protocol):
    def __call__(self, most: float = REDRAW) -> object: ...


@contextmanager
def _looks(service: Service, beside: Beside) -> Iterator[Wait]:
    """A way to wait from one look at a run to the next, until something was committed.

    It takes as long as the look did at the least: of a big run, each is a second of reading.
    """
    changed = threading.Event()
    leave = service.on_change(changed.set)
    began = time.monotonic()

    def wait(most: float = REDRAW) -> None:
        nonlocal began
        took = time.monotonic() - began
        beside.look()
        time.sleep(took)
        changed.wait(most)
        changed.clear()
        began = time.monotonic()

    try:
        yield wait
    finally:
        leave()


def ended(run: View) -> int | None:
    """The exit code of a run that has ended, or that nobody but a person can move."""
    if run["status"] in CODES:
        return CODES[run["status"]]
    return NEEDS_PERSON if stands_still(run) else None


def waits_for_person(run: View) -> list[View]:
    """What is asked of a person, and what to type, for a program that reads it."""
    needs = [] if run["status"] in CODES else needs_of(run)
    told = [{"id": each.id, "step": each.step} for each in needs]
    return [
        {name: value for name, value in known.items() if value is not None}
        | {"question": each.question, "next": each.next}
        for known, each in zip(told, needs, strict=True)
    ]


def _say_end(run: View, worker: str | None) -> int:
    code = ended(run) or 0
    if code == NEEDS_PERSON:
        for need in needs_of(run):
            note(f"needs you: {need.told}")
        if worker is not None:
            note(f"then:      {with_store(worker)}")
    elif code == FAILED:
        note(f"next:  {with_store('holdfast why ' + run['id'])}")
        note(f"       {with_store('holdfast retry ' + run['id'])}")
    return code


def _say_left(run_id: str, worker: str | None) -> None:
    note(
        f"\n{run_id} was left as it is. Come back: {with_store(f'holdfast show {run_id} --follow')}"
    )
    if worker is not None:
        note("Its worker stops when what runs is done; Ctrl-C again gives that back now.")
        note(f"Go on:  {with_store(worker)}")
    note(f"End it: {with_store(f'holdfast cancel {run_id}')}")
