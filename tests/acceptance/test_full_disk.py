"""A full disk, met by a real server: nothing it cannot write is acknowledged, and it lives on."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from holdfast import Holdfast, NewTask
from tests.acceptance.terminals import PATIENCE, PROGRAM, environment, holdfast

# A process may make no file longer than this: a write beyond it is refused as by a full disk.
ROOM = 700_000
LIMITED = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({ROOM}, {ROOM})); {PROGRAM}"


@contextmanager
def full(folder: Path) -> Iterator[httpx.Client]:
    """A server in a home of which no file may grow any further than to `ROOM`."""
    home = folder / ".holdfast"
    with (folder / "said").open("a") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", LIMITED, "serve", "--port", "0"],
            cwd=folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            token = (home / "token").read_text().strip()
            headers = {"Authorization": f"Bearer {token}"}
            with httpx.Client(base_url=f"{url}/api/v1", headers=headers, timeout=30) as client:
                yield client
            assert process.poll() is None, (folder / "said").read_text()
        finally:
            process.kill()
            process.communicate()


def fill(path: Path, size: int = ROOM) -> None:
    """Make a file as long as a file may be, of nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.truncate(size)


def claim(client: httpx.Client) -> tuple[dict[str, Any], dict[str, str]]:
    client.post("/tasks", json={"title": "one"})
    (got,) = client.post("/claims", json={"worker": "w"}).json()["assignments"]
    return got["task"], {"token": got["token"]}


def refused(answer: httpx.Response) -> str:
    """The reason of an answer that says that the disk is full."""
    told = answer.json()
    assert (answer.status_code, told["code"]) == (503, "store_unwritable"), told
    assert answer.headers["Retry-After"] == "1"
    return str(told["detail"])


def files(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.rglob("*") if each.is_file())


def test_a_full_disk_is_told_with_its_reason_and_what_is_half_written_is_gone(
    tmp_path: Path,
) -> None:
    holdfast(tmp_path, "init", "--bare")
    home = tmp_path / ".holdfast"
    fill(home / "audit.log")
    with full(tmp_path) as client:
        task, held = claim(client)
        place = f"/claims/{task['id']}"
        large = base64.b64encode(bytes(ROOM + 1)).decode()
        body = {**held, "name": "a.bin", "content": large, "encoding": "base64"}
        assert "File too large" in refused(client.post(f"{place}/artifacts", json=body))
        assert files(home / "artifacts") == [".store"]
        kept = client.post(f"{place}/artifacts", json={**held, "name": "b", "content": "small"})
        assert kept.status_code == 200
        assert files(home / "artifacts") == [".store", "b"]

        log = home / "logs" / task["id"] / "1.log"
        fill(log, ROOM - 2)
        sent = {**held, "chunk": "four"}
        assert "File too large" in refused(client.post(f"{place}/logs", json=sent))
        assert log.stat().st_size == ROOM - 2
        url, token = str(client.base_url).removesuffix("/api/v1/"), client.headers["Authorization"]
        said = ("work", "log", task["id"], "--token", held["token"], "--text")
        away = {"HOLDFAST_SERVER": url, "HOLDFAST_TOKEN": token.removeprefix("Bearer ")}
        typed = holdfast(tmp_path, *said, "four", **away)
        assert (typed.returncode, "File too large" in typed.stderr) == (5, True), typed.stderr
        fill(log, ROOM)
        assert client.post(f"{place}/complete", json=held).status_code == 200
    assert (tmp_path / "said").read_text().count("audit.log is not written any further") == 1
    assert "Traceback" not in (tmp_path / "said").read_text()


def test_a_store_that_takes_no_more_says_so_and_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    holdfast(tmp_path, "init", "--bare")
    made: list[str] = []
    with full(tmp_path) as client:
        sent = {"title": "large", "payload": {"x": "x" * 50_000}}
        while (answer := client.post("/tasks", json=sent)).status_code == 201:
            made.append(answer.json()["id"])
        assert ".db cannot be written" in refused(answer)
        assert client.get("/tasks").status_code == 200
    assert made
    with Holdfast(f"sqlite:///{tmp_path}/.holdfast/holdfast.db") as hf:
        assert [hf.tasks.get(each).status for each in made] == ["queued"] * len(made)
        hf.tasks.create(NewTask(title="there is room again"))


# A function of a worker, whose process may make no file longer for as long as it keeps one.
KEEPS = """
import resource, sys
from holdfast import Context, Holdfast, StoreError

ROOM = 8_000_000

with Holdfast(sys.argv[1]) as hf:
    @hf.task(max_attempts=1)
    def keep(ctx: Context) -> str:
        resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, resource.RLIM_INFINITY))
        try:
            ctx.artifact("a.bin", bytes(ROOM + 1))
        except StoreError as error:
            return f"{type(error).__name__}: {error}"
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)

    with hf.worker(concurrency=1):
        print(keep.enqueue().result(20))
"""


def test_a_function_is_told_by_an_error_of_the_store_that_its_file_was_not_kept(
    tmp_path: Path,
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", KEEPS, f"sqlite:///{tmp_path}/a.db"],
        cwd=tmp_path,
        env=environment(HOLDFAST_HOME=str(tmp_path / ".holdfast")),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert ended.stdout.startswith("StoreUnwritable: "), ended.stderr
    assert "a.bin cannot be written: File too large; make room there" in ended.stdout
    assert files(tmp_path / ".holdfast" / "artifacts") == [".store"]
