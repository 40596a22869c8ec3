"""Terminal pictures for the README, taken of the real program: `python -m tools.pictures`.

Each is what a command showed on a terminal: with its colours, at one moment of a real run. Look at
them before they are committed.
"""

from __future__ import annotations

import io
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from holdfast import Holdfast
from holdfast.cli.commands.demo import WorkerKill, make_repository, running_workers
from holdfast.service.project.project import STORE_FILE, StoreLocation
from holdfast.service.service import Service
from holdfast.worker.files.homes import HOME
from tests.acceptance.terminals import ROOT, terminal

PICTURES = ROOT / "docs" / "pictures"
AGENTS = ("default", "developer", "planner", "reviewer", "verifier")
RUN = ("run", "feature.yaml", "-i", "task=Add single sign-on", "--wait")
MISTAKES = {
    "{{ steps.plan.stories }}": "{{ steps.plan.storys }}",
    "agent: developer": "agent: develper",
    'prompt: "Review': 'promt: "Review',
}
# How a live tree goes back to where it began.
_REDRAWN = re.compile(r"(?:\r?\x1b\[2K(?:\x1b\[1A)?)+")
_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
MONOSPACE = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def main() -> int:
    PICTURES.mkdir(exist_ok=True)
    for name, take in TAKEN.items():
        with tempfile.TemporaryDirectory(prefix="holdfast-pictures-") as folder:
            place = Path(folder, "shop")
            make_repository(place, Path(folder))
            typed, shown = take(place)
            picture = draw(name, typed, shown)
            for private in (folder, str(Path.home()), socket.gethostname()):
                assert private not in picture, f"{name} shows {private}"
        (PICTURES / f"{name}.svg").write_text(picture, encoding="utf-8")
        print(f"{name}.svg  {len(picture.encode()) // 1024} KiB")
    return 0


def take_run(folder: Path) -> tuple[str, str]:
    """A run in which a worker was killed, while another does its step again."""
    place = _place(folder)
    with (
        running_workers(folder, ("worker-1", "worker-2"), AGENTS) as workers,
        Service(place) as service,
        terminal(folder, *RUN) as screen,
    ):
        screen.until("● plan")
        run_id = service.addresses.run("@last")
        with WorkerKill(service, run_id, workers):
            assert screen.ends() == 0
    frames = _REDRAWN.split(screen.raw)
    again = [each for each in frames if "(1 lost)" in each and "└ editing" in each]
    return 'holdfast run feature.yaml -i task="Add single sign-on" --wait', again[-1]


def take_why(folder: Path) -> tuple[str, str]:
    """A step that nobody serves, in the workflow that needs no repository of this machine."""
    shutil.copytree(ROOT / "examples" / "feature", folder, dirs_exist_ok=True)
    place = _place(folder)
    with (
        running_workers(folder, ("worker-1",), ("developer", "planner")),
        Holdfast(place.url) as hf,
    ):
        run = hf.workflow_file(folder / "feature.yaml").start(task="Add SSO")
        run.task("plan").result(timeout="1m")
        while not any(task.step == "verify" and not task.blocked for task in hf.runs.tasks(run.id)):
            pass
        return _shown(folder, 0, "why", "@last:build.1.verify")


def take_mistake(folder: Path) -> tuple[str, str]:
    """A file with some slips of the pen."""
    file = folder / "feature.yaml"
    text = file.read_text(encoding="utf-8")
    for right, wrong in MISTAKES.items():
        assert right in text
        text = text.replace(right, wrong, 1)
    file.write_text(text, encoding="utf-8")
    return _shown(folder, 2, "workflow", "validate", "feature.yaml")


TAKEN: dict[str, Callable[[Path], tuple[str, str]]] = {
    "run": take_run,
    "why": take_why,
    "mistake": take_mistake,
}


def _place(folder: Path) -> StoreLocation:
    home = folder / HOME
    place = StoreLocation(url=f"sqlite:///{home / STORE_FILE}", home=home, may_be_created=True)
    place.make_folder()
    return place


def _shown(folder: Path, code: int, *arguments: str) -> tuple[str, str]:
    with terminal(folder, *arguments) as screen:
        ended = screen.ends()
    assert ended == code, screen.raw
    return " ".join(["holdfast", *arguments]), screen.raw


def draw(name: str, typed: str, shown: str) -> str:
    """An SVG of what was typed and what came, that needs no font from elsewhere."""
    text = Text.from_ansi(f"\x1b[1m$ {typed}\x1b[0m\n" + shown.replace("\r", "").rstrip("\n"))
    width = max(line.cell_len for line in text.split("\n")) + 1
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
    console.print(text)
    svg = console.export_svg(title="", theme=DIMMED_MONOKAI, unique_id=f"holdfast-{name}")
    return _FONT.sub("", svg).replace("Fira Code, monospace", MONOSPACE).replace("Fira Code", "")


if __name__ == "__main__":
    sys.exit(main())
