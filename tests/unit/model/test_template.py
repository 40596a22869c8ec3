"""Variables in texts: values are put in as they are, and never looked at for variables again."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.model.reference import Unresolved
from holdfast.model.rendering import finish_work, render_key, render_work
from holdfast.model.template import SKIPPED, parse
from holdfast.model.work import HttpCall, Work

SCOPE: dict[str, Any] = {
    "input": {"n": 3, "list": [1, "b"], "text": "hi", "none": None, "yes": True},
    "steps": {"plan": {"stories": [{"title": "one"}]}, "left": SKIPPED},
    "run": {"id": "r_1", "workflow": "w", "key": None, "branch": None},
    "feedback": "",
    "attempt": 2,
    "subject": SKIPPED,
}


def value(text: str) -> object:
    rendered: object = parse("prompt", text).value(SCOPE)
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
    "text", ["{{ input.missing }}", "{{ steps.plan.stories.7 }}", "{{ input.n.x }}", "{{ item }}"]
)
def test_a_variable_that_leads_to_nothing_is_unresolved(text: str) -> None:
    with pytest.raises(Unresolved):
        value(text)


@pytest.mark.parametrize(
    "text",
    ["{{", "{{ }}", "{{ input.n", "{{ a b }}", "{{ input..n }}", "{{ other.n }}", "{{ input|x }}"],
)
def test_what_is_no_variable_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse("prompt", text)


HOSTILE = st.text(alphabet=st.sampled_from("{} ;$`'\"\n\x1b\\abcinputsecret.envX"), max_size=60) | (
    st.sampled_from(
        ["{{ secret.X }}", "{{ env.HOME }}", "{{ prompt }}", "{{ input.text }}", "$(rm -rf /)"]
    )
)


@given(HOSTILE)
def test_a_hostile_value_changes_nothing_but_its_own_text(hostile: str) -> None:
    work = Work(
        prompt="Do {{ input.x }} in {{ env.HOME }}",
        command=("run", "{{ input.x }}", "--prompt={{ prompt }}{{ input.x }}"),
        env={"X": "{{ input.x }}", "TOKEN": "{{ secret.TOKEN }}"},
        http=HttpCall(
            url="http://h/{{ input.x }}",
            headers={"A": "{{ input.x }}"},
            body={"x": ["{{ input.x }}"]},
        ),
        input={"x": "{{ input.x }}"},
    )
    rendered = render_work(work, {"input": {"x": hostile}})
    done = finish_work(rendered, lambda root, name: f"<{root}.{name}>")
    assert done == Work(
        prompt=f"Do {hostile} in <env.HOME>",
        command=("run", hostile, f"--prompt=<prompt.>{hostile}"),
        env={"X": hostile, "TOKEN": "<secret.TOKEN>"},
        http=HttpCall(
            url=f"http://h/{quote(hostile, safe='')}", headers={"A": hostile}, body={"x": [hostile]}
        ),
        input={"x": hostile},
    )


def test_what_the_worker_fills_in_is_told_by_its_place() -> None:
    work = Work(command=("x", "a {{ env.HOME }} b"), env={"T": "{{ secret.T }}", "U": "u"})
    rendered = render_work(work, SCOPE)
    assert rendered.command == ("x", "a {{ env.HOME }} b")
    assert rendered.later == {"command.1": ("a ", "env.HOME", " b"), "env.T": ("", "secret.T", "")}


def test_inside_of_json_a_variable_keeps_its_type() -> None:
    body = {"n": "{{ input.n }}", "l": ["{{ input.list }}", "x {{ input.n }}"], "b": False}
    rendered = render_work(Work(http=HttpCall(url="u", body=body)), SCOPE)
    assert rendered.http is not None
    assert rendered.http.body == {"n": 3, "l": [[1, "b"], "x 3"], "b": False}


def test_a_value_inside_of_a_url_is_one_part_of_it_and_one_before_it_its_beginning() -> None:
    scope = {"input": {"base": "http://h/v1", "id": "../x?y=#"}}
    rendered = render_work(Work(http=HttpCall(url="{{ input.base }}/{{ input.id }}")), scope)
    assert rendered.http is not None
    assert rendered.http.url == "http://h/v1/..%2Fx%3Fy%3D%23"


def test_a_key_that_no_store_could_keep_goes_by_its_digest() -> None:
    assert render_key("repo:{{ input.text }}", SCOPE) == "repo:hi"
    long = render_key("repo:{{ input.x }}", {"input": {"x": "y" * 500}})
    control = render_key("repo:{{ input.x }}", {"input": {"x": "\n"}})
    assert len({long, control}) == 2
    assert all(len(each) == 32 for each in (long, control))
