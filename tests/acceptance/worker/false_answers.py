"""Lies: what a hostile server says in the place of each true answer, the same for the same seed."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.model.frozen_record import make_record
from holdfast.model.moment import to_datetime
from holdfast.model.result import Refusal
from holdfast.model.task import Assignment, Task
from holdfast.model.token import make_token
from holdfast.model.workflow.declarations import HttpCall, StepWork
from holdfast.worker.remote.assignment_format import Prefetch, pack_assignment

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
LARGE = 16 * 2**20
STATUSES = (
    *(201, 202, 204, 206, 300, 301, 302, 303, 307, 308, 400, 401, 402, 403, 404, 405, 408, 409),
    *(410, 411, 413, 414, 415, 418, 421, 422, 425, 429, 431, 500, 501, 502, 503, 504, 520, 599),
)
CODES = (
    *(each.value for each in Refusal),
    *("store_unavailable", "invalid_input", "too_many_requests", "not_found", "nonsense", ""),
)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What stands around a worker that is lied to, and must stay as it is."""

    allowed: str
    canary: Path
    hook: Path
    evil_path: Path
    victim: Path
    server: str
    elsewhere: str

    @property
    def paths(self) -> list[str]:
        up = "../" * 8
        victim = str(self.victim)
        return [
            *("..", ".", "", "/", "../..", "../../../victim/data", "x/../../../victim"),
            *(victim, f"{up}{victim}", f"1/../../../{self.victim.name}", f"..%2f..%2f{victim}"),
            *("t_00000000000000000001/../../../victim", "t_0000000000000000000/", "r_" + "0" * 20),
            *("t_" + "0" * 19 + "\n", "t_" + "0" * 20 + "\0", "con", "~", "$HOME", "-rf", "\\..\\"),
        ]

    @property
    def urls(self) -> list[str]:
        base, host = f"{self.server}/public", self.server.partition("://")[2]
        return [
            *(f"{base}/../admin", f"{base}/%2e%2e/admin", f"{base}/%252e%252e/admin"),
            *(
                f"{base}/..%2fadmin",
                f"{base}/..%5cadmin",
                f"{base}\\..\\admin",
                f"{base}/..;/admin",
            ),
            *(f"{base}ity", f"{self.server}/admin", self.elsewhere, f"{self.elsewhere}/public"),
            *(f"http://{host}@{self.elsewhere.partition('://')[2]}/public", "file:///etc/passwd"),
            *(
                f"http://u:p@{host}/public",
                f"//{host}/public",
                "http://",
                "public",
                f"{base}/%c0%ae",
            ),
            *(f"{base}/redirect", f"{base}/ok?x=/../admin", f"{base}/a/../b", f"{base}#/../admin"),
        ]


def ids(chance: random.Random) -> str:
    return "t_0" + "".join(chance.choices(ALPHABET, k=19))


def assignment(chance: random.Random, scene: Scene) -> dict[str, Any]:
    """A true one: an allowed command or call, with a text that is left to the worker."""
    task_id, attempt = ids(chance), chance.randint(1, 5)
    run_id = "r_" + ids(chance)[2:]
    prompt = chance.choice([None, "say hello", "x" * 2_000])
    outputs = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    if chance.random() < 0.3:
        call = HttpCall(url=f"{scene.server}/public/ok", headers={"X-Own": "1"}, body={"a": 1})
        work = StepWork(http=call, idle_timeout=5.0)
    else:
        work = StepWork(
            prompt=prompt,
            command=(scene.allowed, "hello"),
            env={"GREETING": "hello"},
            outputs=chance.choice([None, outputs, {**outputs, "required": ["absent"]}]),
            later={"command.1": ("<", "env.GREETING", ">")} if chance.random() < 0.3 else {},
        )
    token = make_token(b"hostile", task_id, attempt)
    counts = {"attempt": attempt, "failures": 0, "lost": 0, "epoch": 1, "round": 0}
    about = {"run_id": run_id, "step": "greet", "timeout": 20.0, "payload": {"a": 1}}
    task = {
        "id": task_id,
        "title": "Greet",
        "agent": "default",
        "item": None,
        "created_at": to_datetime(1),
    }
    own = {
        "task_id": task_id,
        "attempt": attempt,
        "token": token,
        "expires_at": to_datetime(10**15),
    }
    flow = {"workflow": "flow", "workflow_version": "ab" * 16, "is_step": True, "item_number": None}
    values: dict[str, Any] = {
        "input": {},
        "item": None,
        "needs": {},
        "feedback": None,
        "own_feedback": None,
    }
    whole = make_record(
        Assignment,
        {
            **about,
            **own,
            **flow,
            **values,
            "usd_per_attempt": None,
            "name": "greet",
            "epoch": 1,
            "task": make_record(Task, {**task, **about, **counts, "tags": ()}),
            "work": work,
        },
    )
    around = Prefetch(effects={}, needed={}, secrets=frozenset({"KEY"}), trace_id="ab" * 16)
    packed = json.loads(json.dumps(pack_assignment(whole, around)))
    return {"task": {"id": task_id}, "attempt": attempt, "token": token, "whole": packed}


def attack(chance: random.Random, scene: Scene, whole: dict[str, Any]) -> None:
    """One change to an assignment that is well formed, and leads where its worker does not go."""
    canary, evil = str(scene.canary), str(scene.evil_path)
    work = {
        **whole["work"],
        "http": None,
        "command": [scene.allowed, "hello"],
        "env": {},
        "later": {},
    }
    commands = [
        [canary],
        ["canary"],
        ["sh", "-c", canary],
        ["/bin/sh", "-c", canary],
        [f"./{scene.allowed}"],
        [f"{scene.evil_path}/{scene.allowed}"],
        [f"{scene.allowed} "],
        [f"../bin/{scene.allowed}"],
        ["env", canary],
        [scene.allowed.upper()],
    ]
    names = ["WORKER_SECRET", "HOLDFAST_TOKEN", "HOLDFAST_SECRETS", "PATH", "HOME"]
    variables = {
        "BASH_ENV": str(scene.hook),
        "ENV": str(scene.hook),
        "PATH": evil,
        "LD_PRELOAD": canary,
        "HOLDFAST_HOME": str(scene.victim),
        "HOLDFAST_DB": f"sqlite:///{scene.victim}/x.db",
        "PYTHONPATH": evil,
        "SHELLOPTS": "xtrace",
        "PS4": f"$({canary})",
        "BASH_FUNC_printf%%": f"() {{ {canary}; }}",
    }
    name, read = chance.choice(list(variables)), chance.choice(names)
    url = chance.choice(scene.urls)
    call: dict[str, Any] = {"method": "POST", "headers": {}, "body": None}
    changes: list[dict[str, Any]] = [
        {"command": chance.choice(commands)},
        {"later": {"command.0": chance.choice(commands)[:1]}},
        {"prompt": canary, "later": {"command.0": ["", "prompt", ""]}},
        {"env": {name: variables[name]}},
        {"env": {name: ""}, "later": {f"env.{name}": [variables[name]]}},
        {"env": {"GREETING": ""}, "later": {"env.GREETING": ["", f"env.{read}", ""]}},
        {"later": {"command.1": ["", f"{chance.choice(['env', 'secret'])}.{read}", ""]}},
        {"command": None, "http": {**call, "url": url}},
        {
            "command": None,
            "http": {**call, "url": f"{scene.server}/public/ok"},
            "later": {"http.url": [url]},
        },
        {
            "command": None,
            "http": {
                **call,
                "url": f"{scene.server}/public/ok",
                "headers": {"Host": scene.elsewhere},
            },
        },
    ]
    whole["work"] = work | chance.choice(changes)
    if chance.random() < 0.2:
        whole["secrets"] = [*names, "KEY"]


def wrong(chance: random.Random, scene: Scene) -> Any:  # noqa: ANN401 - JSON is any value
    """A value of any type, as often as not one that leads somewhere."""
    pools: list[Callable[[], Any]] = [
        lambda: chance.choice(scene.paths),
        lambda: chance.choice([None, True, False, 0, 1, -1, 2**31, 2**63, 10**30, 1e308, -0.5]),
        lambda: chance.choice([float("nan"), float("inf"), "\ud800", "\0", "a\r\nX: y", "\x1b[2J"]),
        lambda: chance.choice(["", "x" * 100_000, "é" * 300, str(scene.canary), "{{ env.HOME }}"]),
        lambda: chance.choice([[], {}, [[]], {"": {}}, [None], {"a": [1, {"b": None}]}]),
        lambda: _nested(chance.choice([10, 150, 900])),
        lambda: chance.choices(scene.paths, k=3),
        lambda: dict.fromkeys(scene.paths, chance.choice(scene.paths)),
        lambda: chance.choice(scene.urls),
        lambda: chance.choice(CODES),
    ]
    return chance.choice(pools)()


def _nested(depth: int) -> Any:  # noqa: ANN401 - JSON is any value
    value: Any = "deep"
    for _ in range(depth):
        value = [value]
    return value


def _places(value: object, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [here] if here else []
    if isinstance(value, dict):
        found += [place for key in value for place in _places(value[key], (*here, key))]
    elif isinstance(value, list):
        found += [place for n, each in enumerate(value) for place in _places(each, (*here, n))]
    return found


def bend(chance: random.Random, scene: Scene, told: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """The same answer with one to three of its fields changed, left out, or doubled."""
    if chance.random() < 0.05:
        return wrong(chance, scene)
    bent = copy.deepcopy(told)
    for _ in range(chance.randint(1, 3)):
        places = _places(bent)
        if not places:
            return bent
        *outer, last = chance.choice(places)
        inner = bent
        for each in outer:
            inner = inner[each]
        way = chance.random()
        if way < 0.7:
            inner[last] = wrong(chance, scene)
        elif way < 0.85:
            del inner[last]
        elif isinstance(inner, list):
            inner += [inner[last]] * chance.choice([1, 50])
        else:
            inner[f"{last}_"] = inner[last]
    return bent


@dataclass(kw_only=True)
class Answer:
    """The bytes of one answer, and how they are sent."""

    status: int = 200
    body: bytes = b""
    headers: list[tuple[str, str]] = field(default_factory=list)
    length: int | None = None
    endless: bool = False
    drips: bool = False
    silent: bool = False


def problem(code: str, detail: object, **more: object) -> dict[str, Any]:
    return {"type": f"urn:holdfast:problem:{code}", "code": code, "detail": detail, **more}


def lie(chance: random.Random, scene: Scene, told: dict[str, Any]) -> Answer:
    """What is sent where `told` would be true."""
    honest = dump(told)
    way = chance.random()
    if way < 0.7:
        return Answer(body=dump(bend(chance, scene, told)))
    location = chance.choice([scene.elsewhere, "/public/ok", scene.elsewhere + "/api/v1/claims"])
    away = [("Location", location)]
    if way < 0.78:
        status = chance.choice(STATUSES)
        return Answer(status=status, body=chance.choice([honest, b"", b"<html>"]), headers=away)
    if way < 0.86:
        status = chance.choice([each for each in STATUSES if each not in {401, 403}])
        told = problem(chance.choice(CODES), wrong(chance, scene), current=wrong(chance, scene))
        return Answer(status=status, body=dump(told), headers=away)
    if way < 0.9:
        return Answer(body=honest[: chance.randrange(len(honest))])
    if way < 0.98:
        return _malformed(chance, honest)
    return chance.choice(
        [
            Answer(endless=True),
            Answer(body=honest, drips=True),
            Answer(body=b" " * LARGE + honest),
            Answer(body=b'{"assignments": [' + b"0," * (LARGE // 8) + b"0]}"),
        ]
    )


def _malformed(chance: random.Random, honest: bytes) -> Answer:
    return chance.choice(
        [
            Answer(silent=True),
            Answer(body=honest, length=len(honest) + 100),
            Answer(body=honest, length=max(0, len(honest) - 5)),
            Answer(body=honest, length=-1),
            Answer(body=honest, length=10**18),
            Answer(body=honest, headers=[("Content-Encoding", "gzip")]),
            Answer(body=honest, headers=[("Transfer-Encoding", "chunked")]),
            Answer(body=honest, headers=[("X-Long", "x" * 200_000)]),
            Answer(body=honest, headers=[(f"X-{n}", "x") for n in range(500)]),
            Answer(body=honest, headers=[("Set-Cookie", "a=b"), ("X-Odd", "\x00\x1b")]),
            Answer(body=b"\xff\xfe" + honest),
            Answer(body=honest + honest),
            Answer(body=b"[" * 100_000),
            Answer(body=b'{"a":' * 50_000),
            Answer(body=b"1" * 10_000),
        ]
    )


def dump(value: object) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")
