"""The first minutes: a folder with a store, a workflow to try, and a demonstration."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.registry import command
from holdfast.cli.session import opened
from holdfast.cli.terminal import escape, note, paint, say
from holdfast.errors import InvalidInput

AGENTS = ("claude", "codex", "gemini", "opencode", "aider", "cursor-agent", "amp", "goose")
EXAMPLE = "hello_holdfast.py"
PROGRAM = '''"""A pipeline to begin with: change it, run it, kill it, watch it go on.

    holdfast run hello_holdfast:hello -i name=Ada --wait
"""

from holdfast import Context, Holdfast, needs

hf = Holdfast("{url}")
hello = hf.workflow("hello")


@hello.step
def greet(name: str) -> str:
    return f"Hello, {name}"


# A step runs after the one above it. It is tried three times, unless you say otherwise.
@hello.step(max_attempts=5, timeout="2m")
def write(ctx: Context, text: str = needs(greet)) -> str:
    ctx.guard()  # may this attempt still act? ask before every side effect
    return text.upper()


# Somebody has to say yes before the next step: holdfast approve @last
hello.approval("approve", "Send it?")


@hello.step
def send(text: str = needs(write)) -> str:
    return f"sent: {text}"
'''


@command("init", example="holdfast init")
def init(
    bare: Annotated[bool, typer.Option("--bare", help="Only the store; write no example.")] = False,
) -> None:
    """Begin here: make the store, say which agents are installed, write a workflow to try."""
    from holdfast.service.place import FOLDER, find_home

    here = Path.cwd()
    above = find_home(here)
    if above is not None and above.parent != here.absolute():
        note(f"{escape(above)} is above, and goes on to serve this folder")
    with opened(begins=True) as service:
        where = service.place
    say(f"{paint('✓', 'green')} {escape(where.home.name or FOLDER)}: the store, kept out of git")
    found = [name for name in AGENTS if shutil.which(name)]
    say(f"{paint('✓', 'green')} agents installed: {', '.join(found) or 'none that is known'}")
    if bare:
        return
    target = here / EXAMPLE
    if target.exists():
        say(f"  {EXAMPLE} is there already, and was left as it is")
    else:
        _write(target, PROGRAM.replace("{url}", where.url))
        say(f"{paint('✓', 'green')} {EXAMPLE}: a workflow to try")
    say("next:  holdfast run hello_holdfast:hello -i name=Ada --wait")


def _write(target: Path, text: str) -> None:
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput("init", f"{target} cannot be written: {error.strerror}") from error


@command("demo", example="holdfast demo")
def demo() -> int | None:
    """Watch a pipeline in a store of its own: a loop, a verifier that rejects once, a retry."""
    from holdfast.cli.demonstration import demonstrate

    return demonstrate()
