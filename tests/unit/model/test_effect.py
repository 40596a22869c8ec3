"""What a task waits for is written down and read again as it was."""

from __future__ import annotations

import pytest

from holdfast.model.effect import MAX_AWAITED_TEXT, read_awaited, write_awaited

WRITTEN = {
    "r_1 go": (("go",), False),
    "r_1 children": (("children",), False),
    "r_1 ,go,stop,": (("stop", "go", "go"), False),
    "r_1 ,go,*children": (("go",), True),
    "r_1 ,children,go,*children": (("go", "children"), True),
}


@pytest.mark.parametrize(("text", "wait"), WRITTEN.items())
def test_signals_and_children_are_written_and_read(
    text: str, wait: tuple[tuple[str, ...], bool]
) -> None:
    signals, children = wait
    assert write_awaited("r_1", signals, children=children) == text
    assert read_awaited(text) == ("r_1", tuple(sorted(set(signals))), children)


def test_children_alone_and_a_time_alone_name_no_target() -> None:
    assert write_awaited("", (), children=True) == "children"
    assert read_awaited("children").children
    assert write_awaited("", (), children=False) is None
    assert read_awaited("") == ("", (), False)


def test_the_first_signals_are_kept_where_there_is_no_room_for_all() -> None:
    names = [f"{number:0200}" for number in range(20)]
    text = str(write_awaited("r_1", names, children=True))
    kept = read_awaited(text)
    assert len(text) < MAX_AWAITED_TEXT + 20
    assert kept.signals == tuple(names[: len(kept.signals)])
    assert kept.children
