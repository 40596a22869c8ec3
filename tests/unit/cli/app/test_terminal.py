"""What may go to a terminal, and how wide it is."""

from __future__ import annotations

import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from holdfast.cli.app import terminal
from holdfast.cli.app.terminal import cut, escape, width_of


@given(st.text())
def test_no_character_that_acts_on_a_terminal_is_left(text: str) -> None:
    shown = escape(text)
    assert not any(ord(each) < 32 or 127 <= ord(each) < 160 for each in shown)
    assert not {*shown} & {*"\u200b\u200e\u200f\u202a\u202e\u2066\u2069\ufeff"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m and \x1b[38;2;1;2;3mblue\x1b[m", "red and blue"),
        ("\x1b[2J\x1b]0;title\x07\x1b[2Kdone\x9b31m", "done"),
        ("\x1b]8;;https://a.example\x1b\\a link\x1b]8;;\x1b\\", "a link"),
        ("\x1b(B\x1b7saved\x1b8", "saved"),
        ("\x1b\x1b[0m[31m", "\\x1b[31m"),
        ("\x1b[31", "\\x1b[31"),
        ("\x1b]0;no end", "\\x1b]0;no end"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\u202eabc\u2066", "\\u202eabc\\u2066"),
        ("naïve 漢字 ✓", "naïve 漢字 ✓"),
    ],
)
def test_codes_of_colours_are_left_out_and_control_characters_written_out(
    text: str, shown: str
) -> None:
    assert escape(text) == shown


def test_lines_of_a_log_stay_lines() -> None:
    assert escape("one\n\ttwo\x07", keep="\n\t") == "one\n\ttwo\\x07"


def test_a_wide_character_takes_two_columns_and_a_colour_none() -> None:
    assert width_of("漢字") == 4
    assert width_of("\x1b[31mred\x1b[0m") == 3
    assert width_of("e\u0301") == 1
    assert cut("漢字漢字", 5) == "漢字…"
    assert cut("short", 10) == "short"
    assert cut("any length", None) == "any length"


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_a_text_is_cut_to_its_width(text: str, most: int) -> None:
    assert width_of(cut(escape(text), most)) <= most


def test_a_text_that_is_cut_keeps_its_colours_and_ends_them() -> None:
    painted = "\x1b[31mred\x1b[0m and \x1b[2mdim\x1b[0m"
    assert cut(painted, 11) == painted
    assert cut(painted, 10) == "\x1b[31mred\x1b[0m and \x1b[2md…\x1b[0m"
    assert cut(painted, 6) == "\x1b[31mred\x1b[0m a…"
    assert cut(painted, 3) == "\x1b[31mre…\x1b[0m"


@given(st.text())
def test_json_for_a_terminal_is_the_same_value(text: str) -> None:
    shown = terminal.format_json({"text": text})
    assert json.loads(shown) == {"text": text}
    assert "\x9b" not in shown


def test_colours_go_to_terminals_alone_and_not_where_they_are_not_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert terminal.paint("red", "red") == "red"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert terminal.paint("red", "red") == "\x1b[31mred\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert terminal.paint("red", "red") == "red"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert terminal.paint("red", "red") == "red"
