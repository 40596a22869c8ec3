"""The page about schedules: its code runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast import Holdfast

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "schedules.md"


def test_the_code_of_the_page_runs_from_its_top_to_its_end(
    store_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    text = "\n".join(blocks).replace("sqlite:///shop.db", store_url)
    names: dict[str, object] = {"__name__": "page"}
    exec(compile(text, PAGE.name, "exec"), names)  # noqa: S102 - the project's own page
    hf = names["hf"]
    assert isinstance(hf, Holdfast)
    with hf:
        kept = {each.name: each for each in hf.schedules.list()}
        assert kept.keys() == {"morning", "sales-report", "while-it-runs"}
        assert kept["morning"].input == {"name": "Ada"}
        assert len(capsys.readouterr().out.splitlines()) == 5
        assert hf.doctor().ok
