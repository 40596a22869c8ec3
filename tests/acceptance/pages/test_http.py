"""The page about HTTP: its commands and its workers, run against a real server as it shows them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.acceptance.pages.test_worker_examples import NODE
from tests.acceptance.server.test_server import serving
from tests.acceptance.terminals import ROOT, holdfast

PAGE = (ROOT / "docs" / "how-to" / "http.md").read_text(encoding="utf-8")


def test_the_workers_of_the_page_do_a_run_between_them(tmp_path: Path) -> None:
    shown = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    begin, labelled, preview, bulk, shell, files = shown
    (script,) = re.findall(r"^```ts\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    holdfast(tmp_path, "init", "--bare")
    with serving(tmp_path, "serve") as (_, client):
        url = str(client.base_url).removesuffix("/api/v1/")
        token = client.headers["Authorization"].removeprefix("Bearer ")

        def run(*command: str, **more: str) -> str:
            path = f"{Path(sys.executable).parent}:/usr/bin"
            return subprocess.run(
                command,
                cwd=tmp_path,
                env={"URL": url, "TOKEN": token, "PATH": path} | more,
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            ).stdout

        defined, started = re.findall(r"\{.*?\}(?=\{|$)", run("/bin/bash", "-c", begin))
        assert json.loads(defined)["name"] == "letters"
        assert started.startswith('{"id":"r_')
        assert json.loads(run("/bin/bash", "-c", labelled))["items"] == []
        assert json.loads(run("/bin/bash", "-c", preview))["tasks"]
        assert json.loads(run("/bin/bash", "-c", bulk))["matched"] == 0
        reported = run("/bin/bash", "-c", shell)
        assert '"status":"done"' in reported
        typed = tmp_path / "worker.ts"
        typed.write_text(script)
        assert run(NODE, str(typed)).splitlines() == ["read done"]
        short = program.replace('"wait_seconds": 5', '"wait_seconds": 1')
        assert run(sys.executable, "-c", short).splitlines() == ["post | Post them", "done"]
        run_id = started.partition('"id":"')[2].partition('"')[0]
        assert client.get(f"/runs/{run_id}").json()["status"] == "completed"
        log = client.get("/tasks", params={"run": run_id}).json()["items"][-1]["id"]
        assert client.get(f"/tasks/{log}/logs").json()["text"] == "on it\n"
        task = client.post("/tasks", json={"title": "Report"}).json()["id"]
        (got,) = client.post("/claims", json={"worker": "w", "task_id": task}).json()["assignments"]
        kept = {"token": got["token"], "name": "summary.txt", "content": "all is well"}
        assert client.post(f"/claims/{task}/artifacts", json=kept).status_code == 200
        assert '"name":"summary.txt"' in run("/bin/bash", "-c", files, TASK=task)
        assert (tmp_path / "summary.txt").read_text() == "all is well"
