"""Every command: its help, its example, its module, and what it takes without a conversion."""

from __future__ import annotations

import importlib

import pytest
import typer

from holdfast.cli.app import command_registry
from holdfast.cli.main import main
from tools.commands import Described, every_command

COMMANDS = every_command()
WORDS = (
    "init demo run runs show tasks events logs activity costs artifacts diff cancel retry approve "
    "reject answer why pause resume signal worker workers guard serve up token mcp doctor clean "
    "bus continue open trust import"
)
GROUPED = {
    "agent": "show",
    "task": "add enqueue run-now reset edit block unblock delete",
    "plan": "start add reorder finalize",
    "workers": "drain evict",
    "work": "claim renew complete fail release log",
    "workflow": "list show versions validate add",
    "schedule": "add list pause resume remove preview",
    "token": "create list revoke",
    "db": "upgrade backup restore move",
    "lease": "acquire renew release",
    "bus": "groups lag forget tail publish parked replay drop",
}


def test_the_commands_are_those_of_the_design() -> None:
    grouped = {f"{group} {name}" for group, names in GROUPED.items() for name in names.split()}
    assert {each.name for each in COMMANDS} == {*WORDS.split(), *grouped}


@pytest.mark.parametrize("each", COMMANDS, ids=lambda each: each.name)
def test_a_command_has_help_and_an_example_that_calls_it(each: Described) -> None:
    assert each.help.endswith(".")
    assert len(each.help.splitlines()[0]) <= 100
    assert f"holdfast {each.name}" in each.example
    assert "  " not in each.usage
    assert [option.name for option in each.options if not option.help] == []
    assert "--db" in [option.name for option in each.options]


def test_help_cuts_no_summary_and_shows_names_as_they_are_typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out.partition("Commands:")[2]
    assert "  bus " in listed
    assert "..." not in listed
    for words, shown in (("cancel", "[ID]..."), ("run", "WORKFLOW"), ("worker", "[APP]")):
        assert main([words, "--help"]) == 0
        told = capsys.readouterr().out
        assert told.startswith(f"Usage: holdfast {words} [OPTIONS] {shown}\n")
        assert "<" not in told


@pytest.mark.parametrize("module", command_registry.MODULES)
def test_a_module_has_the_commands_it_is_said_to_have(module: str) -> None:
    command_registry.build_command_line(tuple(command_registry.MODULES))
    names = {
        each.name
        for each in command_registry.app.registered_commands
        if each.callback is not None
        and each.callback.__module__ == f"holdfast.cli.commands.{module}"
    }
    found = vars(importlib.import_module(f"holdfast.cli.commands.{module}"))
    groups = {
        value.info.name
        for value in found.values()
        if isinstance(value, typer.Typer) and value is not command_registry.app
    }
    assert names | groups == {*command_registry.MODULES[module]}


@pytest.mark.parametrize(
    ("value", "annotation", "required", "settled"),
    [
        ("text", str, True, True),
        (("a", "b"), list[str], True, True),
        (None, str, False, True),
        (None, str, True, False),
        ((), list[str], True, False),
        ("5", int, False, False),
        (20, int, False, True),
    ],
)
def test_text_and_what_was_not_given_need_no_conversion(
    *, value: object, annotation: object, required: bool, settled: bool
) -> None:
    class Parameter:
        default = 20
        type_descriptor = type("Descriptor", (), {"annotation": annotation})

    parameter = Parameter()
    vars(parameter)["required"] = required
    assert command_registry.needs_no_conversion(parameter, value) is settled
