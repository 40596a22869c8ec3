"""What a workflow file becomes: steps, their order, their defaults, and what agents add to them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from holdfast.definition.text_file import MAX_BYTES
from holdfast.definition.workflow_file import read_workflow_file
from holdfast.errors import InvalidInput, InvalidWorkflowFile
from holdfast.model.budget import Budget
from holdfast.model.workflow.declarations import HttpCall
from holdfast.model.workflow.graph import read_workflow
from holdfast.model.workflow.step import OnFailure
from tests.unit.definition.workflow_files import FEATURE, read, steps_of


def test_the_whole_example_is_read() -> None:
    workflow = read(FEATURE)
    steps = steps_of(workflow)
    assert list(steps) == ["plan", "build", "implement", "verify", "test", "approve"]
    assert steps["implement"].work is not None
    assert steps["implement"].work.command == ("develop", "{{ prompt }}")
    assert steps["verify"].verifies == "implement"
    assert steps["verify"].on_failure == OnFailure(action="ask")
    assert steps["test"].on_failure == OnFailure(action="goto", step="build", max_rounds=2)
    assert steps["approve"].approval == "Merge {{ run.branch }}?"
    assert workflow.declared is not None
    assert workflow.declared.budget == Budget(usd=5, usd_per_attempt=1, attempts=40)
    assert workflow.declared.input is not None
    assert workflow.declared.input["required"] == ["task"]


def test_json_says_the_same_as_yaml() -> None:
    same = json.dumps(yaml.safe_load(FEATURE), indent="\t")
    assert read(same, "flow.json") == read(FEATURE)


def test_a_definition_is_read_back_as_it_was_written() -> None:
    workflow = read(FEATURE)
    again = read_workflow(workflow.definition)
    assert (again, again.version) == (workflow, workflow.version)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("npm, test", "npm, check"),
        ("{{ item.title }}", "Do {{ item.title }}"),
        ("task: string", "task: string?"),
        ("[plan, --json]", "[plan]"),
        ("acceptance: string}", "acceptance: any}"),
        ("usd: 5", "usd: 6"),
    ],
)
def test_the_version_follows_what_is_done_and_what_is_declared(before: str, after: str) -> None:
    assert read(FEATURE.replace(before, after)).version != read(FEATURE).version


def test_the_version_does_not_follow_how_it_is_written() -> None:
    spread = FEATURE.replace("[npm, test]", "\n    [ npm,\n      'test' ]")
    assert read(f"# a comment\n{spread}").version == read(FEATURE).version


def test_a_step_needs_the_one_before_it_unless_it_says_otherwise() -> None:
    steps = steps_of(
        read("""
name: order
steps:
  - {id: a, run: [x]}
  - {id: b, run: [x]}
  - {id: c, run: [x], needs: []}
  - {id: d, run: [x], needs: [a, c]}
  - {id: e, run: [x], needs: b}
""")
    )
    assert [steps[name].needs for name in "abcde"] == [(), ("a",), (), ("a", "c"), ("b",)]


def test_an_agent_speaks_for_its_steps_until_they_do_themselves() -> None:
    steps = steps_of(
        read("""
name: agents
env: [HOME]
agents:
  dev: {command: [dev], timeout: 5m, idle_timeout: 1m, max_attempts: 7, tags: [gpu], cwd: /agent,
        env: {A: agent, B: "{{ env.HOME }}", TOKEN: "{{ secret.TOKEN }}"}}
steps:
  - {id: one, agent: dev, prompt: do}
  - {id: two, agent: dev, timeout: 1h, max_attempts: 1, tags: [big], env: {A: step},
     cwd: "{{ env.HOME }}/{{ steps.one.folder }}"}
""")
    )
    one, two = steps["one"], steps["two"]
    assert (one.timeout, one.retry.max_attempts, one.tags, one.agent) == (300, 7, ("gpu",), "dev")
    assert (two.timeout, two.retry.max_attempts, two.tags) == (3600, 1, ("gpu", "big"))
    assert one.work is not None
    assert two.work is not None
    assert (one.work.idle_timeout, one.work.env["A"], two.work.env["A"]) == (60, "agent", "step")
    assert (one.work.cwd, two.work.cwd) == ("/agent", "{{ env.HOME }}/{{ steps.one.folder }}")


def test_settings_that_a_step_leaves_out_have_the_defaults_of_the_design() -> None:
    steps = steps_of(read("{name: d, steps: [{id: a, run: [x]}, {id: b, http: 'http://h/'}]}"))
    a, b = steps["a"], steps["b"]
    assert a.work is not None
    assert b.work is not None
    assert (a.timeout, a.work.idle_timeout, a.agent) == (1800, 600, "default")
    assert (a.retry.max_attempts, a.retry.max_lost, a.retry.backoff) == (3, 5, 5)
    assert (b.timeout, b.work.idle_timeout, b.work.http) == (1800, None, HttpCall(url="http://h/"))


def test_requests_conditions_and_durations_are_read() -> None:
    steps = steps_of(
        read("""
name: kinds
steps:
  - id: post
    http:
      {url: "http://h/{{ run.id }}", method: put, headers: {A: b}, body: {n: 1, t: "{{ input }}"}}
    timeout: 1h30m
    backoff: 250ms
    concurrency: {key: "host:{{ input.host }}", limit: 2}
  - {id: then, run: [x], when: steps.post.ok}
""")
    )
    post = steps["post"]
    assert post.work is not None
    assert post.work.http == HttpCall(
        url="http://h/{{ run.id }}",
        method="PUT",
        headers={"A": "b"},
        body={"n": 1, "t": "{{ input }}"},
    )
    assert (post.timeout, post.retry.backoff) == (5400, 0.25)
    assert str(steps["then"].when) == "steps.post.ok"


def test_labels_are_read_and_change_the_version() -> None:
    text = "{name: w, labels: {customer: '{{ input.c }}', tier: 2}, steps: [{id: a, run: [x]}]}"
    flow = read(text)
    assert flow.declared is not None
    assert flow.declared.labels == {"customer": "{{ input.c }}", "tier": "2"}
    assert read_workflow(flow.definition) == flow
    assert flow.version != read(text.replace("tier: 2", "tier: 3")).version


def test_words_that_older_yaml_takes_for_something_else_stay_text() -> None:
    (step,) = read("{name: w, steps: [{id: on, run: [no, 12:30, 0o7, 1.5, 010, true]}]}").steps
    assert step.work is not None
    assert step.work.command == ("no", "12:30", "0o7", "1.5", "010", "true")


def test_types_are_read_in_short_and_as_json_schema() -> None:
    text = """
name: w
input:
  a: "[string]"
  b: {type: [string, null], maxLength: 3}
  c: {type: object, properties: {type: string, n: int?}, required: [type]}
  d: {x: bool?, y: [path]}
  e: any?
steps: [{id: s, run: [x]}]
"""
    declared = read(text.replace('"[string]"', "[string]")).declared
    assert declared is not None
    assert declared.input == {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"type": "string"}},
            "b": {"type": ["string", "null"], "maxLength": 3},
            "c": {
                "type": "object",
                "properties": {"type": {"type": "string"}, "n": {"type": ["integer", "null"]}},
                "required": ["type"],
            },
            "d": {
                "type": "object",
                "properties": {
                    "x": {"type": ["boolean", "null"]},
                    "y": {"type": "array", "items": {"type": "string", "format": "path"}},
                },
                "required": ["y"],
            },
            "e": {},
        },
        "required": ["a", "c", "d"],
        "additionalProperties": False,
    }


def test_an_alias_stands_for_what_it_names() -> None:
    first, second = read("{name: w, steps: [{id: a, run: &r [x, y]}, {id: b, run: *r}]}").steps
    assert first.work is not None
    assert second.work is not None
    assert first.work.command == second.work.command == ("x", "y")


def test_a_file_that_cannot_be_read_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        read_workflow_file(tmp_path / "none.yaml")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_workflow_file(tmp_path)


def test_a_byte_that_is_not_text_and_a_file_too_long_have_a_place(tmp_path: Path) -> None:
    place = tmp_path / "w.yaml"
    place.write_bytes(b"name: w\nsteps: \xff")
    with pytest.raises(InvalidWorkflowFile, match=r"w.yaml:2:8: this byte is not UTF-8"):
        read_workflow_file(place)
    place.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(InvalidWorkflowFile, match="at most 1048576 bytes"):
        read_workflow_file(place)
