"""Unless more are asked for, the examples are the same ones in every run of the suite."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulation.flow_state_machine import FlowMachine, LoopMachine
from tests.simulation.state_machine import CoreMachine

KINDS = CoreMachine.kinds | FlowMachine.kinds | LoopMachine.kinds
# Of many tasks each is drawn as one is.
ASKED = {
    name: st.fixed_dictionaries(kind.arguments)
    for name, kind in KINDS.items()
    if name != "create_many"
}
SHARES = ", ".join(f"0.{number}" for number in range(1_001, 1_999))


def drawn() -> list[dict[str, Any]]:
    """What is asked for in some fixed examples."""
    found: list[dict[str, Any]] = []

    @settings(derandomize=True, deadline=None, max_examples=150)
    @given(asked=st.fixed_dictionaries(ASKED))
    def draw(asked: dict[str, Any]) -> None:
        found.append(asked)

    draw()
    return found


def test_the_drawn_examples_do_not_depend_on_the_code_that_others_have_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hypothesis draws numbers and texts that it finds in the modules there are."""
    alone = drawn()
    (tmp_path / "shares_of_others.py").write_text(f"SHARES = [{SHARES}]\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("shares_of_others")
    assert drawn() == alone
