"""The pages made from the code are those in the repository."""

from __future__ import annotations

import pytest

from tools import reference


@pytest.mark.parametrize("page", reference.BUILT)
def test_a_reference_page_is_what_the_code_says(page: str) -> None:
    kept = (reference.PAGES / page).read_text(encoding="utf-8")
    assert kept == reference.BUILT[page](), "run `make reference`"
