"""The files of `deploy` start what there is, with options that there are."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from holdfast.cli.main import main

DEPLOY = Path(__file__).parents[2] / "deploy"
ROOT = DEPLOY.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
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
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    wanted = {
        "pyproject.toml",
        PROJECT["project"]["readme"],
        *PROJECT["project"]["license-files"],
        *(each.partition("/")[0] for each in wheel["packages"]),
        *wheel["force-include"],
        *(f"requirements/{each}.txt" for each in ("all", "build")),
    }
    assert "*" in lines
    assert kept == wanted
    assert [each for each in kept if not (ROOT / each).exists()] == []


def pins(lock: str) -> dict[str, str]:
    """The version of each package that a lock names."""
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    return dict(re.findall(r"^([a-z0-9-]+)(?:\[.*\])?==([^\s;]+)", text, re.MULTILINE))


EXTRAS = PROJECT["project"]["optional-dependencies"]
WANTED = {
    "runtime": PROJECT["project"]["dependencies"],
    "all": [*PROJECT["project"]["dependencies"], *(each for of in EXTRAS.values() for each in of)],
    "build": [*PROJECT["build-system"]["requires"], *PROJECT["dependency-groups"]["build"]],
}


@pytest.mark.parametrize("lock", WANTED)
def test_a_lock_has_what_the_project_wants_and_what_that_wants(lock: str) -> None:
    found = pins(lock)
    todo = [Requirement(each) for each in WANTED[lock]]
    for wanted in todo:
        name = canonicalize_name(wanted.name)
        assert wanted.specifier.contains(found[name]), f"{wanted}: make lock"
        more = [Requirement(each) for each in requires(name) or ()]
        extras = wanted.extras or {""}
        todo += [
            each
            for each in more
            if each.marker is None or any(each.marker.evaluate({"extra": one}) for one in extras)
        ]


@pytest.mark.parametrize("lock", WANTED)
def test_a_lock_pins_what_the_tests_ran_with(lock: str) -> None:
    ran_with = pins("dev")
    assert {name: ran_with.get(name) for name in pins(lock)} == pins(lock)


def test_the_image_takes_each_package_from_a_lock_with_hashes() -> None:
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", "")
    taken = re.findall(r"pip (?:install|wheel) ([^&\n]*)", text)
    locked = [each for each in taken if "--require-hashes" in each]
    assert [each.split("/")[-1].strip() for each in locked] == ["build.txt", "all.txt"]
    alone = [each for each in taken if each not in locked]
    assert ["--no-deps" in each for each in alone] == [True, True]
    assert ["--no-build-isolation" in alone[0], "--no-index" in alone[1]] == [True, True]
