"""A secret that is let out by every way: no file, row, log or answer of any process has it."""

from __future__ import annotations

import json
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import httpx

from tests.acceptance.server.test_server import ended, serving
from tests.acceptance.terminals import PATIENCE, holdfast
from tests.acceptance.worker.test_remote_worker import YAML, working
from tests.contract.planted_secret import CALLS, ENV, SECRET, found, holds
from tests.race.racers import eventually

SAYS = """
printf %s 'it is pa55-"w' | $HOLDFAST work log
printf '%s\n' "${PLANTED#'pa55-"w'}" | $HOLDFAST work log
$HOLDFAST work renew --progress "$PLANTED"
echo "$PLANTED"; echo "$PLANTED" >&2
said=$(printf %s "$PLANTED" | sed 's/"/\\\\"/g')
$HOLDFAST work complete --output "{\\"said\\": \\"$said\\"}"
"""
FAILS = '$HOLDFAST work fail --final --error "$PLANTED"; echo "$PLANTED" >&2; exit 1'
SEEN = ("", "/logs", "/why", "/events", "/effects", "/attempts")


def flow(folder: Path, name: str) -> str:
    env = {**ENV, "ANSWERS": str(folder / "answers"), "REPORT": "complete"}
    more = {**ENV, "HOLDFAST": f"{sys.executable} -m holdfast"}
    steps = [
        {"id": "calls", "run": list(CALLS), "env": env},
        {"id": "fails", "run": ["sh", "-c", FAILS], "env": more, "on_failure": "skip"},
        {"id": "says", "run": ["sh", "-c", SAYS], "env": more},
    ]
    return json.dumps({"name": name, "steps": steps})


def answers_about(client: httpx.Client, run: dict[str, Any]) -> list[str]:
    """What the server answers to whoever looks at a run and all that belongs to it."""
    tasks = [f"/tasks/{task['id']}{more}" for task in run["tasks"] for more in SEEN]
    paths = [f"/runs/{run['id']}", f"/runs/{run['id']}/events", "/events", "/runs", *tasks]
    found = [client.get(path) for path in paths]
    assert {each.status_code for each in found} == {200}, found
    return [each.text for each in found]


def test_a_planted_secret_is_in_no_file_row_log_or_answer(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    kept = tmp_path / "kept"
    kept.touch(mode=0o600)
    kept.write_text(f"PLANTED={SECRET}\n")
    own = {"HOLDFAST_SECRETS": str(kept)}
    holdfast(here, "init", "--bare")
    said: list[str] = []
    with serving(here, "serve", "--log-json") as (_, client):
        url = str(client.base_url).removesuffix("/api/v1/")
        token = client.post("/tokens", json={"name": "far", "role": "worker"}).json()["token"]
        far = working(there, "--server", url, "--allow-any", HOLDFAST_TOKEN=token, **own)
        for worker, folder in ((working(here, **own), here), (far, there)):
            name = f"flow-{folder.name}"
            posted = client.post("/workflows", content=flow(folder, name), headers=YAML)
            assert posted.status_code == 201, posted.text
            run_id = client.post("/runs", json={"workflow": name}).json()["id"]
            with worker as process:
                run = ended(client, run_id)
                process.send_signal(signal.SIGTERM)
                assert process.wait(PATIENCE) == 0
            assert run["status"] == "completed", run
            assert run["output"] is not None
            said += answers_about(client, run)
            *_, says = run["tasks"]
            assert says["output"] == {"said": "[secret PLANTED]"}
            log = client.get(f"/tasks/{says['id']}/logs").json()["text"]
            assert "it is [secret PLANTED]\n" in log
        said += [holdfast(here, "show", "@last").stdout, holdfast(here, "events").stdout]
        said += [holdfast(here, "logs", "@last:says").stdout]
        store = f"sqlite:///{here}/.holdfast/holdfast.db"
        known = {"FAR": token}
        assert found(store, here, known) == found(store, there, known) == []
    kept.unlink()
    assert found(store, tmp_path, known) == []
    assert not [each for each in said if holds(each.encode(), known)]


def test_the_address_of_a_command_is_gone_with_its_worker_that_is_killed(tmp_path: Path) -> None:
    holdfast(tmp_path, "init", "--bare")
    address = tmp_path / "address"
    text = f"echo $HOLDFAST_SERVER > {address}.new; mv {address}.new {address}; exec sleep 1000"
    run = {"name": "f", "steps": [{"id": "a", "run": ["sh", "-c", text]}]}
    (tmp_path / "f.yaml").write_text(json.dumps(run))
    holdfast(tmp_path, "run", "f.yaml")
    with working(tmp_path) as process:
        assert eventually(address.exists)
        host, port = address.read_text().strip().removeprefix("http://").split(":")
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()
        process.kill()
        process.wait(PATIENCE)

        def gone() -> bool:
            try:
                socket.create_connection((host, int(port)), timeout=PATIENCE).close()
            except ConnectionRefusedError:
                return True
            return False

        assert eventually(gone)


def test_tools_of_a_worker_are_refused_within_a_command(tmp_path: Path) -> None:
    more = {"HOLDFAST_SERVER": "http://127.0.0.1:1", "HOLDFAST_ATTEMPT_TOKEN": "1.x"}
    said = holdfast(tmp_path, "mcp", "--as", "worker", **more)
    assert said.returncode == 2
    assert "holdfast work" in said.stderr
