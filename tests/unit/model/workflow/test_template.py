"""Variables in texts: values are put in as they are, and never looked at for variables again."""

from __future__ import annotations

import tracemalloc
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.model.workflow.declarations import HttpCall, StepWork
from holdfast.model.workflow.reference import Unresolved
from holdfast.model.workflow.step_template import finish_work, render_key, render_work
from holdfast.model.workflow.template import MAX_RENDERED, SKIPPED, parse_template

SCOPE: dict[str, Any] = {
    "input": {"n": 3, "list": [1, "b"], "text": "hi", "none": None, "yes": True},
    "steps": {"plan": {"stories": [{"title": "one"}]}, "left": SKIPPED},
    "run": {"id": "r_1", "workflow": "w", "key": None, "branch": None},
    "feedback": "",
    "attempt": 2,
    "subject": SKIPPED,
}


def value(text: str) -> object:
    rendered: object = parse_template("prompt", text).value(SCOPE)
    return rendered


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("{{ input.n }}", 3),
        ("{{input.list}}", [1, "b"]),
        ("{{ input.none }}", None),
        (" {{ input.n }}", " 3"),
        ("{{ input.n }}{{ input.text }}", "3hi"),
        ("a {{ input.list }} b", 'a [1,"b"] b'),
        ("{{ input.yes }}!", "true!"),
        ("{{ steps.plan.stories.0.title }}", "one"),
        ("{{ steps.left.any.thing }}", None),
        ("x{{ subject.commit }}", "xnull"),
        ("[{{ feedback }}]", "[]"),
        ("try {{ attempt }}", "try 2"),
        ("{{ '{{' }} input.n }}", "{{ input.n }}"),
        ('{{ "{{ input.n }}" }}', "{{ input.n }}"),
        ('{"a": {"b": 1}}', '{"a": {"b": 1}}'),
        ("", ""),
    ],
)
def test_a_text_is_rendered(text: str, rendered: object) -> None:
    assert value(text) == rendered


@pytest.mark.parametrize(
    "text",
    [
        "{{ input.missing }}",
        "{{ steps.plan.stories.7 }}",
        "{{ steps.plan.stories." + "9" * 5_000 + " }}",
        "{{ input.n.x }}",
        "{{ item }}",
    ],
)
def test_a_variable_that_leads_to_nothing_is_unresolved(text: str) -> None:
    with pytest.raises(Unresolved):
        value(text)


@pytest.mark.parametrize(
    "text",
    ["{{", "{{ }}", "{{ input.n", "{{ a b }}", "{{ input..n }}", "{{ other.n }}", "{{ input|x }}"],
)
def test_an_invalid_variable_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_template("prompt", text)


HOSTILE = st.text(alphabet=st.sampled_from("{} ;$`'\"\n\x1b\\abcinputsecret.envX"), max_size=60) | (
    st.sampled_from(
        ["{{ secret.X }}", "{{ env.HOME }}", "{{ prompt }}", "{{ input.text }}", "$(rm -rf /)"]
    )
)


@given(HOSTILE)
def test_a_hostile_value_changes_nothing_but_its_own_text(hostile: str) -> None:
    work = StepWork(
        prompt="Do {{ input.x }} in {{ env.HOME }}",
        command=("run", "{{ input.x }}", "--prompt={{ prompt }}{{ input.x }}"),
        env={"X": "{{ input.x }}", "TOKEN": "{{ secret.TOKEN }}"},
        http=HttpCall(
            url="http://h/v{{ input.x }}",
            headers={"A": "{{ input.x }}"},
            body={"x": ["{{ input.x }}"]},
        ),
        input={"x": "{{ input.x }}"},
    )
    rendered = render_work(work, {"input": {"x": hostile}})
    done = finish_work(rendered, lambda root, name: f"<{root}.{name}>")
    assert done == StepWork(
        prompt=f"Do {hostile} in <env.HOME>",
        command=("run", hostile, f"--prompt=<prompt.>{hostile}"),
        env={"X": hostile, "TOKEN": "<secret.TOKEN>"},
        http=HttpCall(
            url=f"http://h/v{quote(hostile, safe='')}",
            headers={"A": hostile},
            body={"x": [hostile]},
        ),
        input={"x": hostile},
    )


def test_a_variable_that_the_worker_fills_in_is_told_by_its_place() -> None:
    work = StepWork(command=("x", "a {{ env.HOME }} b"), env={"T": "{{ secret.T }}", "U": "u"})
    rendered = render_work(work, SCOPE)
    assert rendered.command == ("x", "a {{ env.HOME }} b")
    assert rendered.later == {"command.1": ("a ", "env.HOME", " b"), "env.T": ("", "secret.T", "")}


def test_inside_of_json_a_variable_keeps_its_type() -> None:
    body = {"n": "{{ input.n }}", "l": ["{{ input.list }}", "x {{ input.n }}"], "b": False}
    rendered = render_work(StepWork(http=HttpCall(url="u", body=body)), SCOPE)
    assert rendered.http is not None
    assert rendered.http.body == {"n": 3, "l": [[1, "b"], "x 3"], "b": False}


def test_a_value_inside_of_a_url_is_one_part_of_it_and_one_before_it_its_beginning() -> None:
    scope = {"input": {"base": "http://h/v1", "id": "../x?y=#"}}
    rendered = render_work(StepWork(http=HttpCall(url="{{ input.base }}/{{ input.id }}")), scope)
    assert rendered.http is not None
    assert rendered.http.url == "http://h/v1/..%2Fx%3Fy%3D%23"


@pytest.mark.parametrize(
    ("url", "value"),
    [
        ("http://h/users/{{ input.x }}/keep", ".."),
        ("http://h/users/{{ input.x }}", "."),
        ("http://h/users/{{ input.x }}?a=b", ".."),
        ("http://h/users/.{{ input.x }}/keep", "."),
        ("http://h/users/.{{ input.x }}/keep", ""),
        ("http://h/users/{{ input.x }}{{ input.x }}/keep", "."),
        ("http://h/users/%2e{{ input.x }}/keep", "."),
        ("{{ env.BASE }}/{{ input.x }}/keep", ".."),
    ],
)
def test_a_value_that_would_lead_out_of_its_place_in_a_url_is_refused(url: str, value: str) -> None:
    with pytest.raises(Unresolved, match="leads elsewhere"):
        render_work(StepWork(http=HttpCall(url=url)), {"input": {"x": value}})


@pytest.mark.parametrize(
    ("url", "value", "rendered"),
    [
        ("http://h/a/../b/{{ input.x }}", "c", "http://h/a/../b/c"),
        ("http://h/{{ input.x }}", "...", "http://h/..."),
        ("http://h/v{{ input.x }}", "..", "http://h/v.."),
        ("http://h/a?up={{ input.x }}", "..", "http://h/a?up=.."),
        ("http://h/a?path=/{{ input.x }}/b", "..", "http://h/a?path=/../b"),
        ("http://h/a#{{ input.x }}", "..", "http://h/a#.."),
        ("http://h/{{ input.x }}", "%2e%2e", "http://h/%252e%252e"),
        ("{{ input.x }}/b", "http://h/a/..", "http://h/a/../b"),
    ],
)
def test_dots_that_lead_nowhere_or_were_written_by_the_workflow_stay(
    url: str, value: str, rendered: str
) -> None:
    done = render_work(StepWork(http=HttpCall(url=url)), {"input": {"x": value}})
    assert done.http is not None
    assert done.http.url == rendered


LONG = "x" * (MAX_RENDERED // 3)


@pytest.mark.parametrize(
    "work",
    [
        StepWork(prompt="{{ input.x }}" * 4),
        StepWork(command=("echo", *["{{ input.x }}!"] * 4)),
        StepWork(env={"A": "{{ input.x }}{{ input.x }}", "B": "{{ input.x }}{{ input.x }}"}),
        StepWork(prompt="{{ env.A }}" + "{{ input.x }}" * 4),
        StepWork(input=["{{ input.x }}"] * 4),
        StepWork(http=HttpCall(url="u", body={"a": ["{{ input }}"] * 4})),
    ],
)
def test_texts_that_are_too_long_together_are_refused(work: StepWork) -> None:
    with pytest.raises(Unresolved, match=f"longer than {MAX_RENDERED} characters"):
        render_work(work, {"input": {"x": LONG}})


def test_no_more_is_made_of_a_text_than_is_let_through() -> None:
    work = StepWork(command=tuple(["{{ input.x }}" * 99] * 5))
    tracemalloc.start()
    try:
        with pytest.raises(Unresolved):
            render_work(work, {"input": {"x": "x" * MAX_RENDERED}})
        assert tracemalloc.get_traced_memory()[1] < 4 * MAX_RENDERED
    finally:
        tracemalloc.stop()


def test_texts_that_are_just_short_enough_are_rendered() -> None:
    work = StepWork(prompt="{{ input.x }}{{ env.A }}{{ input.x }}", env={"A": "{{ input.x }}"})
    rendered = render_work(work, {"input": {"x": LONG}})
    done = finish_work(rendered, lambda _root, _name: "!")
    assert (done.prompt, done.env) == (f"{LONG}!{LONG}", {"A": LONG})


def test_a_key_that_no_store_could_keep_goes_by_its_digest() -> None:
    assert render_key("repo:{{ input.text }}", SCOPE) == "repo:hi"
    long = render_key("repo:{{ input.x }}", {"input": {"x": "y" * 500}})
    control = render_key("repo:{{ input.x }}", {"input": {"x": "\n"}})
    assert len({long, control}) == 2
    assert all(len(each) == 32 for each in (long, control))
