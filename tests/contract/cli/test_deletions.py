"""Deletions that are refused: what the refusals say to type, one after the other, makes room."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.task import NewTask
from tests.contract.cli.command_line import Typed
from tests.contract.engine.state.plans.test_plans import plan
from tests.contract.task_states import create, finish, take

ENOUGH = 10


@pytest.fixture
def url(store_url: str) -> str:
    """On each database: what keeps a task is read there."""
    return store_url


def a_chain(engine: Engine) -> str:
    first = create(engine, "first")
    second = create(engine, "second", needs=(first,))
    third = create(engine, "third", needs=(first, second))
    create(engine, "fourth", needs=(third,))
    finish(engine, first)
    finish(engine, second)
    take(engine, third)
    return first


def a_part(engine: Engine) -> str:
    parent, (one, _two, _three) = plan(engine, "one", "two", "three")
    assert engine.tasks.finalize_plan(parent).ok
    return one


def a_plan(engine: Engine) -> str:
    parent, (one, two) = plan(engine, "one", "two")
    assert engine.tasks.finalize_plan(parent).ok
    create(engine, "after", needs=(two, parent))
    finish(engine, one)
    take(engine, two)
    return parent


def a_maker(engine: Engine) -> str:
    maker = take(engine, create(engine, "maker"))
    engine.work.spawn(maker.task.id, maker.token, [NewTask(title="made")], name="m")
    return maker.task.id


@pytest.mark.parametrize("situation", [a_chain, a_part, a_plan, a_maker])
def test_a_task_is_deleted_once_all_is_typed_that_the_refusals_say(
    engine: Engine, typed: Typed, situation: Callable[[Engine], str]
) -> None:
    task = situation(engine)
    for _ in range(ENOUGH):
        refused = typed("task", "delete", task)
        if refused.code == 0:
            return
        told = refused.err.partition("next:")[0]
        commands = re.findall(r"holdfast ((?:task )?[a-z]+ (?:t_\w+|--needs| )+)", told)
        assert commands, told
        for each in commands:
            typed.ok(*shlex.split(each))
    raise AssertionError(f"{task} was never deleted")
