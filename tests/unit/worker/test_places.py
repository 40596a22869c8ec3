"""Places: however a function calls its effects and waits, no two are remembered as one."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from holdfast.worker.places import Places

WORDS = st.sampled_from(
    ["mail", "sleep", "effect", "wait", "map", "2", "#1", "#2", "#02", "x)", "(x)"]
)
NAMES = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)


KINDS: dict[str, Callable[[Places, str], str]] = {
    "effect": lambda places, name: places.take_effect(name),
    # What is not named by the user begins with a word that is known.
    "wait": lambda places, name: places.take(f"wait {name}"),
    "spawn": lambda places, name: places.take_spawn(name),
    "named": lambda places, name: places.take("wait go", name),
}


@given(st.lists(st.tuples(st.sampled_from(sorted(KINDS)), NAMES), max_size=12))
def test_no_two_places_of_a_function_are_the_same(calls: list[tuple[str, str]]) -> None:
    places = Places()
    taken = [KINDS[kind](places, name) for kind, name in calls]
    # Beside it the time is noted at which a wait is over.
    taken += [f"{place} until" for place in taken]
    assert len(set(taken)) == len(taken)


def test_the_first_of_a_name_is_remembered_as_it_is_called() -> None:
    places = Places()
    assert [places.take_effect("mail 2"), places.take_effect("mail")] == ["mail 2", "mail"]
    assert [places.take("sleep"), places.take("sleep")] == ["sleep", "sleep #2"]
