"""The commands of `db`, `doctor` and `clean`: schema, backups, moves, checks and cleanup."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from holdfast.cli.app.advice import FAILED
from holdfast.cli.app.command_registry import command, group
from holdfast.cli.app.options import DryRun, Json
from holdfast.cli.app.session import (
    format_url,
    locate_store,
    open_service,
    project_settings,
    with_store,
)
from holdfast.cli.app.terminal import escape, paint, print_json, print_line, print_note
from holdfast.cli.render.formats import format_bytes, format_count

database = group("db", "Upgrade, back up, restore and move the store.")

MEGABYTE = 1_000_000
Evict = Annotated[
    bool, typer.Option("--evict", help="Make its workers give back what they run, and leave.")
]


@command("upgrade", of=database, example="holdfast db upgrade --db postgresql://localhost/jobs")
def upgrade(json: Json = False) -> None:
    """Create the store, or upgrade its schema to this version of Holdfast."""
    with open_service(begins=True) as service:
        told = service.schema()
    told["url"] = format_url(told["url"])
    if json:
        print_json(told)
    else:
        print_line(f"{told['url']} is at migration {told['migration']}")


@command("backup", of=database, example="holdfast db backup before-the-upgrade.db")
def backup(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="The new file.")],
    json: Json = False,
) -> None:
    """Back up a SQLite store to a new file, while it is in use."""
    from holdfast.service.admin.backup import back_up

    told = back_up(locate_store(), target)
    if json:
        print_json(told)
    else:
        print_line(f"{escape(target)} holds the whole store, {told['bytes'] / MEGABYTE:.1f} MB")
        print_note(f"Use it: holdfast runs --db {escape(quote(str(target)))}")


@command("restore", of=database, example="holdfast db restore before-the-upgrade.db --dry-run")
def restore(
    backup: Annotated[Path, typer.Argument(metavar="FILE", help="A backup of a SQLite store.")],
    evict: Evict = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Restore a SQLite store from a checked backup; keeps the old file."""
    from holdfast.service.admin.backup import Restore, restore_backup

    told = restore_backup(
        Restore(location=locate_store(), backup=backup, evict=evict, dry_run=dry_run)
    )
    if json:
        print_json(told)
        return
    if dry_run:
        print_line(f"{escape(backup)} is whole and in order; nothing was changed")
        print_note(with_store(f"Do it: holdfast db restore {escape(quote(str(backup)))}"))
        return
    print_line(f"{escape(told['target'])} is restored from {escape(backup)}")
    if "kept" in told:
        print_line(f"the old file is kept: {escape(told['kept'])}")
    print_note(f"next:  {with_store('holdfast runs')}")


@command("move", of=database, example="holdfast db move postgresql://localhost/jobs --dry-run")
def move(
    target: Annotated[
        str, typer.Argument(metavar="TARGET_URL", help="An empty database of the other kind.")
    ],
    evict: Evict = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Move the store between SQLite and PostgreSQL; tokens stay valid."""
    from holdfast.service.admin.store_move import Move, move_store

    asked = Move(location=locate_store(), target=target, evict=evict, dry_run=dry_run)
    told = move_store(asked, _print_progress)
    told |= {name: format_url(told[name]) for name in ("source", "target")}
    if json:
        print_json(told)
        return
    rows = format_count(sum(told["rows"].values()), "row")
    if dry_run:
        for name, number in told["rows"].items():
            print_line(f"  {name.removeprefix('holdfast_'):<10} {number}")
        print_line(f"would carry {rows} over to {escape(told['target'])}; nothing was changed")
        return
    said = "was moved before" if told["before"] else "is there, counted and checked"
    print_line(f"{escape(told['target'])}: the whole store {said}, {rows}")
    print_line(f"{escape(told['source'])} is unchanged; do not use it any more")
    named = escape(quote(told["target"]))
    print_note(f"next:  export HOLDFAST_DB={named}   (or database: in holdfast.yaml)")


def _print_progress(table: str, done: int, total: int) -> None:
    if total:
        print_note(paint(f"  {table.removeprefix('holdfast_'):<10} {done} of {total}", "dim"))


@command("doctor", example="holdfast doctor --fix --dry-run")
def doctor(
    fix: Annotated[
        bool, typer.Option("--fix", help="Repair what is safe to repair; destroys nothing.")
    ] = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> int | None:
    """Check every invariant of the store. Exits 1 if one is broken."""
    with open_service() as service:
        repairs = service.repair(dry_run=dry_run) if fix else None
        told = service.doctor(project_settings())
    if json:
        print_json(told if repairs is None else {**told, "healed": repairs})
    else:
        _print_repairs(repairs)
        _print_diagnosis(told)
    return None if told["ok"] else FAILED


def _print_repairs(repairs: dict[str, Any] | None) -> None:
    if repairs is None:
        return
    would = "would take" if repairs["dry_run"] else "took"
    leases = format_count(len(repairs["expired_leases"]), "expired lease")
    print_line(f"{would} back {leases}{_describe_taken_back(repairs)}")
    looked = format_count(len(repairs["looked_at"]), "open run")
    moved = "" if repairs["dry_run"] else f", {len(repairs['advanced'])} of which moved on"
    print_line(f"{'would look' if repairs['dry_run'] else 'looked'} at {looked}{moved}")
    for run in repairs["ended"]:
        print_line(f"  {escape(run['workflow'])} {run['id']} has {run['status']}")
    if plans := repairs["settled_plans"]:
        settled = format_count(len(plans), "plan")
        print_line(f"{'would settle' if repairs['dry_run'] else 'settled'} {settled}")
    if woken := repairs["woken"]:
        told = f"{format_count(len(woken), 'task')} that waited for what is there"
        print_line(f"{'would wake' if repairs['dry_run'] else 'woke'} {told}")
    if lost := repairs["passed_on"]:
        told = f"what {format_count(len(lost), 'task')} waited for in vain"
        print_line(f"{'would pass on' if repairs['dry_run'] else 'passed on'} {told}")


def _describe_taken_back(repairs: dict[str, Any]) -> str:
    """What became of the tasks whose leases were taken back: 2 are queued, 1 is failed."""
    counts = Counter(each["status"] for each in repairs["taken_back"])
    told = [
        f"{format_count(number, 'task')} {'is' if number == 1 else 'are'} {status} now"
        for status, number in sorted(counts.items())
    ]
    return f": {', '.join(told)}" if told else ""


def _print_diagnosis(told: dict[str, Any]) -> None:
    broken = [check for check in told["checks"] if check["violations"]]
    for check in broken:
        for violation in check["violations"]:
            where = f"{violation['entity']} {escape(violation['detail'])}"
            print_line(f"{paint('✗', 'red')} {check['name']}: {where}")
    for warning in told["warnings"]:
        print_line(f"{paint('!', 'yellow')} {escape(warning)}")
    versions = ", ".join(f"{name} {version}" for name, version in told["versions"].items())
    agents = ", ".join(told["agents"]) or "none that is known"
    print_line(paint(f"{versions}; agents: {agents}", "dim"))
    if told["ok"]:
        print_line(f"{paint('✓', 'green')} {len(told['checks'])} checks, no violations")
        return
    events, show = with_store("holdfast events ID"), with_store("holdfast show ID")
    print_line(
        f"The events are the record: compare `{events}` with `{show}`, put back what was changed "
        "by hand, and report anything else, with its events."
    )


@command("clean", example="holdfast clean --dry-run")
def clean(dry_run: DryRun = False, json: Json = False) -> None:
    """Remove runs, files, logs and worktrees kept past their time."""
    with open_service() as service:
        told = service.clean(project_settings().keep, dry_run=dry_run)
    if json:
        print_json(told)
        return
    parts = [
        format_count(len(told["runs"]), "run"),
        format_count(len(told["tasks"]), "task"),
        f"the logs of {format_count(len(told['logs']), 'task')}",
    ]
    if worktrees := told["worktrees"]:
        size = format_bytes(sum(each["bytes"] for each in worktrees))
        parts.append(f"{format_count(len(worktrees), 'worktree')} of {size}")
    said = f"{', '.join(parts)} and the artifacts of {format_count(len(told['artifacts']), 'task')}"
    if dry_run:
        print_line(f"would remove {said}, but for what somebody waits for")
    else:
        print_line(f"removed {said}")
