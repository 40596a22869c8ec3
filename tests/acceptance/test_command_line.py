"""The command line as a person meets it: real processes, pipes, a terminal, Ctrl-C."""

from __future__ import annotations

import json
import re
import resource
import select
import signal
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from holdfast import Holdfast
from tests.acceptance.terminals import PATIENCE, PROGRAM, environment, holdfast, piped, terminal

STORIES = """
from holdfast import Context, Holdfast, Verdict, needs

hf = Holdfast("sqlite:///stories.db", backoff=0.05)
feature = hf.workflow("feature")

@feature.step
def plan(task: str) -> list[dict[str, str]]:
    return [{"title": f"{task} form"}, {"title": "Call\\x1b[31mback"}, {"title": "Logout"}]

build = feature.loop("build", over=needs(plan))

@build.step(agent="developer", tags=["fast"])
def implement(ctx: Context, item: dict[str, str]) -> str:
    if ctx.attempt == 1 and item["title"] == "Logout":
        raise RuntimeError("flaky")
    return item["title"]

@build.step(verifies=implement)
def verify(item: dict[str, str], attempt: int) -> Verdict:
    first = attempt == 1 and "form" in item["title"]
    return Verdict.reject("too short") if first else Verdict.accept()

@feature.step
def test() -> str:
    return "48 passed"

feature.approval("approve", "Merge it?")

@feature.step
def merge() -> str:
    return "merged"
"""
WAITING = """
from pathlib import Path
from holdfast import Context, Holdfast

hf = Holdfast("sqlite:///waiting.db")
waiting = hf.workflow("waiting")

@waiting.step
def wait(ctx: Context) -> str:
    Path("began").touch()
    while not Path("go").exists():
        if ctx.ended:
            return "ended"
    return "went"
"""


def test_from_nothing_to_an_approved_run(tmp_path: Path) -> None:
    assert holdfast(tmp_path, "init").returncode == 0
    ran = holdfast(tmp_path, "run", "hello.yaml", "-i", "name=007", "--wait")
    assert ran.returncode == 4, ran.stderr
    first, *lines, last = ran.stdout.splitlines()
    assert first.startswith("hello r_")
    assert last == "approve  asks: Send it to 007?"
    assert [line.split("  ")[1:] for line in lines] == [
        ["hello", "started"],
        ["plan", "running"],
        ["plan", "done"],
        ["greet.1.say", "running"],
        ["greet.1.say", "done"],
        ["greet.1", "done"],
        ["greet.2.say", "running"],
        ["greet.2.say", "done"],
        ["greet.2", "done"],
        ["greet", "done"],
    ]
    (tmp_path / "holdfast.yaml").write_text("concurrency: {agents: 3}\n")
    approval = re.findall(r"needs you: holdfast (.+)\n", ran.stderr)
    assert "then:      holdfast worker --agent default\n" in ran.stderr
    said = holdfast(tmp_path, "logs", "@last:greet.2.say")
    assert said.stdout.splitlines()[-1] == "Good night, 007"
    settled = holdfast(tmp_path, *approval[0].split())
    assert settled.returncode == 0, settled.stderr
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "worker"],
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    ) as worker:
        followed = holdfast(tmp_path, "show", "--follow")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE) == 0
        assert worker.stderr is not None
        assert re.search(r"worker worker-\S+-1 \(.*, up to 3 steps at once\)", worker.stderr.read())
    assert followed.returncode == 0, followed.stderr
    *_, ended, sent = followed.stdout.splitlines()
    assert (ended.endswith("hello  completed"), sent) == (True, "sent")
    told = json.loads(holdfast(tmp_path, "show", "--json").stdout)
    assert (told["status"], told["tasks"][-1]["status"]) == ("completed", "done")
    assert "next:  holdfast runs" in holdfast(tmp_path).stdout


def test_a_terminal_shows_the_run_as_a_tree_that_needs_a_person_at_last(tmp_path: Path) -> None:
    (tmp_path / "stories.py").write_text(STORIES)
    with terminal(tmp_path, "run", "stories:feature", "-i", "task=SSO", "--wait") as screen:
        assert screen.ends() == 4
    last = screen.text[screen.text.rindex("feature r_") :]
    assert re.search(r"✓ plan +[0-9.]+s  3 items\n✓ build +[0-9.]+s  3 items\n✓ test", last)
    assert "◆ approve  (you)\n  └ Merge it?\n  └ holdfast approve t_" in last
    assert "○ merge" in last
    assert "\x1b[32m✓\x1b[0m plan" in screen.raw
    assert "Call\x1b[31mback" not in screen.raw
    with terminal(tmp_path, "show", "--db", "stories.db", NO_COLOR="1") as plain:
        assert plain.ends() == 0
    assert "✓ plan" in plain.raw
    assert "\x1b" not in plain.raw


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_leaves_the_run_and_says_how_to_come_back(
    tmp_path: Path, sent: signal.Signals
) -> None:
    (tmp_path / "waiting.py").write_text(WAITING)
    with terminal(tmp_path, "run", "waiting:waiting", "--wait") as screen:
        screen.until("● wait")
        screen.child.send_signal(sent)
        screen.until("Come back: holdfast show r_")
        (tmp_path / "go").touch()
        assert screen.ends() == 130
    assert "End it: holdfast cancel r_" in screen.text
    assert "Go on:  holdfast worker waiting:hf" in screen.text
    assert "Traceback" not in screen.text
    with Holdfast(f"sqlite:///{tmp_path}/waiting.db") as hf:
        (run,) = hf.runs.list()
        assert run.status == "completed"
        assert hf.doctor().ok


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_the_command_and_gives_its_step_back(
    tmp_path: Path, sent: signal.Signals
) -> None:
    command = "[sh, -c, 'echo $$ > id; echo begun; exec sleep 600']"
    (tmp_path / "long.yaml").write_text(f"name: long\nsteps: [{{id: wait, run: {command}}}]\n")
    url = f"sqlite:///{tmp_path}/long.db"
    with terminal(tmp_path, "run", "long.yaml", "--wait", HOLDFAST_DB=url) as screen:
        screen.until("└ begun")
        screen.child.send_signal(sent)
        screen.until("Ctrl-C again gives that back now")
        screen.child.send_signal(sent)
        assert screen.ends() == 130
    assert not Path(f"/proc/{(tmp_path / 'id').read_text().strip()}").exists()
    with Holdfast(url) as hf:
        (task,) = hf.tasks.list()
        assert (task.status, task.failures, task.lost) == ("queued", 0, 0)
        assert [each.outcome for each in hf.tasks.attempts(task.id)] == ["released"]


def test_a_run_that_fails_and_one_that_is_cancelled_exit_by_their_end(tmp_path: Path) -> None:
    failing = STORIES.replace('return "48 passed"', 'raise ValueError("\\x1b[2Jred")')
    (tmp_path / "stories.py").write_text(failing)
    ran = holdfast(tmp_path, "run", "stories:hf", "-i", "task=SSO", "-w")
    assert ran.returncode == 1
    assert "test  failed  attempt 3  ValueError: red" in ran.stdout
    assert "next:  holdfast why r_" in ran.stderr
    assert "\x1b" not in ran.stdout + ran.stderr
    quiet = holdfast(
        tmp_path, "run", "feature", "--app", "stories:hf", "-i", "task=x", "-w", "--json"
    )
    assert (quiet.returncode, json.loads(quiet.stdout)["status"]) == (1, "failed")
    assert holdfast(tmp_path, "retry", "@last", "--db", "stories.db").returncode == 0
    assert holdfast(tmp_path, "cancel", "@last", "--db", "stories.db").returncode == 0
    assert holdfast(tmp_path, "show", "-f", "--db", "stories.db").returncode == 3


def test_a_reader_that_leaves_early_is_not_complained_about(tmp_path: Path) -> None:
    store = {"HOLDFAST_DB": f"sqlite:///{tmp_path}/many.db"}
    with Holdfast(store["HOLDFAST_DB"]) as hf:

        def nothing(text: str) -> None: ...

        hf.task(nothing).enqueue_many([{"text": "x" * 500} for _ in range(500)])
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "tasks", "--limit", "1000", "--json"],
        cwd=tmp_path,
        env=environment(**store),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(PATIENCE) == 141


def test_a_pipe_is_given_each_line_when_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "waiting.py").write_text(WAITING + 'waiting.approval("ok", "Go on?")\n')
    with piped(tmp_path, "run", "waiting:waiting", "--wait") as reader:
        reader.until("wait  running\n")
        (tmp_path / "go").touch()
        assert reader.ends() == 4
    *_, asks, needed, then = reader.text.splitlines()
    assert asks == "ok  asks: Go on?"
    assert needed.startswith("needs you: holdfast approve t_")
    assert then.startswith("then:      holdfast worker waiting:hf")


def test_a_follower_of_events_reads_what_was_written_and_may_leave_while_more_comes(
    tmp_path: Path,
) -> None:
    store = {"HOLDFAST_DB": f"sqlite:///{tmp_path}/few.db"}
    with Holdfast(store["HOLDFAST_DB"]) as hf:

        def nothing() -> None: ...

        task = hf.task(nothing).enqueue()
        with subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "events", task.id, "--follow"],
            cwd=tmp_path,
            env=environment(**store),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as child:
            assert child.stdout is not None
            assert child.stderr is not None
            ready, _, _ = select.select([child.stdout], [], [], PATIENCE)
            if not ready:
                child.kill()
            assert b"task.created" in child.stdout.readline()
            child.stdout.close()
            hf.tasks.cancel(task.id)
            assert child.stderr.read() == b""
            assert child.wait(PATIENCE) == 141


HEAVY = {
    "asyncio",
    "cronsim",
    "httpx",
    "jsonschema",
    "psycopg",
    "pydantic",
    "rich",
    "sqlite3",
    "yaml",
}
ENGINE = {"holdfast.api", "holdfast.engine.core", "holdfast.engine.engine"}
GRAPHS = {"holdfast.engine.read.step_texts", "holdfast.model.workflow"}
STORE = {"apsw", "holdfast.model.task", "holdfast.service", "holdfast.store", "holdfast.worker"}
LOCKS = "holdfast.store.sqlite.lock_holder"
READER = HEAVY | ENGINE | GRAPHS


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--version"], READER | STORE | {"holdfast.cli.commands.show"}),
        (["--help"], HEAVY | ENGINE | {"apsw", "holdfast.store"}),
        (["runs"], READER | {"holdfast.cli.commands.run", "holdfast.model.task", LOCKS, "secrets"}),
        (["tasks", "--status", "failed"], READER),
        ([], READER | {"holdfast.cli.commands.show"}),
    ],
)
def test_a_command_loads_what_it_needs_alone(
    tmp_path: Path, arguments: list[str], unwanted: set[str]
) -> None:
    home = str(tmp_path / "home")
    begun = holdfast(tmp_path, "init", HOLDFAST_HOME=home)
    assert begun.returncode == 0, begun.stderr
    look = PROGRAM.replace("sys.exit(main())", "main(); print(*sys.modules)")
    shown = subprocess.run(
        [sys.executable, "-c", look, *arguments],
        cwd=tmp_path,
        env=environment(HOLDFAST_HOME=home),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    loaded = set(shown.stdout.splitlines()[-1].split())
    assert loaded & unwanted == set()


def test_a_command_starts_in_the_blink_of_an_eye(tmp_path: Path) -> None:
    more = {
        "HOLDFAST_HOME": str(tmp_path / "home"),
        "PYTHONPYCACHEPREFIX": str(tmp_path / "cache"),
    }
    code = "from holdfast.cli.main import main; main()"
    # Typer alone takes this long where 300 ms are a blink: a busy machine is given more.
    blink = 0.3 * max(1.0, _start(tmp_path, ["import typer"], more) / 0.08)
    for arguments in (["--help"], ["runs"]):
        assert _start(tmp_path, [code, *arguments], more) < blink, arguments


def _start(folder: Path, arguments: list[str], more: dict[str, str]) -> float:
    """How much of the processor the middle one of five starts takes, after one to warm up."""
    times: list[float] = []
    for _ in range(6):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", *arguments],
            cwd=folder,
            env=environment(**more),
            capture_output=True,
            timeout=PATIENCE,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return median(times[1:])


def test_a_program_says_the_lease_of_its_worker_itself(tmp_path: Path) -> None:
    refused = holdfast(tmp_path, "worker", "shop:hf", "--lease", "2s")
    assert refused.returncode == 2
    assert "lease: is for shop:hf itself to say: Holdfast(…, lease='2s')" in refused.stderr
