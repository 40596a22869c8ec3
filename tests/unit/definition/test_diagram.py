"""The graph of a workflow in a terminal: one line for each step, and what is out of order told."""

from __future__ import annotations

from holdfast.definition.diagram import draw_workflow
from tests.contract.task_states import FORK
from tests.unit.definition.workflow_files import FEATURE, read


def test_a_file_is_drawn_with_loops_verifiers_and_ways_back() -> None:
    assert draw_workflow(read(FEATURE)) == [
        "feature  at most 1 of repo:{{ input.repo }}",
        "├─ plan       planner",
        "├─ build      for each of steps.plan.stories, one at a time",
        "│  ├─ implement  developer",
        "│  └─ verify     reviewer · verifies implement, 3 rounds · on failure ask",
        "├─ test       npm test · on failure back to build, 2 rounds",
        "└─ approve    approval: Merge {{ run.branch }}?",
    ]


def test_joins_and_what_starts_at_once_are_told() -> None:
    assert draw_workflow(FORK) == [
        "fork",
        "├─ plan   default",
        "├─ left   default",
        "├─ right  default · after plan",
        "└─ join   default · after left, right",
    ]
    calls = "{id: b, http: 'http://h', needs: [], when: input.go}"
    text = f"{{name: w, steps: [{{id: a, run: [x]}}, {calls}]}}"
    assert draw_workflow(read(text)) == [
        "w",
        "├─ a  x",
        "└─ b  POST http://h · at once · only when input.go",
    ]


def test_a_long_text_of_several_lines_stays_on_its_line() -> None:
    (_, line) = draw_workflow(
        read(f'{{name: w, steps: [{{id: a, approval: "a\\n\\e[2J{"b" * 90}"}}]}}')
    )
    assert line == f"└─ a  approval: a  [2J{'b' * 53}…"
