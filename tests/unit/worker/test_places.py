"""Places: however a function calls its effects and waits, no two are remembered as one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.worker.places import Places

WORDS = st.sampled_from(["mail", "sleep", "effect", "wait", "map", "2", "#1", "#2", "#02"])
NAMES = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)


@given(st.lists(st.tuples(st.booleans(), NAMES), max_size=12))
def test_no_two_places_of_a_function_are_the_same(calls: list[tuple[bool, str]]) -> None:
    places = Places()
    # What is not named by the user begins with a word that is known.
    taken = [
        places.take_effect(name) if named else places.take(f"wait {name}") for named, name in calls
    ]
    assert len(set(taken)) == len(taken)


def test_the_first_of_a_name_is_remembered_as_it_is_called() -> None:
    places = Places()
    assert [places.take_effect("mail 2"), places.take_effect("mail")] == ["mail 2", "mail"]
    assert [places.take("sleep"), places.take("sleep")] == ["sleep", "sleep #2"]
