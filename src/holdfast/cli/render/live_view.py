"""The live view of a run: a tree that is redrawn on a terminal, and lines of events elsewhere."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.cli.app.advice import CANCELLED, FAILED, NEEDS_PERSON
from holdfast.cli.app.session import with_store
from holdfast.cli.app.temporary_workers import INTERRUPTED, TemporaryWorkers
from holdfast.cli.app.terminal import (
    cut,
    escape,
    format_json,
    is_terminal,
    paint,
    print_line,
    print_note,
)
from holdfast.cli.render.attention import needs_of, nodes_asking, stands_still
from holdfast.cli.render.event_lines import describe_watched_event
from holdfast.cli.render.formats import (
    cost_of,
    describe_error_line,
    format_span,
    format_state,
    is_spent,
)
from holdfast.cli.render.step_status import question_of_task
from holdfast.cli.render.tree import draw_run
from holdfast.cli.render.tree_layout import Screen
from holdfast.model.event import read_outcome
from holdfast.service.queries.run_tree import name_steps
from holdfast.service.queries.views import read_time
from holdfast.service.service import Service

if TYPE_CHECKING:
    from rich.live import Live

View = dict[str, Any]
ExtraLines = Callable[[], Sequence[str]]
REDRAW = 1.0
LEAST_ROWS = 4
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PAGE = 1_000
NO_WORKERS = TemporaryWorkers()
EXIT_CODES = {"completed": 0, "failed": FAILED, "cancelled": CANCELLED}


def watch_run(
    service: Service,
    run_id: str,
    *,
    workers: TemporaryWorkers = NO_WORKERS,
    quiet: bool = False,
    extra_lines: ExtraLines = tuple,
    advises: bool = True,
) -> int:
    """Show a run until it ends or only a person can move it, and return the exit code.

    The `workers` are asked to start missing ones meanwhile. `extra_lines` returns lines about
    other things that happen meanwhile. A run that completed is followed by what to type next,
    if the view `advises` that.
    """
    try:
        if quiet:
            return _wait_for_end(service, run_id, workers)
        shown = _draw_until_end if is_terminal() else _print_until_end
        run = shown(service, run_id, workers, extra_lines)
    except KeyboardInterrupt:
        workers.note_interrupts()
        _print_left_running(run_id, workers.command)
        return INTERRUPTED
    return _print_end(run, workers.command, advises=advises)


def _wait_for_end(service: Service, run_id: str, workers: TemporaryWorkers) -> int:
    with _wake_on_change(service, workers) as wait:
        while (code := exit_code_of_run(service.queries.run(run_id, brief=True))) is None:
            wait()
    return code


def _draw_until_end(
    service: Service, run_id: str, workers: TemporaryWorkers, extra_lines: ExtraLines
) -> View:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console()

    def draw(run: View, rows: int | None) -> list[str]:
        extra = [cut(line, console.width) for line in extra_lines()]
        room = None if rows is None else max(LEAST_ROWS, rows - len(extra))
        screen = Screen(columns=console.width, rows=room)
        told = service.with_change_to_approve(run)
        return [*draw_run(told, service.read_last_lines(run), screen), *extra][:rows]

    # A view that is left stays on the terminal; at its end the run takes its place.
    live = Live(console=console, auto_refresh=False)
    with _keep_shown(live), _wake_on_change(service, workers) as wait:
        while True:
            run = service.queries.run(run_id, brief=True)
            # The last row is for the cursor.
            text = Text.from_ansi(
                "\n".join(draw(run, console.height - 1)), no_wrap=True, overflow="crop"
            )
            with put_interrupts_off():
                live.update(text, refresh=True)
            if exit_code_of_run(run) is not None:
                live.transient = True
                break
            wait()
    run = service.queries.run(run_id)
    for line in draw(run, None):
        print_line(line)
    _print_result(run, console.width, console.height)
    return run


@contextmanager
def _keep_shown(live: Live) -> Iterator[None]:
    live.start()
    try:
        yield
    finally:
        with put_interrupts_off():
            live.stop()


@contextmanager
def put_interrupts_off() -> Iterator[None]:
    """Put interrupts off until the block has ended.

    Rich would write what it was interrupted in once more, and lose count of its rows.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    noted: list[int] = []
    chosen = [each for each in INTERRUPTS if signal.getsignal(each) is signal.default_int_handler]
    for each in chosen:
        signal.signal(each, lambda number, _: noted.append(number))
    try:
        yield
    finally:
        for each in chosen:
            signal.signal(each, signal.default_int_handler)
    if noted:
        raise KeyboardInterrupt


def _print_result(run: View, columns: int, rows: int) -> None:
    """Print how a run ended, what that took, and its output as far as it fits on the terminal."""
    if run["status"] not in EXIT_CODES:
        return
    took = (read_time(run.get("finished_at")) or 0) - (read_time(run["created_at"]) or 0)
    parts = [f"{format_state(run['status'])} after {format_span(took)}", cost_of(run)]
    print_line("\n" + " · ".join(part for part in parts if part))
    _print_reason(run)
    lines = _describe_output(run)
    for line in lines[:rows]:
        print_line(cut(line, columns * rows))
    if len(lines) > rows:
        more = with_store(f"holdfast show {run['id']} --json")
        print_line(paint(f"… {len(lines) - rows} more lines: {more}", "dim"))


def _print_until_end(
    service: Service, run_id: str, workers: TemporaryWorkers, extra_lines: ExtraLines
) -> View:
    """Print the run, its events and at last its output, a line each."""
    after = printed = 0
    asked: set[str] = set()
    tried: set[str] = set()
    with _wake_on_change(service, workers) as wait:
        while True:
            run = service.queries.run(run_id, brief=True)
            if not after:
                print_line(f"{escape(run['workflow'])} {run_id}")
            told = print_events(service, run, after, tried)
            asked |= _print_questions(run, asked)
            for line in (said := extra_lines())[printed:]:
                print_line(line)
            printed = len(said)
            if told == after and exit_code_of_run(run) is not None:
                print_events(service, run, after, tried, final=True)
                _print_reason(run)
                for line in _describe_output(service.queries.run(run_id)):
                    print_line(line)
                return run
            # After events were printed there may be newer ones, so the next read does not wait.
            wait(REDRAW if told == after else 0.0)
            after = told


def _print_questions(run: View, told: set[str]) -> set[str]:
    """Print the open questions that are not in `told`, and return the keys of all open ones."""
    now = {f"{leaf.task['id']} {leaf.task['attempt']}": leaf for leaf in nodes_asking(run)}
    for key, leaf in now.items():
        if key not in told:
            said = "\n    ".join(escape(question_of_task(leaf.task), keep="\n").splitlines())
            print_line(f"{escape(leaf.name)}  asks: {said}")
    return set(now)


def _print_reason(run: View) -> None:
    """Print why the run as a whole did not complete: the events of its steps do not say so."""
    if run.get("error") is not None:
        print_line(f"because: {describe_error_line(run['error'])}")
    elif is_spent(run):
        print_line(f"because: its budget is used up, {cost_of(run)}")
    elif exit_code_of_run(run) == NEEDS_PERSON and not nodes_asking(run):
        for need in needs_of(run):
            place = run["workflow"] if need.step is None else need.step
            print_line(f"because: {escape(place)} {need.id}: {need.question}")


def _describe_output(run: View) -> list[str]:
    """The lines of an output; of a command that answered with plain text, the lines of its text."""
    output = run.get("output")
    if isinstance(output, dict) and output.keys() == {"text"}:
        output = output["text"] or None
    if isinstance(output, str):
        return escape(output, keep="\n\t").split("\n")
    return [] if output in (None, {}) else format_json(output, indent=2).split("\n")


def print_events(
    service: Service, run: View, after: int, tried: set[str] | None = None, *, final: bool = False
) -> int:
    """Print the events of a run after a sequence number, and return the last number.

    The set `tried` collects the tasks with a failed or lost attempt, from one call to the next.
    """
    tried = set() if tried is None else tried
    names = {run["id"]: str(run["workflow"])} | name_steps(run["tasks"])
    look = partial(service.queries.events, run["id"], limit=PAGE, final=final)
    while page := look(after=after)["items"]:
        if any((event.get("task_id") or event.get("run_id", "")) not in names for event in page):
            names |= name_steps(service.queries.run(run["id"], brief=True)["tasks"])
        for event in page:
            known = str(event.get("task_id") or event.get("run_id", ""))
            line = describe_watched_event(event, names.get(known, known), tried=known in tried)
            if line is not None:
                print_line(line)
            if read_outcome(event["type"], event.get("data", {})) in {"failed", "lost"}:
                tried.add(known)
        after = int(page[-1]["seq"])
        if len(page) < PAGE:
            break
    return after


class WaitForChange(Protocol):
    def __call__(self, most: float = REDRAW) -> object: ...


@contextmanager
def _wake_on_change(service: Service, workers: TemporaryWorkers) -> Iterator[WaitForChange]:
    """A function that waits between two reads of a run, until something was committed.

    It waits at least as long as the last read took: a read of a big run may take a second.
    """
    changed = threading.Event()
    leave = service.on_change(changed.set)
    began = time.monotonic()

    def wait(most: float = REDRAW) -> None:
        nonlocal began
        took = time.monotonic() - began
        workers.start_missing()
        time.sleep(took)
        changed.wait(most)
        changed.clear()
        began = time.monotonic()

    try:
        yield wait
    finally:
        leave()


def exit_code_of_run(run: View) -> int | None:
    """The exit code of a run that has ended or that only a person can move, else None."""
    if run["status"] in EXIT_CODES:
        return EXIT_CODES[run["status"]]
    return NEEDS_PERSON if stands_still(run) else None


def waits_for_person(run: View) -> list[View]:
    """The needs of a run as JSON: each question, and the command that answers it."""
    needs = [] if run["status"] in EXIT_CODES else needs_of(run)
    told = [{"id": each.id, "step": each.step} for each in needs]
    return [
        {name: value for name, value in known.items() if value is not None}
        | {"question": each.question, "next": each.next}
        for known, each in zip(told, needs, strict=True)
    ]


def _print_end(run: View, worker: str | None, *, advises: bool) -> int:
    code = exit_code_of_run(run) or 0
    if code == NEEDS_PERSON:
        for need in needs_of(run):
            print_note(f"needs you: {need.hint}")
        if worker is not None:
            print_note(f"then:      {with_store(worker)}")
    elif code:
        print_advice_on_stopped(run)
    elif advises and is_terminal():
        print_note(f"next:  {with_store('holdfast show ' + run['id'])}")
        print_note(f"       {with_store('holdfast events ' + run['id'])}")
    return code


def print_advice_on_stopped(run: View) -> None:
    """Print what to type next for a run that has failed or was cancelled."""
    retry = with_store(f"holdfast retry {run['id']}")
    if run["status"] == "cancelled":
        print_note(f"next:  {retry}   (it goes on)")
    else:
        print_note(f"next:  {with_store('holdfast why ' + run['id'])}")
        print_note(f"       {retry}")


def _print_left_running(run_id: str, worker: str | None) -> None:
    print_note(
        f"\n{run_id} was left as it is. Come back: {with_store(f'holdfast show {run_id} --follow')}"
    )
    if worker is not None:
        print_note("Its worker stops when what runs is done; Ctrl-C again gives that back now.")
        print_note(f"Go on:  {with_store(worker)}")
    print_note(f"End it: {with_store(f'holdfast cancel {run_id}')}")
