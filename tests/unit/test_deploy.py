"""The files of `deploy` start what there is, with options that there are."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from holdfast.cli.main import main

DEPLOY = Path(__file__).parents[2] / "deploy"
ROOT = DEPLOY.parent
UNITS = sorted(DEPLOY.glob("*.service"))


def commands() -> list[list[str]]:
    started = [
        re.findall(r"^ExecStart=\S+ (.*)$", unit.read_text(), re.MULTILINE) for unit in UNITS
    ]
    inside = re.findall(r"^CMD (\[.*\])$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    return [line.split() for lines in started for line in lines] + [json.loads(inside[0])]


@pytest.mark.parametrize("command", commands(), ids=lambda each: " ".join(each[:3]))
def test_a_command_and_its_options_are_there(
    command: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([command[0], "--help"]) == 0
    told = capfd.readouterr().out
    assert [each for each in command if each.startswith("--") and f"{each} " not in told] == []


@pytest.mark.parametrize("unit", UNITS, ids=lambda each: each.name)
def test_a_unit_ends_by_the_signal_that_drains_and_comes_back_by_itself(unit: Path) -> None:
    lines = dict(line.split("=", 1) for line in unit.read_text().splitlines() if "=" in line[1:])
    assert lines.get("KillSignal", "SIGTERM") == "SIGTERM"
    assert lines["Restart"] == "on-failure"
    assert lines["User"] == "holdfast"


def test_the_image_is_built_from_the_package_alone() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    kept = {line.removeprefix("!") for line in lines if line.startswith("!")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    wanted = {
        "pyproject.toml",
        project["project"]["readme"],
        *project["project"]["license-files"],
        *(each.partition("/")[0] for each in wheel["packages"]),
        *wheel["force-include"],
    }
    assert "*" in lines
    assert kept == wanted
    assert [each for each in kept if not (ROOT / each).exists()] == []
