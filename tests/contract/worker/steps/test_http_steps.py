"""Steps that are HTTP calls: fenced, done once, and retried where that can help."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine.engine import engine_of
from holdfast.model.workflow.declarations import HttpCall, StepWork
from tests.contract.http_service import Reply, Service, service
from tests.contract.worker.file_steps import ONCE, FileSteps, file_steps
from tests.race.racers import eventually

SECRETS = {"API_KEY": "correct-horse-battery"}
NUMBER = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}


@pytest.fixture
def steps(sqlite_url: str, tmp_path: Path) -> Iterator[FileSteps]:
    with file_steps(sqlite_url, tmp_path, SECRETS) as made:
        yield made


def call(to: Service, **fields: Any) -> StepWork:
    outputs = fields.pop("outputs", None)
    return StepWork(http=HttpCall(url=f"{to.url}/pay", **fields), outputs=outputs)


def test_a_call_carries_its_fence_and_gives_its_json(store_url: str, tmp_path: Path) -> None:
    with (
        service(Reply(body=b'{"n": 1, "key": "correct-horse-battery"}')) as to,
        file_steps(store_url, tmp_path, SECRETS) as steps,
    ):
        work = call(
            to,
            headers={"Authorization": "Bearer {{ secret.API_KEY }}", "idempotency-key": "mine"},
            body={"amount": 5},
            outputs=NUMBER,
        )
        task = steps.done(work)
        assert task.output == {"n": 1, "key": "[secret API_KEY]"}
        (heard,) = to.heard
        assert (heard.method, heard.path, heard.body) == ("POST", "/pay", b'{"amount": 5}')
        assert heard.headers["idempotency-key"] == f"{task.id}/1/http"
        assert heard.headers["holdfast-task"] == task.id
        assert heard.headers["holdfast-attempt"] == "1"
        assert heard.headers["authorization"] == "Bearer correct-horse-battery"
        assert heard.headers["content-type"] == "application/json"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_an_answer_in_utf_16_tells_no_secret(encoding: str, steps: FileSteps) -> None:
    said = f"you sent {SECRETS['API_KEY']}".encode(encoding)
    with service(Reply(body=said)) as to:
        output = steps.done(call(to, headers={"X": "{{ secret.API_KEY }}"})).output
    assert isinstance(output, dict)
    assert "[secret API_KEY]" in output["text"]
    assert "b�a�t�t�e�r�y" not in output["text"]


def test_the_log_of_an_http_call_holds_no_secret(
    steps: FileSteps, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with service(Reply(body=b'{"n": 1}', headers={"X-Echo": SECRETS["API_KEY"]})) as to:
        steps.done(call(to, headers={"X": "{{ secret.API_KEY }}"}))
    assert "correct-horse" not in caplog.text


@pytest.mark.parametrize("status", [500, 503, 408, 425, 429])
def test_http_statuses_that_may_pass_are_tried_again_under_the_same_key(
    steps: FileSteps, status: int
) -> None:
    with service(Reply(status=status), Reply(body=b'{"n": 2}')) as to:
        task = steps.done(call(to))
        assert (task.output, task.attempt, task.failures) == ({"n": 2}, 2, 1)
        assert len({each.headers["idempotency-key"] for each in to.heard}) == 1
        assert [each.headers["holdfast-attempt"] for each in to.heard] == ["1", "2"]


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(status=404, body=b"no such \xff thing"), "answered 404: no such"),
        (Reply(status=302, headers={"Location": "/"}), "answered 302"),
        (Reply(status=401, body=b"not correct-horse-battery"), "401: not [secret API_KEY]"),
        (Reply(body=b'{"n": "one"}'), "the output.n must be a number, not"),
        (Reply(body=b"x" * 2_000_000), "answered more than 1048576 bytes"),
    ],
)
def test_http_replies_that_will_not_change_fail_the_step_for_good(
    steps: FileSteps, reply: Reply, message: str
) -> None:
    with service(reply) as to:
        task = steps.done(call(to, outputs=NUMBER, headers={"X": "{{ secret.API_KEY }}"}))
        assert (task.status, task.attempt, len(to.heard)) == ("failed", 1, 1)
        assert message in task.error["message"]


@pytest.mark.parametrize("url", ["ftp://example.org", "http://host:port", "no url"])
def test_an_address_that_is_none_fails_for_good(steps: FileSteps, url: str) -> None:
    task = steps.done(StepWork(http=HttpCall(url=url)))
    assert (task.status, task.attempt) == ("failed", 1)


def test_a_server_that_is_away_is_tried_again(steps: FileSteps) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        task = steps.done(StepWork(http=HttpCall(url=url)))
    assert (task.status, task.attempt) == ("failed", 3)
    assert "connection attempts failed" in task.error["message"]


@pytest.mark.parametrize(
    ("body", "output"), [(b"", {}), (b"ok\x00", {"text": "ok�"}), (b"[1]", [1])]
)
def test_an_answer_that_is_no_json_is_its_text(
    steps: FileSteps, body: bytes, output: object
) -> None:
    with service(Reply(body=body)) as to:
        assert steps.done(call(to, method="GET")).output == output


def test_a_server_that_says_when_is_asked_again_then_and_that_costs_nothing(
    steps: FileSteps,
) -> None:
    with service(Reply(status=429, headers={"Retry-After": "1"}), Reply(body=b"{}")) as to:
        before = engine_of(steps.hf).now()
        task = steps.done(call(to), retry=ONCE)
        assert (task.status, task.failures) == ("done", 0)
        assert engine_of(steps.hf).now() - before >= 1_000_000
        assert [each.outcome for each in steps.hf.tasks.attempts(task.id)] == [
            "released",
            "completed",
        ]


def test_a_call_that_asks_is_made_again_with_the_answer_under_another_key(
    steps: FileSteps,
) -> None:
    with service(Reply(body=b'{"question": "Sure?"}'), Reply(body=b'{"n": 1}')) as to:
        task_id = steps.enqueue(call(to))
        assert eventually(lambda: steps.hf.tasks.get(task_id).question == "Sure?")
        assert steps.hf.answer(task_id, "yes").ok
        assert eventually(lambda: steps.hf.tasks.get(task_id).output == {"n": 1})
        keys = [each.headers["idempotency-key"] for each in to.heard]
        assert keys == [f"{task_id}/1/http", f"{task_id}/1/http 2"]


def test_cancel_stops_a_call_that_waits_for_its_answer(steps: FileSteps) -> None:
    never = threading.Event()
    with service(Reply(after=never)) as to:
        task_id = steps.enqueue(call(to))
        assert eventually(lambda: len(to.heard) == 1)
        assert steps.hf.tasks.cancel(task_id).ok
        assert eventually(lambda: steps.idle)
        never.set()
    assert steps.hf.tasks.get(task_id).status == "cancelled"
