"""Places: however a function calls its effects and waits, no two are remembered as one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.model.text import MAX_NAME
from holdfast.worker.attempt.effect_names import EffectNames

WORDS = st.sampled_from(
    ["mail", "sleep", "effect", "wait", "map", "2", "#1", "#2", "#02", "x)", "(x)"]
)
SHORT = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)
# As long as a name may be: with all that is put around it, some are shortened.
NAMES = st.tuples(SHORT, st.sampled_from([0, 187, 194, 197, 200])).map(
    lambda it: it[0].rjust(it[1], "n")
)


KINDS: dict[str, Callable[[EffectNames, str], str]] = {
    "effect": lambda places, name: places.take_effect_name(name),
    # What is not named by the user begins with a word that is known.
    "wait": lambda places, name: places.take_name(f"wait {name}"),
    "spawn": lambda places, name: places.take_spawn_name(name),
    "named": lambda places, name: places.take_name("wait go", name),
}


@given(st.lists(st.tuples(st.sampled_from(sorted(KINDS)), NAMES), max_size=12))
def test_no_two_places_of_a_function_are_the_same(calls: list[tuple[str, str]]) -> None:
    places = EffectNames()
    taken = [KINDS[kind](places, name) for kind, name in calls]
    # Beside it the time is noted at which a wait is over.
    taken += [f"{place} until" for place in taken]
    assert len(set(taken)) == len(taken)


def test_the_first_of_a_name_is_remembered_as_it_is_called() -> None:
    places = EffectNames()
    assert [places.take_effect_name("mail 2"), places.take_effect_name("mail")] == [
        "mail 2",
        "mail",
    ]
    assert [places.take_name("sleep"), places.take_name("sleep")] == ["sleep", "sleep #2"]


def test_a_name_that_is_too_long_with_what_is_added_to_it_is_remembered_by_its_digest() -> None:
    title = "y" * 500
    again = [EffectNames().take_spawn_name(title) for _ in range(2)]
    assert again[0] == again[1]
    assert len(again[0]) <= MAX_NAME - len(" until")
    places = EffectNames()
    taken = [
        places.take_spawn_name(title),
        places.take_spawn_name(title),
        places.take_spawn_name(title + "z"),
    ]
    assert len(set(taken)) == 3
    assert places.take_spawn_name("y" * 194) == "spawn " + "y" * 194
    with pytest.raises(InvalidInput, match="surrogate"):
        places.take_spawn_name("\ud800" * 500)


def test_an_effect_of_a_long_name_is_found_where_it_was_taken() -> None:
    places = EffectNames()
    for _ in range(2):
        assert places.find_effect_name("sleep " + "y" * 194) == places.take_effect_name(
            "sleep " + "y" * 194
        )
