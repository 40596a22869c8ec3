"""A function in a process of its own is as any other, and is ended for real with its attempt."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from holdfast import Holdfast, InvalidInput, TaskFailed
from holdfast.engine.engine import engine_of
from holdfast.worker.files.state_directory import find_state_directory
from tests.acceptance.worker.watched_attempt import alive
from tests.contract.worker.steps import isolated_functions as functions
from tests.race.racers import eventually

PATIENCE = 60
# The function that is a task already.
DESCRIBED: Callable[..., Any] = inspect.unwrap(functions.described)
SECRET = "hunter2-hunter2"
ISOLATED: Any = {"isolation": "process", "backoff": 0}


@pytest.fixture
def hf(
    sqlite_store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Holdfast]:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    secrets = tmp_path / "secrets"
    secrets.write_text(f"PIN={SECRET}")
    secrets.chmod(0o600)
    monkeypatch.setenv("HOLDFAST_SECRETS", str(secrets))
    with Holdfast(sqlite_store_url) as opened:
        yield opened
        diagnosis = opened.doctor()
        assert diagnosis.ok, str(diagnosis)


def log_of(hf: Holdfast, task_id: str) -> str:
    return find_state_directory(engine_of(hf).settings.url).log(task_id, 1).path.read_text()


def test_arguments_and_results_are_those_of_any_function(hf: Holdfast) -> None:
    task: Any = hf.task(name="described", **ISOLATED)(DESCRIBED)
    flow = hf.workflow("flow")
    flow.step(isolation="process")(DESCRIBED)
    parcel = functions.Parcel(3, date(2030, 1, 2))
    with hf.worker():
        run = flow.start(parcel=parcel)
        first, second = task.enqueue(parcel).result(PATIENCE)
        assert (first, second.day) == (parcel, parcel.day)
        assert second.weight != os.getpid()
        assert run.result(PATIENCE)[0] == parcel


def test_effects_are_remembered_and_errors_come_back_with_their_traceback(hf: Holdfast) -> None:
    task: Any = hf.task(max_attempts=2, **ISOLATED)(functions.remember)
    with hf.worker():
        handle = task.enqueue("courier")
        given = handle.result(PATIENCE)
    assert given["id"] == f"{handle.id}/1/pay"
    assert given["paid"] != given["process"]
    log = log_of(hf, handle.id)
    assert "in remember\n" in log
    assert "ConnectionError: no courier" in log
    assert [each.outcome for each in hf.tasks.attempts(handle.id)] == ["failed", "completed"]


def test_a_coroutine_sleeps_and_waits_as_any_other(hf: Holdfast) -> None:
    task = hf.task(**ISOLATED)(functions.remember_async)
    with hf.worker():
        handle = task.enqueue()
        assert eventually(lambda: hf.tasks.get(handle.id).waits_for is not None)
        assert hf.signal(handle, "go", "gone").ok
        one, two, *rest = handle.result(PATIENCE)
    assert one == "1"
    assert two != os.getpid()
    assert rest == ["gone", 3]
    assert hf.tasks.get(handle.id).failures == 0


def test_what_it_says_goes_where_that_of_other_functions_goes_without_secrets(
    hf: Holdfast, capsys: pytest.CaptureFixture[str]
) -> None:
    task = hf.task(**ISOLATED)(functions.tell)
    with hf.worker():
        handle = task.enqueue(SECRET)
        result = handle.result(PATIENCE)
    assert result.endswith("note.txt [secret PIN]")
    assert Path(result.partition(" ")[0]).read_text() == "kept [secret PIN]"
    log = log_of(hf, handle.id)
    assert SECRET not in log
    for line in ("printed [secret PIN]", "aside", "from a child", "said [secret PIN]"):
        assert f"{line}\n" in log
    assert "logged [secret PIN]" in log
    assert hf.tasks.get(handle.id).progress == {"half": "[secret PIN]"}
    told = capsys.readouterr()
    assert "from a child" in told.out
    assert "aside" in told.err


@pytest.mark.parametrize(
    ("kind", "attempts", "said"),
    [
        ("permanent", 1, "Permanent: no parcel"),
        ("stock", 1, "OutOfStock: no parcel"),
        ("other", 2, "ValueError: no parcel"),
        ("exit", 2, "its process ended with exit code 3 before it had ended"),
        ("kill", 2, "its process was killed by SIGKILL before it had ended"),
    ],
)
def test_each_way_to_fail_counts_as_it_does_in_the_worker(
    hf: Holdfast, kind: str, attempts: int, said: str
) -> None:
    rules: dict[str, Any] = {"never_retry_on": functions.OutOfStock, "max_attempts": 2}
    task = hf.task(**ISOLATED, **rules)(functions.raise_what)
    with hf.worker():
        handle = task.enqueue(kind)
        with pytest.raises(TaskFailed) as failed:
            handle.result(PATIENCE)
    assert said in str(failed.value)
    assert hf.tasks.get(handle.id).failures == attempts


def test_a_function_that_asks_for_later_is_given_back(hf: Holdfast) -> None:
    task = hf.task(**ISOLATED)(functions.ask_later)
    with hf.worker():
        handle = task.enqueue()
        assert handle.result(PATIENCE) == "later"
    assert [each.outcome for each in hf.tasks.attempts(handle.id)] == ["released", "completed"]


@pytest.mark.parametrize("why", ["timeout", "idle_timeout", "cancel", "grace"])
def test_nothing_of_it_is_left_when_its_attempt_is_over(
    hf: Holdfast, tmp_path: Path, why: str
) -> None:
    limit: dict[str, Any] = {why: 3} if "timeout" in why else {}
    task = hf.task(max_attempts=1, **ISOLATED, **limit)(functions.hang)
    handle = task.enqueue(str(tmp_path), quiet=why == "idle_timeout")
    pids = tmp_path / "pids"
    with hf.worker() as worker:
        assert eventually(pids.exists)
        processes = [[int(each)] for each in pids.read_text().split()]
        if why == "cancel":
            assert all(map(alive, processes))
            assert hf.tasks.cancel(handle.id).ok
        if why == "grace":
            worker.give_back()
        assert eventually(lambda: not any(map(alive, processes)))
        outcome = {"cancel": "cancelled", "grace": "released"}.get(why, "failed")
        assert eventually(lambda: hf.tasks.attempts(handle.id)[0].outcome == outcome)
    if outcome == "failed":
        said = "was silent for longer than" if why == "idle_timeout" else "ran longer than 3 s"
        assert said in str(hf.tasks.get(handle.id).error)


def nested() -> Any:  # noqa: ANN401 - a function
    def inner() -> None:
        """Can be imported by nobody."""

    return inner


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (nested(), "it is defined inside another function"),
        (partial(functions.hang, "."), "partial"),
        (lambda: None, "it is defined inside another function|<lambda>"),
    ],
)
def test_a_function_that_no_other_process_can_import_is_refused_at_once(
    hf: Holdfast, function: Callable[..., object], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said) as refused:
        hf.task(name="never", isolation="process")(function)
    assert "isolation" in str(refused.value)


def test_isolation_is_a_process_or_nothing_and_belongs_to_tasks_and_steps(hf: Holdfast) -> None:
    with pytest.raises(InvalidInput, match='say "process"'):
        hf.task(isolation=cast("Any", "thread"))
    with pytest.raises(InvalidInput, match="tasks and steps"):
        hf.on("run.failed", isolation="process")(functions.ask_later)
    task = hf.task(isolation=None)(functions.ask_later)
    with pytest.raises(InvalidInput, match="belongs to the function"):
        cast("Any", task).using(isolation="process")


def test_a_function_that_is_no_longer_there_fails_for_good_and_says_so(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> None:
        """Stands for a function whose name means something else by now."""

    monkeypatch.setattr(gone, "__qualname__", "gone")
    monkeypatch.setattr(gone, "__module__", functions.__name__)
    task = hf.task(**ISOLATED)(gone)
    with hf.worker():
        handle = task.enqueue()
        with pytest.raises(TaskFailed, match="has no function gone"):
            handle.result(PATIENCE)
    assert hf.tasks.get(handle.id).attempt == 1


def test_a_look_at_its_lease_is_no_sign_that_a_function_goes_on(
    sqlite_store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    with Holdfast(sqlite_store_url, lease=3) as hf:
        task = hf.task(max_attempts=1, idle_timeout=3, timeout=9, **ISOLATED)(functions.look)
        with hf.worker():
            handle = task.enqueue()
            with pytest.raises(TaskFailed, match="was silent for longer than 3 s"):
                handle.result(PATIENCE)


def test_a_named_lease_is_given_back_when_its_process_is_killed(hf: Holdfast) -> None:
    task = hf.task(**ISOLATED)(functions.hold)
    with hf.worker():
        handle = task.enqueue("door")
        assert eventually(lambda: hf.tasks.get(handle.id).progress == "held")
        assert hf.leases.acquire("door", "next", ttl=60) is None
        assert hf.tasks.cancel(handle.id).ok
        assert eventually(lambda: hf.leases.acquire("door", "next", ttl=60) is not None)


UNIMPORTABLE = """
import sys
from holdfast import Holdfast, TaskFailed

hf = Holdfast(sys.argv[1])

@hf.task(isolation="process", max_attempts=1)
def f(text: str) -> int:
    return 1

if __name__ != "__main__":
    raise RuntimeError("this is a program")
with hf.worker():
    try:
        f.enqueue("x" * 400_000).result("40s")
    except TaskFailed as error:
        print(error)
"""


def test_a_program_that_cannot_be_imported_again_fails_its_functions_and_says_so(
    sqlite_store_url: str, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(UNIMPORTABLE)
    environment = os.environ | {"HOLDFAST_HOME": str(tmp_path / "home")}
    told = subprocess.run(
        [sys.executable, str(program), sqlite_store_url],
        capture_output=True,
        text=True,
        env=environment,
        timeout=PATIENCE,
        check=False,
    )
    assert "RuntimeError: this is a program" in told.stdout, told.stderr
