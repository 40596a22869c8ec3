"""What the engine says of Python calls, in the words of the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.service.queries.wording import in_commands

ENGINE = Path(__file__).parents[4] / "src/holdfast/engine"
# Said to programs alone: in their logs, and of connections that no command has.
ELSEWHERE = {"hf.hooks.list", "hf.transaction"}


SAID = [
    ('hf.tasks.enqueue("t_1")', "holdfast task enqueue t_1"),
    ('hf.tasks.run_now("t_1")', "holdfast task run-now t_1"),
    ('hf.tasks.retry("t_1")', "holdfast retry t_1"),
    ('hf.runs.retry("r_1")', "holdfast retry r_1"),
    ('hf.runs.retry("r_1", step=…) does', "holdfast retry r_1 --from STEP does"),
    ('hf.tasks.reopen("t_1") does', "holdfast retry --again t_1 does"),
    ('hf.tasks.cancel("t_1") ends it', "holdfast cancel t_1 ends it"),
    ('hf.runs.cancel("r_1") ends it', "holdfast cancel r_1 ends it"),
    ('hf.tasks.unhold("t_1")', "holdfast resume t_1"),
    ('hf.tasks.unhold("t_1", "limit")', "holdfast resume t_1"),
    ('hf.tasks.unhold("t_1", "version")', "holdfast resume t_1"),
    (
        'hf.approve("t_1") or hf.reject("t_1") settles that',
        "holdfast approve t_1 or holdfast reject t_1 settles that",
    ),
    ('hf.work.claim(…, agents=["a"])', "holdfast work claim --agent a"),
    ('hf.work.claim(…, agents=["a"], tags=["x"])', "holdfast work claim --agent a --tag x"),
    ('hf.tasks.lift_limit("writer")', "holdfast resume --agent writer"),
    ('hf.runs.resume("r_1")', "holdfast resume r_1"),
    ('hf.runs.resume("r_1", add_usd=…)', "holdfast resume r_1 --add-usd N"),
    (
        'hf.runs.resume("r_1", add_usd=…, add_attempts=…) lets',
        "holdfast resume r_1 --add-usd N --add-attempts N lets",
    ),
    ('hf.approve("t_1")', "holdfast approve t_1"),
    ('hf.answer("t_1", …)', "holdfast answer t_1 …"),
    ('hf.signal("r_1", "go")', "holdfast signal r_1 go"),
    ('hf.signal("r_1", "go", …)', "holdfast signal r_1 go [PAYLOAD]"),
    ('hf.why("t_1") tells more', "holdfast why t_1 tells more"),
    ('print(hf.why("t_1")) tells more', "holdfast why t_1 tells more"),
    ('hf.runs.tasks("r_1")', "holdfast tasks --run r_1"),
    ("hf.workers.list() tells", "holdfast workers tells"),
    ('hf.tasks.unblock("t_1") frees it', "holdfast task unblock t_1 frees it"),
    ('hf.tasks.unblock("t_1", ["t_2"]) and', "holdfast task unblock t_1 --needs t_2 and"),
    ('hf.tasks.start_planning("t_1") begins', "holdfast plan start t_1 begins"),
    (
        'hf.tasks.create(NewTask(title=…, parent="t_1", enqueue=False))',
        "holdfast plan add t_1 TITLE",
    ),
    ('hf.tasks.reset("t_1") once', "holdfast task reset t_1 once"),
    ("hf.tasks.finalize_plan(…) ends that", "holdfast plan finalize ID ends that"),
    ('hf.worker(agents=["a"]).run()', "holdfast worker --agent a"),
    ('hf.worker(agents=["a"], tags=["x", "y"])', "holdfast worker --agent a --tag x --tag y"),
    (
        "compare what hf.tasks.events(id) or hf.runs.events(id) say with",
        "compare what `holdfast events ID` says with",
    ),
]


@pytest.mark.parametrize(("said", "told"), SAID)
def test_a_call_becomes_the_command_that_does_it(said: str, told: str) -> None:
    assert in_commands(said) == told


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('hf.tasks.run_now("t_1") has it', "holdfast task run-now t_1 --db x has it"),
        ('print(hf.why("t_1")) tells more', "holdfast why t_1 --db x tells more"),
        ('`hf.why("t_1")` tells more', "`holdfast why t_1 --db x` tells more"),
        (
            "`holdfast bus` tells; `holdfast x --help`",
            "`holdfast bus --db x` tells; `holdfast x --help`",
        ),
        ("`holdfast db upgrade --db …` begins one", "`holdfast db upgrade --db …` begins one"),
        ("raise the setting 'patience'", "try again when it is done"),
    ],
)
def test_a_command_in_a_sentence_is_told_as_it_is_to_be_typed(said: str, told: str) -> None:
    assert in_commands(said, lambda command: f"{command} --db x") == told


def test_a_worker_of_a_program_is_told_for_whom_where_that_is_not_by_itself() -> None:
    plain, other = 'hf.worker(agents=["default"]).run()', 'hf.worker(agents=["a"], tags=["x"])'
    assert in_commands(plain, app="shop:hf") == "holdfast worker shop:hf"
    assert in_commands(other, app="shop:hf") == "holdfast worker shop:hf --agent a --tag x"


def test_every_call_that_the_engine_speaks_of_has_its_command() -> None:
    text = "".join(path.read_text() for path in ENGINE.rglob("*.py"))
    spoken = {match.rstrip("(") for match in re.findall(r"hf\.[a-z_.]+\(", text)} - ELSEWHERE
    tested = "".join(said for said, _ in SAID)
    assert {call for call in spoken if f"{call}(" not in tested} == set()
