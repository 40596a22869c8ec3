"""Stubs: answers of a test in place of functions, and of agents and commands of workflow files."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Context, InvalidInput, TaskFailed, Verdict, needs
from holdfast.model.workflow.declarations import HttpCall
from holdfast.testing import Harness, NotEnded, Question
from tests.contract.testing import shop_program as shop

FEATURE = Path(__file__).parents[3] / "examples" / "feature" / "feature.yaml"
LETTER = """
name: letter
input: {to: string}
agents:
  writer: {command: [write, it]}
steps:
  - {id: draft, agent: writer, prompt: "Write to {{ input.to }}", outputs: {pages: int}}
  - {id: send, run: [sh, -c, 'echo "{\\"sent\\": true}"'], outputs: {sent: bool}}
"""
CALL = """
name: call
input: {to: string}
env: [PLACE]
agents:
  writer: {command: [write, "{{ prompt }}"]}
steps:
  - {id: draft, agent: writer, prompt: "Write to {{ input.to }} in {{ env.PLACE }}", outputs: {pages: int}}
  - id: file
    http: {url: "https://example.org/letters", headers: {Token: "{{ secret.KEY }}"},
           body: {pages: "{{ steps.draft.pages }}"}}
    outputs: {id: int}
"""  # noqa: E501 - a line of a file


@pytest.fixture
def letter(tmp_path: Path) -> Path:
    path = tmp_path / "letter.yaml"
    path.write_text(LETTER)
    return path


def test_a_value_stands_for_a_function_and_is_checked_like_its_result(harness: Harness) -> None:
    harness.stub(shop.pack, shop.Parcel(99))
    harness.stub("charge", "a gift")
    assert shop.checkout.start(order_id=7).result() == "order 99 shipped, a gift"
    assert shop.charged == []
    harness.stub(shop.pack, "no parcel")
    with pytest.raises(TaskFailed, match=r"'pack' gives it|pack"):
        harness.run_to_end(shop.checkout.start(order_id=7))


def test_a_function_stands_for_another_with_those_arguments_that_it_takes(harness: Harness) -> None:
    asked: list[int] = []

    def charge(order_id: int, ctx: Context) -> str:
        asked.append(order_id)
        return f"attempt {ctx.attempt}"

    async def pack() -> shop.Parcel:
        return shop.Parcel(1)

    harness.stub(shop.charge, charge)
    harness.stub(shop.pack, pack)
    assert shop.checkout.start(order_id=7).result() == "order 1 shipped, attempt 1"
    assert asked == [7]
    harness.stub(shop.charge, lambda order: order)
    with pytest.raises(TaskFailed, match="the stub takes 'order', and the step gives order_id"):
        harness.run_to_end(shop.checkout.start(order_id=7))


def test_answers_are_given_in_turn_and_the_last_for_all_that_follow(harness: Harness) -> None:
    harness.stub(shop.send_mail, ConnectionError("down"), TimeoutError, "third")
    assert harness.run_to_end(shop.send_mail.enqueue("ada")) == "third"
    assert [each.error for each in harness.attempts] == [
        "ConnectionError: down",
        "TimeoutError",
        None,
    ]
    assert shop.send_mail.enqueue("bob").result() == "third"
    with pytest.raises(InvalidInput, match="at least one"):
        harness.stub(shop.send_mail)


def test_a_question_waits_for_its_answer_before_the_next_is_given(harness: Harness) -> None:
    harness.stub(shop.send_mail, Question("which address?"), "sent")
    job = shop.send_mail.enqueue("ada")
    with pytest.raises(NotEnded, match="which address"):
        job.result()
    shop.hf.answer(job, "the old one")
    assert job.result() == "sent"


def test_verdicts_are_given_by_round(harness: Harness) -> None:
    feature = harness.hf.workflow("feature")
    heard: list[object] = []

    @feature.step
    def write(feedback: str | None = None) -> str:
        heard.append(feedback)
        return f"text, because {feedback}"

    @feature.step(verifies=write)
    def judge(subject: str) -> Verdict:
        return Verdict.reject(f"never called for {subject}")

    @feature.step
    def publish(text: str = needs(write)) -> str:
        return text

    harness.stub(judge, Verdict.reject("too short"), Verdict.reject("too long"), Verdict.accept())
    assert feature.start().result() == "text, because too long"
    assert heard == [None, "too short", "too long"]
    harness.assert_order(write, judge, publish)


def test_agents_of_a_workflow_file_are_answered_by_round(store_url: str) -> None:
    prompts: list[str] = []

    def develop(prompt: str, item: dict[str, str], feedback: object) -> dict[str, str]:
        prompts.append(prompt)
        return {"change": f"{item['title']} {feedback}"}

    with Harness(url=store_url) as harness:
        stories = [{"title": "Login", "must": "form"}, {"title": "Logout", "must": "button"}]
        harness.stub_agent("planner", {"stories": stories})
        harness.stub_agent("developer", develop)
        harness.stub("verify", Verdict.reject("add a form"), Verdict.accept())
        harness.stub("review", 'It is good.\n{"summary": "done"}\n')
        run = harness.workflow_file(FEATURE).start(task="SSO")
        assert run.result() == {"summary": "done"}
        assert prompts == [
            "Implement Login. ",
            "Implement Login. add a form",
            "Implement Logout. ",
        ]
        harness.assert_ran("verify", times=3)
        harness.assert_order("plan", "implement", "verify", "review")
        assert harness.hf.doctor().ok


def test_an_answer_that_does_not_fit_fails_its_attempt_as_it_would_in_a_worker(
    harness: Harness, letter: Path
) -> None:
    harness.stub("draft", {"pages": "two"}, "I wrote nothing", {"pages": 2})
    harness.stub("send", Question("by mail?"), {"sent": True})
    run = harness.workflow_file(letter).start(to="Ada")
    with pytest.raises(NotEnded, match="by mail"):
        harness.run_to_end(run)
    assert [each.outcome for each in harness.attempts if each.step == "draft"] == [
        "failed",
        "failed",
        "completed",
    ]
    assert [each.error for each in harness.attempts if each.step == "draft"][:2] == [
        "output.pages must be a whole number, not text",
        "InvalidOutput: there is no JSON object in it, in a line of its own",
    ]
    harness.hf.answer(run.task("send"), "yes")
    assert harness.run_to_end(run) == {"sent": True}


def test_no_command_is_started_unless_the_test_lets_it_be(letter: Path) -> None:
    with Harness() as harness:
        harness.stub_agent("writer", {"pages": 2})
        run = harness.workflow_file(letter).start(to="Ada")
        with pytest.raises(
            NotEnded, match=r"'send' of letter starts a command(.|\n)*give it answers"
        ):
            run.result()
        harness.stub("send", {"sent": False})
        assert run.result() == {"sent": False}
    with Harness(commands=True) as harness:
        harness.stub_agent("writer", {"pages": 2})
        assert harness.workflow_file(letter).start(to="Ada").result() == {"sent": True}


def test_a_function_sees_what_would_be_done_but_no_secret(
    harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", "Rome")
    path = tmp_path / "call.yaml"
    path.write_text(CALL)
    seen: dict[str, object] = {}

    def write(prompt: str, command: list[str], steps: dict[str, object]) -> dict[str, int]:
        seen.update(prompt=prompt, command=command, steps=steps)
        return {"pages": 2}

    def call(http: HttpCall, **_: object) -> str:
        seen.update(url=http.url, token=http.headers["Token"], body=http.body)
        return '{"id": 7}'

    harness.stub("draft", write)
    harness.stub("file", call)
    assert harness.workflow_file(path).start(to="Ada").result() == {"id": 7}
    assert seen == {
        "prompt": "Write to Ada in Rome",
        "command": ["write", "Write to Ada in Rome"],
        "steps": {},
        "url": "https://example.org/letters",
        "token": "{{ secret.KEY }}",
        "body": {"pages": 2},
    }
