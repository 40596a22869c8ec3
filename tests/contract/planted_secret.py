"""A planted secret, the programs that let it out by every way there is, and where it was found."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from holdfast.worker.secrets.redaction import Redaction
from tests.acceptance.worker.watched_attempt import program
from tests.contract.raw_store import dump

SECRET = 'pa55-"wörd"/of+the=store'
ENCODED = [base64.b64encode(b"x" * n + SECRET.encode()).decode()[4:-4] for n in range(3)]
LOOKED_FOR = [SECRET, json.dumps(SECRET)[1:-1], SECRET[:12], SECRET[-12:], *ENCODED]
ENV = {"PLANTED": "{{ secret.PLANTED }}"}

# It calls its address with the secret in every field, keeps what it is answered, and reports.
_CALLS = """
import base64, json, os, urllib.error, urllib.request
secret, task = os.environ["PLANTED"], os.environ["HOLDFAST_TASK"]
token = os.environ["HOLDFAST_ATTEMPT_TOKEN"]
answers = {}

def call(called, path, **body):
    body = {"token": token, **body} if path != "renew" else body
    request = urllib.request.Request(
        os.environ["HOLDFAST_SERVER"] + "/api/v1/claims/" + path,
        json.dumps(body).encode(),
        {
            "Authorization": "Bearer " + os.environ["HOLDFAST_TOKEN"],
            "Content-Type": "application/json",
        },
    )
    try:
        with urllib.request.urlopen(request) as answer:
            answers[called] = [answer.status, json.loads(answer.read())]
    except urllib.error.HTTPError as error:
        answers[called] = [error.code, json.loads(error.read())]

def tell(called, verb, **body):
    call(called, task + "/" + verb, **body)

both = {"said": [secret], secret: base64.b64encode(secret.encode()).decode()}
raw = base64.b64encode(b"\\0" + secret.encode()).decode()
tell("log", "logs", chunk="whole " + secret + "\\n")
tell("log in two", "logs", chunk="half " + secret[:9])
tell("log in two", "logs", chunk=secret[9:] + "\\n")
lease = {"task_id": task, "token": token, "progress": both, "usage": {"usd": 1, "note": secret}}
call("progress", "renew", leases=[lease])
tell("text", "artifacts", name="notes.txt", content="see " + secret)
tell("file", "artifacts", name="raw.bin", content=raw, encoding="base64")
tell("file name", "artifacts", name=secret, content="x")
tell("effect", "effects", name="paid", value=both)
tell("effect name", "effects", name=secret, value=1)
tell("other effect", "effects", name="sent", value={"n": [1]})
tell("child", "children", name="first", tasks=[{"title": "x", "payload": both}])
tell("child title", "children", name="second", tasks=[{"title": secret}])
if "SPAWNS" in os.environ:
    tell("other child", "children", name="third", tasks=[{"title": "x", "agent": "nobody"}])
tell("guard", "guard")
report = os.environ["REPORT"]
said = {"complete": {"output": both}, "fail": {"error": both, "retryable": False}}
# Before it reports: then it is told to end.
with open(os.environ["ANSWERS"], "w") as file:
    json.dump(answers, file)
tell(report, report, **said.get(report, {"question": both}))
print(json.dumps(answers), flush=True)
"""
CALLS = program(_CALLS)
SHOWN = {"said": ["[secret PLANTED]"], "[secret PLANTED]": "[secret PLANTED]"}
REFUSED = {"file", "file name", "effect", "effect name", "child", "child title"}


def found(url: str, folder: Path, known: dict[str, str] | None = None) -> list[str]:
    """Where a secret, or what can be made of it, was written down: in a row, a file or its name."""
    places = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    places["the names of the files"] = "\n".join(places).encode()
    rows = dump(url)
    places |= {
        f"{table}: {row}": _text(row).encode() for table, each in rows.items() for row in each
    }
    return [name for name, data in places.items() if holds(data, known)]


def holds(data: bytes, known: dict[str, str] | None = None) -> bool:
    redaction = Redaction({"PLANTED": SECRET, **(known or {})})
    text = data.decode("utf-8", "replace")
    return redaction.clean(data) != data or any(each in text for each in LOOKED_FOR)


def _text(row: dict[str, Any]) -> str:
    return json.dumps(row, default=_plain, ensure_ascii=False)


def _plain(value: object) -> str:
    return bytes(value).decode("utf-8", "replace") if isinstance(value, memoryview) else repr(value)
