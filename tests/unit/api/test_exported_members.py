"""The public API is what `__all__` says, and nothing it names is missing."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import holdfast
from holdfast import bus, importing, testing

MEMBERS_AT_LEAST = 2


def test_every_exported_name_exists_and_the_list_is_sorted() -> None:
    assert sorted(holdfast.__all__) == list(holdfast.__all__)
    assert [name for name in holdfast.__all__ if not hasattr(holdfast, name)] == []


def test_nothing_public_is_reachable_without_being_exported() -> None:
    modules = {"api", "bus", "cli", "clock", "definition", "engine", "errors", "forks", "ids"}
    modules |= {
        "importing",
        "mcp",
        "model",
        "presets",
        "randomness",
        "server",
        "service",
        "settings",
    }
    modules |= {"logs", "spans", "stop_signals", "store", "testing", "threads"}
    modules |= {"tracing", "worker"}
    # Where the plugin is installed, pytest adds names of its own, which no program can write.
    names = {name for name in vars(holdfast) if name.isidentifier()}
    public = {name for name in names if not name.startswith("_")}
    assert public - modules == set(holdfast.__all__)


def test_the_importers_of_older_files_are_exported_by_their_own_module() -> None:
    assert importing.__all__ == [
        "ImportReport",
        "Moved",
        "Remark",
        "import_file",
        "import_runs",
        "import_tasks",
    ]
    assert [name for name in importing.__all__ if not hasattr(importing, name)] == []


def test_the_exported_names_of_the_bus_package_are_sorted_and_exist() -> None:
    assert sorted(bus.__all__) == bus.__all__
    assert [name for name in bus.__all__ if not hasattr(bus, name)] == []


def test_the_exported_names_of_the_testing_package_are_sorted_and_exist() -> None:
    assert sorted(testing.__all__) == testing.__all__
    assert [name for name in testing.__all__ if not hasattr(testing, name)] == []
    assert set(testing.__all__) <= set(dir(testing))


def test_the_classes_that_programs_see_are_made_without_a_store_or_an_engine() -> None:
    runtime = (holdfast.Context, holdfast.AsyncContext, holdfast.Worker)
    handles = (holdfast.Handle, holdfast.RunHandle, holdfast.Plan, holdfast.TaskFunction)
    for made in (*runtime, *handles):
        assert inspect.isabstract(made)
        assert not inspect.signature(made).parameters
    page = (Path(__file__).parents[3] / "docs/reference/python.md").read_text(encoding="utf-8")
    internal = {"StorePort", "EngineContext", "AttemptLease", "StandingClaim", "Engine"}
    assert not internal & {*re.findall(r"\w+", page)}


def test_the_page_of_the_api_covers_what_a_holdfast_leads_to() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/python.md").read_text(encoding="utf-8")
    for name in ("tasks", "runs", "work", "leases", "schedules", "workers", "hooks"):
        (members,) = re.findall(rf"### `hf.{name}`\n(.*?)\n##", page, re.DOTALL)
        assert len(re.findall(r"^- `\w+[(:]", members, re.MULTILINE)) >= MEMBERS_AT_LEAST
    for told in ("- `run_now(task_id", "- `pause(run_id", "- `claim_by_id(", "- `preview(cron"):
        assert told in page


@pytest.mark.parametrize("package", [holdfast, testing], ids=lambda package: package.__name__)
def test_every_exported_class_and_each_of_its_own_methods_says_what_it_is_for(
    package: ModuleType,
) -> None:
    silent = []
    for name in package.__all__:
        exported = getattr(package, name)
        if not exported.__doc__ or exported.__doc__.startswith(f"{name}("):
            silent.append(name)
        members = vars(exported).items() if inspect.isclass(exported) else ()
        silent += [f"{name}.{own}" for own, member in members if _is_silent(own, member)]
    assert silent == []


def _is_silent(name: str, member: object) -> bool:
    """Whether a method has no words of its own; fields, which have none either, are no methods."""
    if name.startswith("_") or inspect.ismemberdescriptor(member):
        return False
    method = callable(member) or isinstance(member, property | classmethod) or _is_bound(member)
    return method and not member.__doc__


def _is_bound(member: object) -> bool:
    return hasattr(type(member), "__get__")
