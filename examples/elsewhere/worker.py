"""A worker in Python without Holdfast, nor anything else that has to be installed.

It claims tasks over HTTP, keeps their leases while it works, and reports. Every report carries the
token of its attempt: a worker that was thought dead and comes back is refused, and changes nothing.

Some work:  holdfast task add "Count" --agent python --payload '{"text": "to be or not to be"}'
Run it:     HOLDFAST_SERVER=http://127.0.0.1:8765 HOLDFAST_TOKEN=$(holdfast token) python worker.py
"""

from __future__ import annotations

import json
import os
import threading
import uuid
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

MISSING = [each for each in ("HOLDFAST_SERVER", "HOLDFAST_TOKEN") if not os.environ.get(each)]
if MISSING:
    raise SystemExit(f"{' and '.join(MISSING)} must be set, as the top of this file shows")
API = os.environ["HOLDFAST_SERVER"] + "/api/v1"
LEASE = 30.0
WAIT = float(os.environ.get("WAIT", "60"))


def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
    headers = {
        "Authorization": "Bearer " + os.environ["HOLDFAST_TOKEN"],
        "Content-Type": "application/json",
    }
    try:
        with urlopen(Request(API + path, json.dumps(body).encode(), headers)) as answer:  # noqa: S310 - the server's
            return dict(json.load(answer))
    except HTTPError as error:
        # A refusal is an answer too: {"code": "stale_token", …}.
        return {"ok": False, **json.load(error)}
    except URLError as error:
        raise SystemExit(f"no server answers at {API}: {error.reason}") from None


def renew(lease: dict[str, str], over: threading.Event) -> None:
    """Keep a lease until the work is over; who is told no any more is to stop."""
    while not over.wait(LEASE / 3):
        kept = post("/claims/renew", {"leases": [lease], "lease_seconds": LEASE})
        if not kept["leases"][0]["ok"]:
            return


def work(task: dict[str, Any]) -> dict[str, int]:
    return {"words": len(task["payload"]["text"].split())}


def main() -> None:
    while True:
        # A claim whose answer was lost may be made again: the same id gives the same tasks.
        ask = {
            "worker": "python-1",
            "agents": ["python"],
            "wait_seconds": WAIT,
            "lease_seconds": LEASE,
            "request_id": uuid.uuid4().hex,
        }
        answer = post("/claims", ask)
        if "detail" in answer:
            raise SystemExit(answer["detail"])
        if not answer["assignments"]:
            print(answer.get("told", "nothing left to do"))
            return
        for each in answer["assignments"]:
            lease = {"task_id": each["task"]["id"], "token": each["token"]}
            over = threading.Event()
            keeper = threading.Thread(target=renew, args=[lease, over])
            keeper.start()
            try:
                said = {"token": each["token"], "output": work(each["task"])}
                told = post(f"/claims/{lease['task_id']}/complete", said)
            except Exception as error:  # noqa: BLE001 - whatever it is, the task has failed
                said = {"token": each["token"], "error": str(error)}
                told = post(f"/claims/{lease['task_id']}/fail", said)
            finally:
                over.set()
                keeper.join()
            print(each["task"]["title"], told.get("code") or told["task"]["status"])


main()
