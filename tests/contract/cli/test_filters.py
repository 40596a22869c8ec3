"""Labels and filters as they are typed."""

from __future__ import annotations

from pathlib import Path

from tests.contract.cli.command_line import Typed

LETTERS = """
name: letters
labels: {customer: "{{ input.customer }}"}
input: {customer: int}
steps: [{id: write, agent: writer}]
agents: {writer: {external: true}}
"""


def test_runs_and_tasks_are_labelled_and_found_again(typed: Typed, tmp_path: Path) -> None:
    path = tmp_path / "letters.yaml"
    path.write_text(LETTERS)
    seven = typed.json("run", str(path), "-i", "customer=7", "--label", "env=prod")
    eight = typed.json("run", str(path), "-i", "customer=8")
    task = typed.json("task", "add", "Tidy", "-l", "customer=7")
    assert seven["labels"] == {"customer": "7", "env": "prod"}

    def found(*asked: str) -> list[str]:
        return [each["id"] for each in typed.json(*asked)["items"]]

    assert found("runs", "--label", "customer=7") == [seven["id"]]
    assert found("runs", "--label", "customer=7", "--label", "env=test") == []
    assert found("runs", "--agent", "writer", "--since", "1h", "--name", "LETT") == [
        eight["id"],
        seven["id"],
    ]
    assert task["id"] in found("tasks", "--label", "customer=7")
    assert len(found("tasks", "--label", "customer=7")) == 2
    counted = typed.ok("runs", "--counts", "--label", "customer=7").splitlines()
    assert [line.split() for line in counted[1:3]] == [["running", "1"], ["completed", "0"]]
    assert "No such runs" in typed("runs", "--error", "nothing").err


def test_a_label_without_a_value_is_refused(typed: Typed) -> None:
    refused = typed("runs", "--label", "customer")
    assert refused.code == 2
    assert "'customer' is not NAME=VALUE, as customer=7" in refused.err


def test_all_runs_that_fit_are_changed_by_one_command(typed: Typed, tmp_path: Path) -> None:
    path = tmp_path / "letters.yaml"
    path.write_text(LETTERS)
    for customer in (7, 7, 8):
        typed.ok("run", str(path), "-i", f"customer={customer}")
    asked = ("cancel", "--all", "--label", "customer=7")
    preview = typed(*asked, "--dry-run")
    assert preview.out.startswith("would cancel 2 runs\n")
    assert "Nothing was changed. Do it: holdfast cancel --all --label customer=7" in preview.err
    assert typed.json(*asked, "--dry-run")["matched"] == 2
    assert typed.ok(*asked) == "cancel: 2 runs\n"
    assert typed.ok(*asked) == "cancel: 0 runs\n"
    counted = typed.json("runs", "--counts")["statuses"]
    assert (counted["cancelled"], counted["running"]) == (2, 1)
    assert typed.ok("pause", "--all") == "pause: 1 run\n"
    assert typed.json("resume", "--all", "--workflow", "letters")["changed"] == 1
    again = typed.ok("retry", "--all", "--status", "cancelled", "--since", "1h")
    assert again == "retry: 2 runs\n"


def test_filters_without_all_and_ids_beside_it_are_refused(typed: Typed) -> None:
    said = typed.refused(2, "cancel", "--label", "customer=7")
    assert "add --all" in said
    assert "takes no ids" in typed.refused(2, "cancel", "--all", "@last")
    assert "name runs or tasks" in typed.refused(2, "retry")
    assert "--from and --again are of one run" in typed.refused(
        2, "retry", "--all", "--from", "write"
    )


def test_activity_costs_and_versions_are_printed(typed: Typed, tmp_path: Path) -> None:
    path = tmp_path / "letters.yaml"
    path.write_text(LETTERS)
    typed.ok("run", str(path), "-i", "customer=7")
    assert len(typed.ok("activity", "--hours", "3").splitlines()) == 4
    started = [each["runs"]["started"] for each in typed.json("activity", "--hours", "2")["items"]]
    assert sum(started) == 1
    assert typed.ok("costs", "--days", "2").splitlines()[-1] == "$0.00 in all"
    (version,) = typed.json("workflow", "versions", "letters")["items"]
    assert version["version"] in typed.ok("workflow", "versions", "letters")
    assert "such workflow" in typed.refused(2, "workflow", "versions", "letter")


def test_the_next_page_is_told_with_the_filters_that_were_typed(
    typed: Typed, tmp_path: Path
) -> None:
    path = tmp_path / "letters.yaml"
    path.write_text(LETTERS)
    for _ in range(3):
        typed.ok("run", str(path), "-i", "customer=7")
    runs = [each["id"] for each in typed.json("runs")["items"]]
    said = typed("runs", "--label", "customer=7", "-n", "1", "--after", runs[0]).err
    assert f"More: holdfast runs --label customer=7 -n 1 --after {runs[1]}\n" in said
