"""Advice is data: no text of the package writes a call of the Python API into its prose."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src/holdfast"
CALL = re.compile(r"hf\.[a-z_.]+\(")
# The module that puts advice into calls.
RENDERER = "model/advice.py"
# Calls in texts that only programs read: logs, `str(hf.doctor())`, errors of the Python API itself
FOR_PROGRAMS = {
    "api/holdfast.py": {"hf.archive(", "hf.on("},
    "api/workflow_call.py": {"hf.workflow(", "hf.workflow_file("},
    "engine/explain/doctor.py": {"hf.runs.events(", "hf.tasks.events("},
    "engine/surroundings/hooks.py": {"hf.hooks.list("},
    "store/sqlite/database.py": {"hf.transaction("},
    "worker/pool/worker.py": {"hf.worker("},
}


def test_no_text_writes_a_call_into_its_prose() -> None:
    found = {
        f"{name}: {call}"
        for path in SOURCE.rglob("*.py")
        if (name := path.relative_to(SOURCE).as_posix()) != RENDERER
        for text in _texts(ast.parse(path.read_text()))
        for call in CALL.findall(text)
        if call not in FOR_PROGRAMS.get(name, ())
    }
    found |= {
        f"{path.name}: {call}"
        for path in SOURCE.rglob("*.sql")
        for call in CALL.findall(path.read_text())
    }
    assert found == set()


def _texts(tree: ast.Module) -> Iterator[str]:
    """The literal texts of a module, but for its docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in docstrings:
            continue
        if isinstance(node.value, str):
            yield node.value
