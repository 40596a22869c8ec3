"""A hostile server: it speaks the protocol of workers, and lies in every field of every answer.

    python -m tests.acceptance.worker.hostile_server --answers 10000 --seed 7

A real `holdfast worker --server … --allow …` is lied to. Then it has to live, to do one honest
task, and to have run, called, written, removed and told nothing that it was not allowed.
"""

from __future__ import annotations

import argparse
import json
import os
import posixpath
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.acceptance.terminals import PATIENCE, PROGRAM, environment
from tests.acceptance.worker import false_answers
from tests.acceptance.worker.false_answers import Answer, Scene

ALLOWED = "greet"
TOKEN = "hf_token-of-the-worker"
SECRET, KEPT = "secret-of-the-environment", "secret-of-the-file"
MOST = 200 * 2**20
# Whoever is refused asks again at once here, so that a thousand answers take seconds.
QUICK = (
    "from holdfast.worker.remote import end_watch, log_stream, poller, sender; "
    "log_stream.PAUSE = sender.PAUSE = poller.PAUSE = end_watch.PAUSE = 0.01; "
    "poller.LONGEST_POLL = end_watch.LONGEST_POLL = 0.5; "
)
CALLS = re.compile(
    r"/api/v1/(session|claims(/renew|/leave|/watch|/t_[0-7][0-9a-z]{19}/"
    r"(complete|fail|release|ask|logs|effects|guard|stop))?)"
)
GREET = """#!/bin/bash
printf '%s\\n' "$0|$PATH|$BASH_ENV|$ENV|$LD_PRELOAD|$HOLDFAST_HOME|$HOLDFAST_DB|$PS4" >> {greeted}
printf '{{"ok": true, "said": "%s"}}\\n' "$1"
"""


@dataclass(kw_only=True)
class Hostile:
    """What the server has said and heard; after so many lies it is honest."""

    scene: Scene
    answers: int
    seed: int
    said: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    honest: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _count: int = 0
    _proven: bool = False
    _last: dict[str, Any] | None = None

    def answer(self, path: str, heard: bytes, body: bytes) -> Answer:
        self._listen(path, heard, body)
        chance = self._draw(path.partition("?")[0].rpartition("/")[2])
        if path.startswith("/public"):
            return self._called(path, chance)
        told = self._true(path, body, chance)
        if chance is None:
            return Answer(body=false_answers.dump(told))
        if path.endswith("/session"):
            return self._introduce(chance, told)
        if path.endswith("/claims") and told["assignments"] and chance.random() < 0.6:
            if chance.random() < 0.8:
                false_answers.attack(chance, self.scene, told["assignments"][0]["whole"])
            return Answer(body=false_answers.dump(told))
        return false_answers.lie(chance, self.scene, told)

    def _draw(self, kind: str) -> random.Random | None:
        """What the next lie is made from, the same for a seed and a number."""
        with self._lock:
            if self._count >= self.answers:
                self.honest.set()
                return None
            self._count += 1
            self.said[kind] += 1
            return random.Random(f"{self.seed}.{self._count}")  # noqa: S311 - reproducible

    def _true(self, path: str, body: bytes, chance: random.Random | None) -> dict[str, Any]:
        if path.endswith("/session"):
            return {"name": "far", "role": "worker"}
        if path.endswith("/claims"):
            wanted = json.loads(body)["max"] if body else 0
            if chance is None:
                return {"assignments": self._last_one() if wanted else []}
            count = min(wanted, chance.choice([0, 1, 1, 2]))
            return {
                "assignments": [false_answers.assignment(chance, self.scene) for _ in range(count)]
            }
        if path.endswith("/renew"):
            leases = json.loads(body)["leases"] if body else []
            return {"leases": [{"task_id": each["task_id"], "ok": True} for each in leases]}
        if chance is None and path.endswith("/complete") and self._last is not None:
            task_id = self._last["task"]["id"]
            if task_id in path and json.loads(body)["output"]["said"] == "honest":
                self.done.set()
        told = {"ok": True, "repeated": False, "task": {"status": "done"}, "bytes": 1}
        return {**told, "name": "http", "value": None, "effects": {}}

    def _last_one(self) -> list[dict[str, Any]]:
        """The one honest task, which is given once."""
        with self._lock:
            if self._last is not None:
                return []
            chance = random.Random(self.seed)  # noqa: S311 - reproducible
            self._last = false_answers.assignment(chance, self.scene)
            work: dict[str, Any] = {
                "command": [ALLOWED, "honest"],
                "http": None,
                "later": {},
                "outputs": None,
            }
            self._last["whole"]["work"] |= work | {"env": {}, "prompt": None}
            return [self._last]

    def _introduce(self, chance: random.Random, told: dict[str, Any]) -> Answer:
        # A server may well say that a token is not a worker's: that is no lie to live with.
        if self._proven or chance.random() < 0.5:
            self._proven = True
            return Answer(body=false_answers.dump(told))
        odd = {**told, "role": chance.choice([None, 1, ["worker"], {}])}
        return Answer(
            body=chance.choice([false_answers.dump(odd), b"", b"[]", false_answers.dump(told)[:-4]])
        )

    def _called(self, path: str, chance: random.Random | None) -> Answer:
        """What is called as a step: it redirects to where nobody is to go."""
        if path.endswith("/redirect") or chance is None or chance.random() < 0.3:
            away = [("Location", self.scene.elsewhere)]
            return Answer(status=302, body=b"{}", headers=away)
        return false_answers.lie(chance, self.scene, {"ok": True})

    def _listen(self, path: str, heard: bytes, body: bytes) -> None:
        leads = path.partition("?")[0]
        for _ in range(4):
            leads = unquote(leads).replace("\\", "/")
        below = posixpath.normpath(leads)
        if not (CALLS.fullmatch(path) or below == "/public" or below.startswith("/public/")):
            self.violations.append(f"called {path!r}")
        for secret in (SECRET, KEPT):
            if secret.encode() in heard + body:
                self.violations.append(f"told {secret} to {path!r}")
        if TOKEN.encode() in body or heard.count(TOKEN.encode()) > path.startswith("/api/"):
            self.violations.append(f"told its token to {path!r}")


@contextmanager
def listening(handle: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Whoever was lied to has hung up."""

    with Server(("127.0.0.1", 0), handle) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


class Handler(BaseHTTPRequestHandler):
    """Reads one request, and sends the bytes of one answer, however wrong they are."""

    hostile: Hostile | None = None
    reached: list[str]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.close_connection = True
        if self.hostile is None:
            self.reached.append(self.path)
            self._send(Answer(body=b"{}"))
            return
        heard = str(self.headers).encode() + self.requestline.encode()
        with suppress(OSError):
            self._send(self.hostile.answer(self.path, heard, body))

    do_GET = do_PUT = do_POST  # noqa: N815 - the names that the standard library calls

    def _send(self, answer: Answer) -> None:
        if answer.silent:
            return
        length = len(answer.body) if answer.length is None else answer.length
        headers = [("Content-Length", str(MOST if answer.endless else length)), *answer.headers]
        lines = [f"HTTP/1.1 {answer.status} Odd", *(f"{name}: {said}" for name, said in headers)]
        self.wfile.write("\r\n".join([*lines, "Connection: close", "", ""]).encode())
        if answer.endless:
            for _ in range(MOST // 2**20):
                self.wfile.write(b" " * 2**20)
        elif answer.drips:
            for place in range(0, len(answer.body), 200):
                self.wfile.write(answer.body[place : place + 200])
                time.sleep(0.02)
        else:
            self.wfile.write(answer.body)

    def log_message(self, *_: object) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Siege:
    """How it went: what was said, what of it was done, and what should not have been."""

    said: Counter[str]
    greeted: int
    violations: list[str]
    log: str


def besiege(folder: Path, *, answers: int, seed: int) -> Siege:
    """Lie to a worker so many times, and have it do one honest task in the end."""
    reached: list[str] = []

    class Elsewhere(Handler): ...

    Elsewhere.reached = reached

    class Lying(Handler): ...

    with listening(Elsewhere) as elsewhere, listening(Lying) as server:
        scene = _prepare(folder, server, elsewhere)
        hostile = Hostile(scene=scene, answers=answers, seed=seed)
        Lying.hostile = hostile
        before = _snapshot(folder)
        ended = _work(folder, scene, hostile)
        found = [*hostile.violations, *ended, *(f"called {each} elsewhere" for each in reached)]
        found += [f"changed {each}" for each in sorted(before ^ _snapshot(folder))]
        found += _look_at_state(folder / "work" / ".holdfast")
        lines = (folder / "greeted").read_text().splitlines()
        path = f"{folder / 'bin'}:{os.environ['PATH']}"
        wanted = f"{folder / 'bin' / ALLOWED}|{path}||||||+ "
        found += [f"greeted with {each!r}" for each in lines if each != wanted]
        log = (folder / "said").read_text(errors="replace")
        for secret in (SECRET, KEPT, TOKEN):
            found += [f"logged {secret}"] if secret in log else []
    return Siege(said=hostile.said, greeted=len(lines), violations=found, log=log)


def _work(folder: Path, scene: Scene, hostile: Hostile) -> list[str]:
    """Have a worker work until it has done the honest task; what was wrong with it."""
    allow = ["--allow", ALLOWED, "--allow", f"{scene.server}/public", "--allow-env", "GREETING"]
    options = ["--server", scene.server, *allow, "--concurrency", "4", "--lease", "2s"]
    more = {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        # Where the worker remembers that it has made its home.
        "XDG_STATE_HOME": str(folder / "known"),
        "HOLDFAST_TOKEN": TOKEN,
        "HOLDFAST_SECRETS": str(folder / "secrets"),
        "WORKER_SECRET": SECRET,
        "GREETING": "hello",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    kept = environment(**more)
    for name in ("BASH_ENV", "ENV", "LD_PRELOAD"):
        kept.pop(name, None)
    with (
        (folder / "said").open("w") as said,
        subprocess.Popen(
            [sys.executable, "-c", QUICK + PROGRAM, "worker", *options],
            cwd=folder / "work",
            env=kept,
            stderr=said,
        ) as worker,
    ):
        try:
            return _wait(worker, hostile)
        finally:
            worker.kill()


def _wait(worker: subprocess.Popen[bytes], hostile: Hostile) -> list[str]:
    until = time.monotonic() + PATIENCE + 0.2 * hostile.answers
    while not hostile.done.wait(0.05):
        if worker.poll() is not None:
            return [f"the worker ended with {worker.returncode}, after {hostile.said.total()} lies"]
        if time.monotonic() > until:
            return [f"the worker does no honest task, after {hostile.said.total()} lies"]
    worker.send_signal(signal.SIGTERM)
    try:
        code = worker.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        return ["the worker does not end when it is told to"]
    return [] if code == 0 else [f"the worker ended with {code}, when it was told to"]


def _prepare(folder: Path, server: str, elsewhere: str) -> Scene:
    for name in ("bin", "evil", "victim/nested", "work", "home", "tmp"):
        (folder / name).mkdir(parents=True)
    canary = f"#!/bin/sh\necho \"$0\" >> '{folder / 'executed'}'\n"
    scripts = {
        f"bin/{ALLOWED}": GREET.format(greeted=folder / "greeted"),
        **dict.fromkeys(("bin/canary", f"evil/{ALLOWED}", "hook", "work/canary"), canary),
    }
    for name, text in scripts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    for name in ("data", "1.log", "input.json", "output.json", "nested/data", ".store"):
        (folder / "victim" / name).write_text("kept")
    (folder / "secrets").write_text(f"KEY={KEPT}\n")
    (folder / "secrets").chmod(0o600)
    (folder / "greeted").touch()
    return Scene(
        allowed=ALLOWED,
        canary=folder / "bin" / "canary",
        hook=folder / "hook",
        evil_path=folder / "evil",
        victim=folder / "victim",
        server=server,
        elsewhere=elsewhere,
    )


def _snapshot(folder: Path) -> set[str]:
    """All that is there but what the worker and its command may write, each with its content."""
    own = tuple(folder / each for each in ("work/.holdfast", "known", "greeted", "said"))
    found = set()
    for each in folder.rglob("*"):
        if not any(each == mine or mine in each.parents for mine in own):
            content = each.read_text() if each.is_file() else ""
            found.add(f"{each} {each.lstat().st_mode:o} {content!r}")
    return found


def _look_at_state(home: Path) -> list[str]:
    """What is in the folder of the worker's state, and should not be."""
    forms = (
        r"\.gitignore|identities|remote|remote/(logs|files|processes|artifacts)|remote/worker-1\.lock"
        r"|remote/logs/t_[0-7][0-9a-z]{19}(/[1-9][0-9]*\.log)?"
    )
    names = (str(each.relative_to(home)) for each in home.rglob("*"))
    return [f"left {each} in its state" for each in names if not re.fullmatch(forms, each)]


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - a command-line program prints


def main() -> int:
    parser = argparse.ArgumentParser(description="Lie to a worker, and look at what it does.")
    parser.add_argument("--answers", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    chosen = parser.parse_args()
    _say(f"seed {chosen.seed}, {chosen.answers} answers")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        siege = besiege(Path(folder).resolve(), answers=chosen.answers, seed=chosen.seed)
    for each in siege.violations[:50]:
        _say(f"  {each}")
    if siege.violations:
        _say(siege.log[-4_000:])
    told = ", ".join(f"{count} to {kind}" for kind, count in siege.said.most_common())
    seconds = time.monotonic() - began
    _say(f"{siege.said.total()} lies in {seconds:.0f} s ({told}); {siege.greeted} commands ran")
    _say(f"{len(siege.violations)} violations; again with --seed {chosen.seed}")
    return 1 if siege.violations else 0


if __name__ == "__main__":
    sys.exit(main())
