"""Trees of runs on screens of any size."""

from __future__ import annotations

import time
from itertools import chain
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from holdfast.cli.app.terminal import width_of
from holdfast.cli.render.formats import SECOND, now
from holdfast.cli.render.tree import draw_run
from holdfast.cli.render.tree_layout import Screen
from holdfast.service.queries.views import View, format_time

STANDARD = Screen(columns=80, rows=23)
SHOWN_STATES = {"idle": "ready", "queued": "ready"}


def task(name: str, status: str = "queued", **more: Any) -> View:
    return {
        "id": f"t_{name}",
        "kind": "work",
        "step": name.rpartition(".")[2],
        "title": name.rpartition(".")[2],
        "status": status,
        "state": SHOWN_STATES.get(status, status),
        "holds": [],
        "blocked_by": [],
        "skipped": False,
        "attempt": 1,
        "failures": 0,
        "lost": 0,
        "round": 0,
        "position": 0,
    } | more


def story(number: int, title: str, *statuses: str, **more: Any) -> list[View]:
    """An item of the loop `build`, with its steps."""
    name = f"build.{number}"
    whole = "done" if {*statuses} == {"done"} else "queued"
    steps = [
        task(f"{name}.{step}", status, parent_id=f"t_{name}", position=place, **more)
        for place, (step, status) in enumerate(zip(("implement", "verify"), statuses, strict=True))
    ]
    item = {"kind": "group", "item": number - 1, "step": "build", "payload": {"title": title}}
    group = task(name, whole, parent_id="t_build", position=number, title=name, **item)
    return [group, *steps]


def make_run(stories: list[list[View]], *, waiting: tuple[str, ...] = ()) -> View:
    loop = task("build", kind="group", position=1)
    later = [task(each, state="blocked", position=2 + n) for n, each in enumerate(waiting)]
    return {
        "id": "r_1",
        "workflow": "feature",
        "status": "running",
        "holds": [],
        "created_at": format_time(now() - 840 * SECOND),
        "tasks": [
            task("plan", "done", output={"stories": ["a", "b"]}),
            loop,
            *chain(*stories),
            *later,
        ],
    }


def say(run: View, text: str, ago: float = 4.2) -> dict[str, tuple[str, float]]:
    return {
        each["id"]: (f"{text} {each['id'][2:]}", time.time() - ago)
        for each in run["tasks"]
        if each["status"] == "running"
    }


def test_a_run_that_fits_is_drawn_whole() -> None:
    feedback = {"feedback": "add a check"}
    stories = [
        story(1, "Login form", "done", "done"),
        story(2, "SAML callback", "running", "queued", **feedback),
        story(3, "Logout", "queued", "queued"),
    ]
    run = make_run(stories, waiting=("test", "merge"))
    verify = next(each for each in run["tasks"] if each["id"] == "t_build.2.verify")
    verify |= {"round": 1, "state": "blocked", "blocked_by": ["t_build.2.implement"]}
    verify.pop("feedback")
    head, *lines = draw_run(run, say(run, "editing"), STANDARD)
    assert head == "feature r_1 · running · 14m 00s"
    assert lines == [
        "✓ plan            2 stories",
        "▾ build  1/3",
        "  ✓ 1 Login form",
        "  ▾ 2 SAML callback  0/2",
        '    ● implement   round 2: "add a check"',
        f"      └ editing build.2.implement{' ' * 39}4.2s ago",
        "    ○ verify      after implement",
        "  ○ 3 Logout      0/2",
        "○ test   ○ merge",
    ]


def test_eight_running_stories_are_all_seen_on_a_standard_terminal() -> None:
    stories = [story(n, f"Story {n}", "done", "done") for n in range(1, 6)]
    stories += [story(n, f"Story {n}", "running", "queued") for n in range(6, 14)]
    stories += [story(n, f"Story {n}", "queued", "queued") for n in range(14, 21)]
    run = make_run(stories, waiting=("test", "merge"))
    lines = draw_run(run, say(run, "editing"), STANDARD)
    assert len(lines) <= 23
    for number in range(6, 14):
        (place,) = [n for n, line in enumerate(lines) if f" {number} Story {number} → " in line]
        assert lines[place].startswith(f"  ● {number} Story {number} → implement")
        assert lines[place + 1].startswith(f"    └ editing build.{number}.implement  ")
        assert lines[place + 1].endswith("  4.2s ago")
    assert lines[-2:] == ["  ✓ 5 done   ○ 7 waiting", "○ test   ○ merge"]


def test_a_small_screen_shows_first_what_asks_a_person_failed_or_runs() -> None:
    stories = [story(n, f"Story {n}", "running", "queued") for n in range(1, 41)]
    stories += [story(41, "Broken", "failed", "queued")]
    stories += [story(42, "Unclear", "queued", "queued")]
    stories[-1][1] |= {"state": "held", "holds": ["question"], "question": "Which colour?"}
    run = make_run(stories, waiting=tuple(f"step-{n}" for n in range(30)))
    lines = draw_run(run, say(run, "editing"), Screen(columns=60, rows=12))
    assert len(lines) <= 12
    shown = "\n".join(lines)
    assert "◆ 42 Unclear → implement  (you)  Which colour?" in shown
    assert "✗ 41 Broken → implement" in shown
    assert "● 1 Story 1 → implement   editing build.1.impl" in shown
    assert lines[-2] == "  ● 35 running"
    assert lines[-1].endswith("   … 25 more")


def test_a_long_title_leaves_room_for_its_step_and_its_state() -> None:
    title = "The sign-on of people of other companies"
    stories = [story(n, title, "running", "queued") for n in range(1, 9)]
    run = make_run(stories)
    lines = draw_run(run, say(run, "editing"), Screen(columns=40, rows=14))
    assert max(map(width_of, lines)) <= 40
    assert all("… → implement  editing" in line for line in lines[3:11]), lines


STATUSES = st.sampled_from(["queued", "running", "done", "failed", "cancelled"])
STORIES = st.lists(st.tuples(st.text(max_size=60), STATUSES, STATUSES), max_size=30)


@settings(max_examples=60)
@given(STORIES, st.integers(10, 120), st.integers(4, 40), st.text(max_size=200))
def test_no_tree_is_larger_than_its_screen(
    stories: list[tuple[str, str, str]], columns: int, rows: int, said: str
) -> None:
    made = [story(n, *each) for n, each in enumerate(stories, 1)]
    run = make_run(made, waiting=("test", "merge"))
    lines = draw_run(run, say(run, said), Screen(columns=columns, rows=rows))
    assert len(lines) <= rows
    assert max(map(width_of, lines)) <= columns
    assert not any("\n" in line for line in lines)
