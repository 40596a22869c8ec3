"""The commands `init` and `demo`: a folder with a store and a sample, or a demonstration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.app.command_registry import command
from holdfast.cli.app.session import format_url, open_service, with_store
from holdfast.cli.app.terminal import escape, paint, print_line, print_note
from holdfast.errors import InvalidInput, NotTrusted

if TYPE_CHECKING:
    from holdfast.service.project.project import StoreLocation

EXAMPLE = "hello.yaml"
SETTINGS = """\
# The settings of this project; what is shown holds without them too. A variable of the environment
# wins over a line of this file, and an option of a command over both.

# database: postgresql://localhost/jobs   # HOLDFAST_DB; unless said, .holdfast/holdfast.db

# concurrency:          # HOLDFAST_CONCURRENCY; how many steps a worker runs at once
#   functions: 32       # of a Python program; without this line it claims short ones ahead
#   agents: 2           # commands and agents{agents}

# least_disk: 2GB       # HOLDFAST_LEAST_DISK; below it a worker claims nothing

# grace: 25s            # HOLDFAST_GRACE; how long steps may go on after a signal; else to their end

# connections: 8        # HOLDFAST_CONNECTIONS; the most that a server or worker has to its database

# keep:                 # how long what has ended is kept
#   worktrees: 3d
#   logs: 14d
#   runs: 90d
"""
WORKFLOW = """\
# A workflow to begin with. Check it:  holdfast workflow validate hello.yaml
# Run it:                             holdfast run hello.yaml -i name=Ada --wait

name: hello
input:
  name: string

steps:
  # A step is a command, without a shell. The JSON that it prints last is its output.
  - id: plan
    run: [echo, '{"greetings": ["Good morning", "Good night"]}']
    outputs: {greetings: [string]}

  # Goes through a list, one after another; parallel: 2 does two at once.
  - id: greet
    for_each: "{{ steps.plan.greetings }}"
    steps:
      - id: say
        run: [echo, "{{ item }}, {{ input.name }}"]
        max_attempts: 3
        timeout: 1m

  # Somebody has to say yes before the next step:  holdfast approve @last
  - {id: approve, approval: "Send it to {{ input.name }}?"}

  - {id: send, run: [echo, sent]}
"""
# The home is ignored by git, and `git clean -fdx` deletes ignored files.
DELETED_BY_GIT_CLEAN = (
    "  `git clean -fdx` deletes it; to keep it elsewhere, set HOLDFAST_HOME, or database: in "
    "holdfast.yaml"
)


@command("init", example="holdfast init")
def init(
    bare: Annotated[
        bool, typer.Option("--bare", help="Create only the store; write no other files.")
    ] = False,
    template: Annotated[
        str | None,
        typer.Option(
            help="Write a workflow for the agents installed here: feature, bugfix or review."
        ),
    ] = None,
) -> None:
    """Set up this folder: store, settings and a sample workflow."""
    from holdfast.cli.commands.workflow_templates import check_template, write_template
    from holdfast.service.project.agent_programs import list_installed_presets
    from holdfast.service.project.project import SETTINGS_FILE

    here = Path.cwd()
    found = list_installed_presets()
    if template is not None:
        check_template(template, found)
    _warn_of_store_above(here)
    with open_service(begins=True) as service:
        service.schema()
        print_line(f"{paint('✓', 'green')} {_describe_store(service.location)}")
        if service.location.is_in_home:
            print_note(DELETED_BY_GIT_CLEAN)
    print_line(
        f"{paint('✓', 'green')} agents installed: {', '.join(found) or 'none that is known'}"
    )
    if bare:
        return
    listed = f"; installed here: {', '.join(found)}" if found else ""
    settings = SETTINGS.format(agents=listed)
    _write_new_file(
        here / SETTINGS_FILE, settings, "the settings of the project, all as they are by default"
    )
    if template is not None:
        written = write_template(template, found)
        _write_new_file(here / f"{template}.yaml", written, "a workflow for the agents here")
        following = with_store(f"holdfast workflow validate {template}.yaml")
    else:
        _write_new_file(here / EXAMPLE, WORKFLOW, "a workflow to try")
        following = with_store(f"holdfast run {EXAMPLE} -i name=Ada --wait")
    print_line(f"next:  {following}")


def _warn_of_store_above(here: Path) -> None:
    """Note the home of a folder above that also serves this folder.

    A home of another owner is not used: this folder then gets a home of its own.
    """
    from holdfast.worker.files.homes import HOME, accept_home, find_home, make_home

    above = find_home(here)
    if above is None or above.parent == here.absolute():
        return
    try:
        accept_home(above)
        print_note(f"{escape(above)} is above, and goes on to serve this folder")
    except NotTrusted as refused:
        print_note(f"{escape(refused)}; this folder gets a home of its own")
        make_home(here / HOME)


def _describe_store(place: StoreLocation) -> str:
    if place.is_in_home:
        return f"{escape(place.home.name)}: the store, kept out of git"
    return f"{escape(format_url(place.url))}: the store"


def _write_new_file(target: Path, text: str, about: str) -> None:
    """Write a new file; an existing file is not changed."""
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
        print_line(f"{paint('✓', 'green')} {target.name}: {about}")
    except FileExistsError:
        print_line(f"  {target.name} already exists, and is unchanged")
    except OSError as error:
        raise InvalidInput("init", f"{target} cannot be written: {error.strerror}") from error


@command("demo", example="holdfast demo")
def demo() -> int | None:
    """Watch agents build a feature while a worker is killed."""
    from holdfast.cli.commands.demo import demonstrate

    return demonstrate()
