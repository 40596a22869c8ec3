"""Front ends go through the service: none of them reaches the engine or the store by itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src/holdfast"
FRONT_ENDS = ("server", "mcp", "cli")
BEHIND_THE_SERVICE = ("holdfast.engine", "holdfast.store")
ENGINE_ATTRIBUTES = {"engine", "_engine", "database", "commits", "notifier"}
# The places that put a program together, each with its reason.
ALLOWED_READS = {
    ("cli/app/session.py", "serve_program"): "puts the engine of a program behind the service",
    (
        "cli/app/session.py",
        "keep_up_store",
    ): "hands the engine of a program to the upkeep of the service",
}


def _reaches(tree: ast.AST) -> Iterator[tuple[str | None, int, str]]:
    """The function, the line and the text of each attribute or import behind the service."""
    for parent in ast.walk(tree):
        for node in ast.iter_child_nodes(parent):
            name = (
                parent.name if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef) else None
            )
            vars(node)["function"] = name or getattr(parent, "function", None)
    for node in ast.walk(tree):
        function = getattr(node, "function", None)
        if isinstance(node, ast.Attribute) and _is_behind(node):
            yield function, node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call):
            names = [str(each.value) for each in node.args if isinstance(each, ast.Constant)]
            called = ast.unparse(node.func).rpartition(".")[2]
            if (called == "getattr" and ENGINE_ATTRIBUTES.intersection(names)) or (
                called == "import_module" and any(map(_is_behind_the_service, names))
            ):
                yield function, node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules = [each.name for each in node.names]
            if isinstance(node, ast.ImportFrom):
                top = "holdfast." if node.level else ""
                modules = [f"{top}{node.module}.{each}" for each in modules]
            if any(map(_is_behind_the_service, modules)):
                yield function, node.lineno, ast.unparse(node)


def _is_behind(node: ast.Attribute) -> bool:
    """Whether an attribute is the engine or the store, or a private part of another object."""
    own = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls", "os"}
    private = node.attr.startswith("_") and not node.attr.startswith("__") and not own
    return node.attr in ENGINE_ATTRIBUTES or private


def _is_behind_the_service(module: str) -> bool:
    return any(f"{module}.".startswith(f"{room}.") for room in BEHIND_THE_SERVICE)


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_front_ends_go_through_the_service(front_end: str) -> None:
    found = [
        f"{module}:{line}: {text}"
        for path in sorted((SOURCE / front_end).rglob("*.py"))
        for module in [path.relative_to(SOURCE).as_posix()]
        for function, line, text in _reaches(ast.parse(path.read_text()))
        if (module, function) not in ALLOWED_READS
    ]
    assert found == [], "\n".join(found)


def test_each_exception_for_a_front_end_is_still_needed() -> None:
    for module, function in ALLOWED_READS:
        found = [each for each, _, _ in _reaches(ast.parse((SOURCE / module).read_text()))]
        assert function in found, (module, function)


@pytest.mark.parametrize(
    "text",
    [
        "asks.engine.runs.get(run_id)",
        "self._tokens.engine.access",
        "getattr(service, 'engine')",
        "def f():\n    from holdfast.store.database import Row",
        "import holdfast.engine.engine",
        "from holdfast import engine",
        "from ..engine import runs",
        "import_module('holdfast.engine.engine')",
        "service._writer.runs.get(1)",
        "service.commands._facades.tasks.get(i)",
        "async def f():\n    return service.engine",
    ],
)
def test_a_reach_around_the_service_is_seen(text: str) -> None:
    assert len(list(_reaches(ast.parse(text)))) == 1
