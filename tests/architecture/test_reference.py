"""The pages made from the code are those in the repository."""

from __future__ import annotations

import re

from holdfast.settings import COMMAND_VARIABLES, VARIABLES
from tests.architecture.test_hints import MODULES
from tools import reference

NAME = re.compile(r"HOLDFAST_[A-Z_]*[A-Z]")


def test_a_reference_page_is_what_the_code_says() -> None:
    kept = {page: (reference.PAGES / page).read_text(encoding="utf-8") for page in reference.BUILT}
    stale = [page for page, build in reference.BUILT.items() if kept[page] != build()]
    assert stale == [], "run `make reference`"


def test_every_variable_of_the_environment_that_the_code_names_is_listed() -> None:
    texts = (path.read_text(encoding="utf-8") for path in MODULES)
    assert {name for text in texts for name in NAME.findall(text)} == {
        *VARIABLES,
        *COMMAND_VARIABLES,
    }
