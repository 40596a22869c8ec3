"""Ids: shaped, ordered by time, unique within and across processes."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.clock import ManualClock, SystemClock
from holdfast.errors import InvalidInput
from holdfast.ids import ALPHABET, CHANCE_BYTES, LOW_BITS, Ids
from holdfast.model.text import ID_ALPHABET, parse_run_id, parse_task_id
from holdfast.randomness import SeededRandomness, SystemRandomness


def ids(clock: ManualClock | SystemClock | None = None) -> Ids:
    return Ids(clock or ManualClock(), SeededRandomness(7))


def milliseconds(identifier: str) -> int:
    value = 0
    for character in identifier[2:12]:
        value = value * 32 + ALPHABET.index(character)
    return value


def test_ids_say_what_they_are_and_have_the_shape_their_parsers_want() -> None:
    made = ids(SystemClock())
    task, run = made.task(), made.run()
    assert parse_task_id(task) == task
    assert parse_run_id(run) == run


@given(st.integers(min_value=0, max_value=2**48 - 1))
def test_an_id_carries_its_millisecond(millisecond: int) -> None:
    assert milliseconds(ids(ManualClock(millisecond * 1000)).task()) == millisecond


def test_ids_of_one_millisecond_grow_strictly() -> None:
    made = ids()
    several = [made.task() for _ in range(10_000)]
    assert several == sorted(set(several))


def test_ids_that_are_made_together_stand_between_those_before_and_after() -> None:
    made = ids()
    several = [made.task(), *made.tasks(100), made.task()]
    assert several == sorted(set(several))
    assert [parse_task_id(each) for each in several] == several


class Full(SeededRandomness):
    """Draws such chance that the last characters of an id are soon used up."""

    def token_bytes(self, count: int) -> bytes:
        return (((1 << LOW_BITS) - 3) << 7).to_bytes(CHANCE_BYTES, "big") * (count // CHANCE_BYTES)


@pytest.mark.parametrize("randomness", [SeededRandomness, Full])
def test_ids_that_are_made_together_are_those_that_are_made_one_by_one(
    randomness: type[SeededRandomness],
) -> None:
    alone, together = (Ids(ManualClock(), randomness(7)) for _ in range(2))
    assert together.tasks(9) == [alone.task() for _ in range(9)]


def test_ids_grow_even_when_the_clock_is_set_back() -> None:
    clock = ManualClock()
    made = ids(clock)
    first = made.task()
    clock.set(clock.now() - 3_600_000_000)
    assert made.task() > first


def test_a_later_millisecond_gives_a_greater_id() -> None:
    clock = ManualClock()
    made = ids(clock)
    several = []
    for _ in range(1000):
        several.append(made.task())
        clock.advance(0.001)
    assert several == sorted(several)


def test_threads_never_share_an_id() -> None:
    made = Ids(SystemClock(), SystemRandomness())
    found: list[list[str]] = []

    def work() -> None:
        found.append([made.task() for _ in range(5000)])

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(several == sorted(several) for several in found)
    assert len({identifier for several in found for identifier in several}) == 20_000


FORK = """
import os
import sys
from holdfast.clock import ManualClock
from holdfast.ids import Ids
from holdfast.randomness import SystemRandomness
clock = ManualClock()
ids = Ids(clock, SystemRandomness())
ids.task()
child = os.fork()
clock.advance(float(sys.argv[1]))
os.write(1, (ids.task() + "\\n").encode())
if not child:
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.mark.parametrize("later", [0, 0.001])
def test_a_forked_child_does_not_repeat_its_parents_ids(later: float) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORK, str(later)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    assert len({*answer.stdout.split()}) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "t_",
        "r_01m7f64jkc1pnz9wccpf",
        "t_01m7f64jkc1pnz9wccp",
        "t_01m7f64jkc1pnz9wccpff",
        "t_01M7F64JKC1PNZ9WCCPF",
        "t_01m7f64jkc1pnz9wccpi",
        "t_81m7f64jkc1pnz9wccpf",
        "t_01m7f64jkc1pnz9wccpf\n",
        "t_" + "x" * 10_000,
    ],
)
def test_an_invalid_task_id_is_refused_with_its_field(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_task_id(text, field="needs[2]")
    assert refusal.value.field == "needs[2]"
    assert len(refusal.value.reason) < 200


def test_a_task_id_is_no_run_id() -> None:
    with pytest.raises(InvalidInput, match="run_id"):
        parse_run_id(ids().task())


def test_ids_that_are_drawn_ahead_grow_and_are_nobody_elses() -> None:
    ids = Ids(ManualClock(), SeededRandomness(1))
    ahead = ids.draw_task_ids(3)
    later = ids.task()
    drawn = [ahead.task() for _ in range(3)]
    assert drawn == sorted({*drawn})
    assert drawn[-1] < later


def test_the_model_checks_ids_by_the_alphabet_that_makes_them() -> None:
    assert ID_ALPHABET == ALPHABET
