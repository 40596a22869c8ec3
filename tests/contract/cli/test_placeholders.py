"""Placeholders of help and advice: typed as they stand they are refused, with what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.engine.engine import Engine
from tests.contract.cli.command_line import Typed
from tests.contract.task_states import create, take


@pytest.mark.parametrize(
    ("typing", "told"),
    [
        (("answer", "{task}", "…"), "ANSWER: '…' only stands for what is to be written there: "),
        (("answer", "{task}", "<answer>"), "the answer: text or JSON\n"),
        (("answer", "{task}", "ANSWER"), "ANSWER: 'ANSWER' only stands for"),
        (("answer", "{task}", "TEXT"), "ANSWER: 'TEXT' only stands for"),
        (("answer", "ID", "yes"), "ID: 'ID' only stands for"),
        (("signal", "{task}", "go", "[PAYLOAD]"), "PAYLOAD: '[PAYLOAD]' only stands for"),
        (("signal", "{task}", "go", "PAYLOAD"), "PAYLOAD: 'PAYLOAD' only stands for"),
        (("continue", "{task}", "MESSAGE"), "MESSAGE: 'MESSAGE' only stands for"),
        (("task", "add", "TITLE"), "TITLE: 'TITLE' only stands for what is to be written there"),
        (("plan", "add", "{task}", "<title>"), "TITLE: '<title>' only stands for"),
        (("task", "delete", "TASK"), "TASK: 'TASK' only stands for"),
        (("retry", "@last", "--from", "TEXT"), "--from: 'TEXT' only stands for"),
        (("retry", "@last", "--from", "STEP"), "--from: 'STEP' only stands for"),
        (
            ("resume", "{task}", "--add-usd", "N"),
            "--add-usd: 'N' only stands for a number; write one, such as 5\n",
        ),
        (("resume", "{task}", "--add-attempts", "NUMBER"), "--add-attempts: 'NUMBER' only stands"),
        (("worker", "MODULE:NAME"), "APP: 'MODULE:NAME' only stands for what is to be written"),
        (("runs", "--db", "URL"), "--db: 'URL' only stands for"),
        (("run", "w.yaml", "-i", "topic=…"), "topic: '…' only stands for the topic; write the"),
        (("run", "w.yaml", "-i", "K=V"), "--input: 'K=V' only stands for"),
    ],
)
def test_a_placeholder_that_is_typed_as_it_stands_is_refused(
    engine: Engine, typed: Typed, tmp_path: Path, typing: tuple[str, ...], told: str
) -> None:
    (tmp_path / "w.yaml").write_text("name: w\ninput: {topic: string}\nsteps: [{id: a, run: [x]}]")
    task = create(engine)
    assert engine.work.ask(task, take(engine, task).token, "which?").ok
    assert told in typed.refused(2, *(each.format(task=task) for each in typing))
    assert engine.tasks.get(task).holds.names == ("question",)
    assert len(engine.tasks.list()) == 1


def test_text_in_quotes_of_json_is_taken_as_it_is(engine: Engine, typed: Typed) -> None:
    task = create(engine)
    assert engine.work.ask(task, take(engine, task).token, "TEXT or BLOB?").ok
    typed.ok("answer", task, '"TEXT"')
    assert engine.tasks.get(task).feedback == "TEXT"
