"""Python programs that are named as `module:name`: their import, and the objects in them."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from holdfast.errors import InvalidInput

if TYPE_CHECKING:
    from holdfast.api.holdfast import Holdfast
    from holdfast.api.workflow import WorkflowBuilder

FORM = "write module:name, as in shop:hf for the hf of shop.py"


def load_object(text: str) -> tuple[ModuleType, Any]:
    """A module and its object of a name; modules of the current folder come first."""
    module_name, colon, name = text.partition(":")
    dotted = module_name.removesuffix(".py").replace("/", ".").strip(".")
    if not colon or not name or not dotted:
        raise InvalidInput("app", f"{text[:60]!r} names no object of a program; {FORM}")
    module = _import(dotted)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            close = get_close_matches(part, dir(found), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise InvalidInput("app", f"{module_name} has no {name!r}{hint}")
        found = getattr(found, part)
    return module, found


def _import(name: str) -> ModuleType:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # An import that fails inside the module is an error of the module: it is raised as it is.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        reason = f"there is no module {name!r} here or installed; {FORM}"
        raise InvalidInput("app", reason) from error


@dataclass(frozen=True, kw_only=True)
class Program:
    """The Holdfast of a program, the name to type for it, and the workflow to start."""

    holdfast: Holdfast
    name: str
    workflow: WorkflowBuilder


def load_app(text: str) -> Holdfast:
    """The Holdfast that `module:name` names."""
    from holdfast.api.holdfast import Holdfast

    _, found = load_object(text)
    if not isinstance(found, Holdfast):
        reason = f"{text} is a {type(found).__name__}, and not a Holdfast; {FORM}"
        raise InvalidInput("app", reason)
    return found


def load_program(workflow: str, app: str | None) -> Program:
    """A workflow by its name in a program, or by the `module:name` of it or of its Holdfast."""
    from holdfast.api.holdfast import Holdfast
    from holdfast.api.workflow import WorkflowBuilder

    if app is not None:
        found = load_app(app)
        return Program(holdfast=found, name=app, workflow=_choose_workflow(found, workflow))
    module, found = load_object(workflow)
    if isinstance(found, Holdfast):
        return Program(holdfast=found, name=workflow, workflow=_choose_workflow(found, None))
    if not isinstance(found, WorkflowBuilder):
        reason = f"{workflow} is a {type(found).__name__}, and neither a workflow nor a Holdfast"
        raise InvalidInput("workflow", reason)
    for name, each in vars(module).items():
        if isinstance(each, Holdfast) and found in each.workflows.values():
            return Program(holdfast=each, name=f"{module.__name__}:{name}", workflow=found)
    reason = f"no Holdfast of {module.__name__} has it; say which: --app module:name"
    raise InvalidInput("workflow", reason)


def _choose_workflow(program: Holdfast, name: str | None) -> WorkflowBuilder:
    """The workflow of a program by its name, or its only workflow."""
    known = program.workflows
    if name is not None and name in known:
        return known[name]
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    shown = ", ".join(known) or "none at all"
    raise InvalidInput("workflow", f"the program's workflows are {shown}; name one of them")
