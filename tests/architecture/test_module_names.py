"""Module names: nouns, and no gerunds, participles or adverbs."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src/holdfast"
# The last word of a name says what the module holds; those before it may describe that.
NO_NOUN = re.compile(r"(?:ing|ed|ly)$")
NOUNS = {
    "importing": "the public name of a package: `import` is a keyword",
    "landing": "the step that lands what an item of a loop has committed",
    "spending": "the money that a run has spent",
    "testing": "the public name of a package: what it is for, as elsewhere in Python",
    "tracing": "the name of this field for the recording of traces",
}


def test_every_module_is_named_by_a_noun() -> None:
    modules = [
        path.parent if path.stem == "__init__" else path.with_suffix("")
        for path in sorted(SOURCE.rglob("*.py"))
    ]
    found = [module for module in modules if NO_NOUN.search(module.name)]
    wrong = [str(module.relative_to(SOURCE)) for module in found if module.name not in NOUNS]
    assert wrong == [], "\n".join(wrong)
    assert NOUNS.keys() <= {module.name for module in found}, "a name that no module has"
