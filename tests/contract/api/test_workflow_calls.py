"""Workflows that call workflows, written in Python and read from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast, InvalidDefinition, InvalidInput, Verdict, needs
from holdfast.model.workflow.graph import Workflow

TOWN = """\
name: town
input: {name: string, size: {type: integer, default: 7}}
steps:
  - {id: look, run: [printf, '{"size": %d}', "{{ input.size }}"]}
"""


def shop(hf: Holdfast) -> tuple[Any, Any]:
    """Orders, each line of which is sent by a workflow of its own."""
    shipping, order = hf.workflow("shipping"), hf.workflow("order")

    @shipping.step
    def pack(article: str, count: int = 1) -> str:
        return f"{count} {article}"

    @shipping.step
    def send(parcel: str = needs(pack)) -> dict[str, str]:
        return {"sent": parcel}

    @order.step
    def lines(articles: list[str]) -> list[str]:
        return sorted(articles)

    each = order.loop("ship_all", over=needs(lines), parallel=2)
    each.run("ship", shipping, input={"article": "{{ item }}", "count": 2})

    @each.step
    def note(shipped: dict[str, str] = needs("ship")) -> str:
        return shipped["sent"]

    order.run("gift", shipping, input={"article": needs(lines, "0")}, needs=[lines])

    @order.step
    def done(sent: list[str] = needs(each), gift: dict[str, str] = needs("gift")) -> list[str]:
        return [*sent, gift["sent"]]

    return order, shipping


def test_a_workflow_in_python_calls_another_for_itself_and_for_each_item(hf: Holdfast) -> None:
    order, shipping = shop(hf)
    assert order.graph.called == (shipping.graph,)
    with hf.worker():
        run = order.start(articles=["pen", "ink"])
        assert run.result(30) == ["2 ink", "2 pen", "1 ink"]


def test_a_workflow_file_is_called_from_python_and_calls_by_name(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    (tmp_path / "town.yaml").write_text(TOWN)
    town = hf.workflow_file(tmp_path / "town.yaml")
    visit, again = hf.workflow("visit"), hf.workflow("again")
    visit.run("look", town, input={"name": "{{ input.town }}"})
    again.run("visit", "visit", input={"town": "Ulm"})
    with hf.worker():
        assert visit.start(town="Ulm").result(30) == {"size": 7}
        assert again.start().result(30) == {"size": 7}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"colour": "red", "article": 1}, "ship: input: 'colour' is not taken"),
        ({}, "ship: input: 'article' is not given"),
        ({"article": "{{ input.what"}, "is no variable"),
        ({"article": needs("nothing")}, "needs 'nothing', which is not a step"),
    ],
)
def test_the_input_of_a_workflow_call_is_checked_before_anything_starts(
    given: dict[str, Any], told: str
) -> None:
    hf = Holdfast("sqlite:///:none:")
    _, shipping = shop(hf)
    wrong = hf.workflow("wrong")

    def ask() -> Workflow:
        wrong.run("ship", shipping, input=given)
        return wrong.graph

    with pytest.raises((InvalidDefinition, InvalidInput), match=told):
        ask()


def test_workflows_in_a_circle_have_to_call_one_of_them_by_name() -> None:
    hf = Holdfast("sqlite:///:none:")
    first, second = hf.workflow("first"), hf.workflow("second")
    first.run("on", second)
    second.run("back", first)
    with pytest.raises(InvalidDefinition, match="calls itself, near or far"):
        _ = first.graph
    no_workflow: Any = 7
    with pytest.raises(InvalidInput, match="is no workflow"):
        first.run("other", no_workflow)


def test_a_workflow_that_is_changed_changes_the_version_of_who_calls_it() -> None:
    hf = Holdfast("sqlite:///:none:")
    order, shipping = shop(hf)
    before = order.graph.version

    shipping.approval("last", "Send it?")
    assert order.graph.version != before
    assert order.graph.called == (shipping.graph,)


def test_a_verifier_in_python_judges_what_a_workflow_gave(hf: Holdfast) -> None:
    _, shipping = shop(hf)
    checked = hf.workflow("checked")
    checked.run("ship", shipping, input={"article": "pen{{ feedback }}"})

    @checked.step(verifies="ship")
    def judge(subject: dict[str, str]) -> Verdict:
        good = subject["sent"] == "1 pen!"
        return Verdict.accept() if good else Verdict.reject("!")

    with hf.worker():
        run = checked.start()
        run.result(30)
    assert run.task("ship").result(1) == {"sent": "1 pen!"}
