"""Advice in the words of programs and of the command line."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidInput, StoreUnreachable
from holdfast.model.advice import (
    ANSWER,
    Action,
    Advice,
    advice_of,
    advise,
    describe_call,
    read_stored,
)
from holdfast.service.queries.command_lines import (
    describe_command,
    describe_message,
    describe_text,
    find_named_commands,
)

GO = ("signal", "go")
AGENT = ("agent", "a")
TAGS = (("tag", "x"), ("tag", "y"))
ADD_CHILD = 'hf.tasks.create(NewTask(title="<title>", parent="t_1", enqueue=False))'
TIME = (
    "pass a datetime with a time zone, or its text such as '2030-01-31T09:00+01:00', microseconds "
    "since 1970, or a duration from now such as '2s' or a timedelta"
)
# The advice, the call in a program, and the command.
WORDS = [
    (Advice(Action.ADD_CHILD, "t_1"), ADD_CHILD, "holdfast plan add t_1 '<title>'"),
    (
        Advice(Action.ANSWER, "t_1", (ANSWER,)),
        'hf.answer("t_1", "<answer>")',
        "holdfast answer t_1 '<answer>'",
    ),
    (Advice(Action.APPROVE, "t_1"), 'hf.approve("t_1")', "holdfast approve t_1"),
    (Advice(Action.CANCEL, "t_1"), 'hf.tasks.cancel("t_1")', "holdfast cancel t_1"),
    (Advice(Action.CANCEL, "r_1"), 'hf.runs.cancel("r_1")', "holdfast cancel r_1"),
    (
        Advice(Action.CLAIM, "", (AGENT, *TAGS)),
        'hf.work.claim("worker", agents=["a"], tags=["x", "y"])',
        "holdfast work claim --agent a --tag x --tag y",
    ),
    (Advice(Action.ENQUEUE, "t_1"), 'hf.tasks.enqueue("t_1")', "holdfast task enqueue t_1"),
    (
        Advice(Action.FINALIZE_PLAN, "t_1"),
        'hf.tasks.finalize_plan("t_1")',
        "holdfast plan finalize t_1",
    ),
    (Advice(Action.DELETE, "t_1"), 'hf.tasks.delete("t_1")', "holdfast task delete t_1"),
    (Advice(Action.LIFT_LIMIT, "a"), 'hf.tasks.lift_limit("a")', "holdfast resume --agent a"),
    (Advice(Action.LIST_TASKS, "r_1"), 'hf.runs.tasks("r_1")', "holdfast tasks --run r_1"),
    (Advice(Action.LIST_WORKERS), "hf.workers.list()", "holdfast workers"),
    (Advice(Action.NAME_STEP), 'run.task("…")', "RUN:step"),
    (Advice(Action.PRINT_WHY, "t_1"), 'print(hf.why("t_1"))', "holdfast why t_1"),
    (Advice(Action.REJECT, "t_1"), 'hf.reject("t_1")', "holdfast reject t_1"),
    (Advice(Action.REOPEN, "t_1"), 'hf.tasks.reopen("t_1")', "holdfast retry --again t_1"),
    (Advice(Action.RESET, "t_1"), 'hf.tasks.reset("t_1")', "holdfast task reset t_1"),
    (Advice(Action.RESUME, "r_1"), 'hf.runs.resume("r_1")', "holdfast resume r_1"),
    (Advice(Action.RESUME, "t_1"), 'hf.tasks.unhold("t_1")', "holdfast resume t_1"),
    (
        Advice(Action.RESUME, "t_1", (("hold", "limit"),)),
        'hf.tasks.unhold("t_1", "limit")',
        "holdfast resume t_1",
    ),
    (
        Advice(Action.RESUME, "r_1", (("add_usd", "2.5"), ("add_attempts", "40"))),
        'hf.runs.resume("r_1", add_usd=2.5, add_attempts=40)',
        "holdfast resume r_1 --add-usd 2.5 --add-attempts 40",
    ),
    (Advice(Action.RETRY, "t_1"), 'hf.tasks.retry("t_1")', "holdfast retry t_1"),
    (Advice(Action.RETRY, "r_1"), 'hf.runs.retry("r_1")', "holdfast retry r_1"),
    (
        Advice(Action.RETRY, "r_1", (("step", "build.1.make"),)),
        'hf.runs.retry("r_1", step="build.1.make")',
        "holdfast retry r_1 --from build.1.make",
    ),
    (Advice(Action.RUN_NOW, "t_1"), 'hf.tasks.run_now("t_1")', "holdfast task run-now t_1"),
    (
        Advice(Action.SIGNAL, "r_1", (GO,)),
        'hf.signal("r_1", "go")',
        "holdfast signal r_1 go",
    ),
    (
        Advice(Action.START_PLANNING, "t_1"),
        'hf.tasks.start_planning("t_1")',
        "holdfast plan start t_1",
    ),
    (
        Advice(Action.START_WORKER, "", (AGENT,)),
        'hf.worker(agents=["a"]).run()',
        "holdfast worker --agent a",
    ),
    (
        Advice(Action.UNBLOCK, "t_1", (("need", "t_2"),)),
        'hf.tasks.unblock("t_1", ["t_2"])',
        "holdfast task unblock t_1 --needs t_2",
    ),
    (
        Advice(Action.WAIT_LONGER),
        "raise the setting 'patience'",
        "try again when it is done",
    ),
    (Advice(Action.WHY, "t_1"), 'hf.why("t_1")', "holdfast why t_1"),
    (
        Advice(Action.WRITE_TIME),
        TIME,
        "write a time such as 2030-01-31T09:00+01:00, or a duration from now such as 10m",
    ),
]
# Told as a fix alone, which no error of an attempt repeats.
NEVER_STORED = {Action.ADD_CHILD, Action.CLAIM, Action.START_WORKER}


def with_store(command: str) -> str:
    return f"{command} --db x"


@pytest.mark.parametrize(("advice", "call", "command"), WORDS)
def test_advice_is_a_call_for_a_program_and_a_command_for_a_person(
    advice: Advice, call: str, command: str
) -> None:
    assert (describe_call(advice), describe_command(advice)) == (call, command)


def test_each_action_has_its_words() -> None:
    assert {advice.action for advice, _, _ in WORDS} == {*Action}


@pytest.mark.parametrize(
    ("advice", "call"), [each[:2] for each in WORDS if each[0].action not in NEVER_STORED]
)
def test_advice_in_a_stored_text_is_read_again(advice: Advice, call: str) -> None:
    assert advice_of(read_stored(f"it failed: ({call}), twice")) == (advice,)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (advise(Action.RUN_NOW, "t_1") + " has it", "holdfast task run-now t_1 --db x has it"),
        ("`" + advise(Action.WHY, "t_1") + "` tells", "`holdfast why t_1 --db x` tells"),
        (
            "`holdfast bus` tells; `holdfast x --help`",
            "`holdfast bus --db x` tells; `holdfast x --help`",
        ),
        ("`holdfast db upgrade --db …` begins one", "`holdfast db upgrade --db …` begins one"),
        ("a lone ` and `holdfast bus", "a lone ` and `holdfast bus"),
        ("ask again, " + advise(Action.WAIT_LONGER), "ask again, try again when it is done"),
    ],
)
def test_a_command_in_a_text_is_told_as_it_is_to_be_typed(text: str, told: str) -> None:
    assert describe_text(text, with_store) == told


def test_an_error_is_told_with_its_advice_as_commands() -> None:
    wait = StoreUnreachable("locked; " + advise(Action.WAIT_LONGER))
    assert describe_message(wait) == "locked; try again when it is done"
    plain = InvalidInput("file", "is none: `holdfast bus` tells")
    assert describe_message(plain, with_store) == "file: is none: `holdfast bus --db x` tells"


def test_the_commands_that_a_text_names_are_those_in_backticks() -> None:
    text = "`holdfast bus` or `pg_dump`, then `holdfast why t_1`; holdfast runs"
    assert find_named_commands(text) == ["holdfast bus", "holdfast why t_1"]


def test_a_worker_of_a_program_is_told_for_whom_where_that_is_not_by_itself() -> None:
    plain = Advice(Action.START_WORKER, "", (("agent", "default"),))
    other = Advice(Action.START_WORKER, "", (AGENT, TAGS[0]))
    assert describe_command(plain, app="shop:hf") == "holdfast worker shop:hf"
    assert describe_command(other, app="shop:hf") == "holdfast worker shop:hf --agent a --tag x"
