"""Steps that are commands, from their prompt to their output."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from holdfast.engine.engine import engine_of
from holdfast.model.workflow.declarations import StepWork
from tests.acceptance.worker.watched_attempt import alive, program
from tests.contract.worker.file_steps import ONCE, FileSteps, file_steps, shell
from tests.race.racers import eventually

STORIES = {
    "type": "object",
    "properties": {"stories": {"type": "array", "items": {"type": "string"}}},
    "required": ["stories"],
}


@pytest.fixture
def steps(sqlite_url: str, tmp_path: Path) -> Iterator[FileSteps]:
    with file_steps(sqlite_url, tmp_path) as made:
        yield made


def test_a_command_gives_its_last_line_of_json(store_url: str, tmp_path: Path) -> None:
    with file_steps(store_url, tmp_path) as steps:
        task = steps.done(shell("""echo hello; echo '{"a": 1}'; echo bye >&2"""))
        assert (task.status, task.output) == ("done", {"a": 1})
        assert sorted(steps.log(task.id).splitlines()) == ["bye", "hello", '{"a": 1}']
        left = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
        assert left == [steps.state.log(task.id, 1).path]


def test_a_command_knows_its_attempt_its_store_and_its_input(
    steps: FileSteps, sqlite_url: str
) -> None:
    text = 'env | grep ^HOLDFAST_ | sort; cat "$HOLDFAST_INPUT"; cat > "$HOLDFAST_OUTPUT"'
    work = shell(text, prompt='{"told": true}', env={"HOLDFAST_TASK": "lies", "HOLDFAST_X": "1"})
    task = steps.done(work)
    assert task.output == {"told": True}
    *lines, given = steps.log(task.id).splitlines()
    named = dict(line.split("=", 1) for line in lines)
    assert named["HOLDFAST_TASK"] == task.id
    assert named["HOLDFAST_ATTEMPT"] == "1"
    assert named["HOLDFAST_ATTEMPT_TOKEN"] == "[secret HOLDFAST_ATTEMPT_TOKEN]"
    assert named["HOLDFAST_DB"] == f"sqlite:///{sqlite_url.removeprefix('sqlite:///')}"
    assert named["HOLDFAST_SERVER"].startswith("http://127.0.0.1:")
    assert named["HOLDFAST_TOKEN"] == "[secret HOLDFAST_TOKEN]"
    assert named["HOLDFAST_PROMPT"] == '{"told": true}'
    assert named["HOLDFAST_X"] == "1"
    assert json.loads(given) == {
        "input": {},
        "item": None,
        "feedback": None,
        "steps": {},
        "prompt": '{"told": true}',
    }


def test_a_prompt_that_stands_in_the_command_is_not_read(steps: FileSteps) -> None:
    work = StepWork(
        prompt="$(say) 'it'",
        command=("sh", "-c", 'printf "%s|" "$0"; cat', "<{{ prompt }}>"),
    )
    task = steps.done(work)
    assert steps.log(task.id) == "<$(say) 'it'>|"


def test_a_prompt_is_no_option_of_the_command(steps: FileSteps) -> None:
    task = steps.done(StepWork(prompt="--version", command=("echo", "{{ prompt }}")))
    assert steps.log(task.id) == "\n--version\n"
    task = steps.done(shell("cat", prompt="- as it is"))
    assert steps.log(task.id) == "- as it is"


def test_a_prompt_is_given_the_variables_of_the_worker_and_no_more(
    steps: FileSteps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", "{{ env.HOME }}")
    task = steps.done(shell('cat; echo; echo "$HOLDFAST_PROMPT"', prompt="Look in {{ env.PLACE }}"))
    assert steps.log(task.id) == "Look in {{ env.HOME }}\n" * 2


def test_a_command_that_fails_says_how_and_is_tried_again(steps: FileSteps) -> None:
    work = shell('[ "$HOLDFAST_ATTEMPT" = 2 ] || { echo "no luck" >&2; exit 3; }')
    task = steps.done(work)
    assert (task.status, task.attempt, task.output) == ("done", 2, {"text": ""})
    (first, _) = steps.hf.tasks.attempts(task.id)
    assert first.error == {
        "type": "CommandFailed",
        "message": "ended with exit code 3: no luck",
        "traceback": [],
    }


def test_a_command_runs_in_the_folder_that_its_step_names(
    steps: FileSteps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    tool = folder / "tool.sh"
    tool.write_text(
        '#!/bin/sh\npwd; echo "$HOLDFAST_HOME"; echo \'{"a": 1}\' > "$HOLDFAST_OUTPUT"\n'
    )
    tool.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_HOME", "home")
    for cwd in (str(folder), "project", "{{ env.PLACE }}"):
        monkeypatch.setenv("PLACE", str(folder))
        task = steps.done(StepWork(command=("./tool.sh",), cwd=cwd))
        assert (task.status, task.output) == ("done", {"a": 1}), task.error
        assert steps.log(task.id) == f"{folder}\n{tmp_path}/home\n"


def test_what_a_command_writes_is_its_answer_where_nothing_else_is(steps: FileSteps) -> None:
    task = steps.done(shell("printf 'a\\033[1mb\\033[0m\\n'; echo note >&2"))
    assert task.output == {"text": "ab"}


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (StepWork(command=("pwd",), cwd="/not/there"), "cwd: '/not/there' is no folder on the"),
        (StepWork(command=("pwd",), cwd="/dev/null"), "cwd: '/dev/null' is no folder on the"),
        (StepWork(command=("pwd",), cwd=""), "cwd: '' is no folder on the machine of this worker"),
        (StepWork(command=("no-such-command",)), "no-such-command cannot be run: No such file"),
        (
            StepWork(command=("echo", "{{ prompt }}"), prompt="x" * 200_000),
            "echo cannot be run: its arguments and its environment are longer",
        ),
        (shell("kill -9 $$"), "was killed by SIGKILL"),
        (shell("sleep 1000", idle_timeout=0.1), "was silent for longer than 0.1 s"),
        (shell("exit 1", env={"A": ""}), "ended with exit code 1"),
        (
            shell("true", env={"A": "{{ secret.NONE }}"}),
            "secret NONE: this worker does not have it",
        ),
        (
            shell("true", env={"A": "{{ env.NOT_THERE }}"}),
            "env NOT_THERE: is not in the environment of this worker",
        ),
        (shell("echo no", outputs=STORIES), "there is no JSON object in it"),
        (shell("""echo '{"stories": 1}'""", outputs=STORIES), "the output.stories must be a list"),
        (shell("echo '[]' > $HOLDFAST_OUTPUT"), "holds no JSON object"),
        (shell("mkfifo $HOLDFAST_OUTPUT", outputs=STORIES), "there is no JSON object"),
    ],
)
def test_a_command_that_cannot_be_done_says_why(
    steps: FileSteps, work: StepWork, message: str
) -> None:
    task = steps.done(work, retry=ONCE)
    assert task.status == "failed"
    assert message in task.error["message"]


def test_a_command_that_runs_too_long_has_ended_before_that_is_said(steps: FileSteps) -> None:
    text = "trap '' TERM; echo $$; exec sleep 1000"
    task = steps.done(shell(text), timeout=0.2, retry=ONCE)
    assert task.error["message"] == "ran longer than 0.2 s"
    pid, said = steps.log(task.id).splitlines()
    assert said.startswith("[holdfast: ran longer than 0.2 s; ")
    assert said.endswith(" ended, none is left]")
    assert alive([int(pid)]) == []


def test_a_malformed_answer_gets_one_turn_more_that_says_what_was_wrong(steps: FileSteps) -> None:
    text = """
read prompt
if grep -q 'You have answered this before'; then
    echo '{"stories": ["one"]}'
else
    echo 'stories, many of them'
fi
"""
    task = steps.done(shell(text, prompt="Split it\n", outputs=STORIES))
    assert (task.status, task.attempt, task.output) == ("done", 1, {"stories": ["one"]})
    assert steps.log(task.id) == 'stories, many of them\n{"stories": ["one"]}\n'


def test_a_command_that_was_given_no_prompt_is_not_run_again_for_a_better_answer(
    steps: FileSteps,
) -> None:
    task = steps.done(shell("echo ran", outputs=STORIES), retry=ONCE)
    assert task.status == "failed"
    assert steps.log(task.id) == "ran\n"


def test_a_command_that_repeats_its_prompt_has_not_answered_with_the_examples_in_it(
    steps: FileSteps,
) -> None:
    number = {"type": "object", "properties": {"n": {"type": "integer"}}}
    text = """
heard=$(cat)
echo "$heard"
case "$heard" in
*"You have answered this before"*) echo '{"n": 42}';;
*) echo I think the answer is 42;;
esac
"""
    task = steps.done(shell(text, prompt="Think", outputs=number), retry=ONCE)
    assert (task.status, task.output) == ("done", {"n": 42}), task.error
    echo = shell("cat; echo I think the answer is 42", prompt="Think", outputs=number)
    task = steps.done(echo, retry=ONCE)
    assert (task.status, task.question) == ("failed", None)
    assert "there is no JSON object in it" in task.error["message"]
    assert steps.log(task.id).count("I think the answer is 42") == 3, "it is run twice"


def asked(steps: FileSteps, task_id: str, question: str) -> bool:
    return bool(steps.hf.tasks.get(task_id).question == question)


def test_a_command_may_ask_and_runs_again_with_all_answers(store_url: str, tmp_path: Path) -> None:
    text = """
case "$(cat)" in
*red*warm*) echo '{"done": "red, warm"}';;
*red*) echo '{"question": "Warm?"}';;
*) echo '{"question": "Which colour?"}';;
esac
"""
    with file_steps(store_url, tmp_path) as steps:
        task_id = steps.enqueue(shell(text, prompt="Paint"))
        for question, answer in (("Which colour?", "red"), ("Warm?", "warm")):
            asks = partial(asked, steps, task_id, question)
            assert eventually(asks)
            assert steps.hf.answer(task_id, answer).ok
        assert eventually(lambda: steps.hf.tasks.get(task_id).terminal)
        task = steps.hf.tasks.get(task_id)
        assert (task.output, task.failures) == ({"done": "red, warm"}, 0)


def test_cancel_of_a_run_ends_a_command_with_all_it_started_and_its_attempt_says_so(
    store_url: str, tmp_path: Path
) -> None:
    text = """
echo $$
setsid sh -c 'trap "" TERM; echo $$; while :; do sleep 0.05; done' &
sh -c 'echo $$; exec sleep 1000' &
wait
"""
    with file_steps(store_url, tmp_path) as steps:
        task_id = steps.enqueue(shell(text))
        log = steps.state.log(task_id, 1).path
        assert eventually(lambda: log.exists() and len(log.read_text().split()) == 3)
        pids = [int(each) for each in log.read_text().split()]
        assert alive(pids) == pids
        assert steps.hf.runs.cancel(str(steps.hf.tasks.get(task_id).run_id)).ok
        assert eventually(lambda: alive(pids) == [])
        assert eventually(lambda: steps.hf.tasks.attempts(task_id)[0].stopped_at is not None)
        (attempt,) = steps.hf.tasks.attempts(task_id)
        assert (attempt.outcome, attempt.left) == ("cancelled", 0)
        assert attempt.stopped >= 3
        assert "[holdfast: stopped, as its attempt is over;" in log.read_text()


def test_a_command_whose_keeper_is_killed_has_failed_and_leaves_nothing(steps: FileSteps) -> None:
    text = """
if [ "$HOLDFAST_ATTEMPT" = 1 ]; then
    echo $PPID $$
    setsid sh -c 'echo $$; while :; do sleep 0.05; done' &
    wait
fi
"""
    task_id = steps.enqueue(shell(text))
    log = steps.state.log(task_id, 1).path
    assert eventually(lambda: log.exists() and len(log.read_text().split()) == 3)
    pids = [int(each) for each in log.read_text().split()]
    os.kill(pids[0], signal.SIGKILL)
    assert eventually(lambda: steps.hf.tasks.get(task_id).terminal)
    assert alive(pids) == []
    assert [each.outcome for each in steps.hf.tasks.attempts(task_id)] == ["failed", "completed"]


def test_the_last_line_that_a_command_wrote_is_its_progress(
    sqlite_url: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    with file_steps(sqlite_url, tmp_path, renewal=0.05) as steps:
        work = StepWork(
            command=program(f"""
import os, sys
print("\\x1b[31mediting\\x1b[0m src/saml.ts", flush=True)
os.mkfifo({str(gate)!r})
open({str(gate)!r}).read()
""")
        )
        task_id = steps.enqueue(work)
        engine = engine_of(steps.hf)
        assert eventually(gate.exists)
        assert eventually(lambda: engine.tasks.get(task_id).progress is not None)
        gate.write_text("go")
        assert eventually(lambda: engine.tasks.get(task_id).terminal)
        assert engine.tasks.get(task_id).progress == {"log": "editing src/saml.ts"}
