"""The process of one checkout: it takes measures by the benchmarks of that checkout.

`benchmarks.checkouts` runs this file with the folders of the checkout on the path, and asks for one
measure in each line of JSON. The file is always that of the tree in which the command was given,
while `benchmarks` and `holdfast` are those of the checkout. So this file imports nothing that an
older checkout does not have.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TextIO

import holdfast
from benchmarks import waiting
from benchmarks.places import DATABASES, Places
from benchmarks.scenarios import Scenarios, Sizes


class Measures:
    """Each method answers one kind of request, in values that JSON has."""

    def __init__(self, places: Places, sizes: Sizes, stack: ExitStack) -> None:
        self._places = places
        self._scenarios = Scenarios(places, sizes)
        self._stack = stack

    def has(self, name: str) -> bool:
        return hasattr(self._scenarios, name) or hasattr(waiting, name)

    def fill(self) -> dict[str, str]:
        return self._stack.enter_context(self._scenarios.filled(DATABASES))

    def rate(self, name: str, database: str, number: int) -> float:
        """What Holdfast does in a second; what stands beside it is taken too, and left out."""
        return float(getattr(self._scenarios, name)(database, number).subject)

    def wait(self, name: str, database: str, options: dict[str, float]) -> list[dict[str, str]]:
        found = getattr(waiting, name)(self._places, database, **options)
        return [asdict(figure) for figure in (found if isinstance(found, list) else [found])]


def main() -> None:
    folder, postgres, wanted = sys.argv[1:]
    source = Path.cwd() / "src"
    found = Path(holdfast.__file__)
    assert found.is_relative_to(source), f"{found} would be measured, which is not in {source}"
    known = json.loads(wanted)
    sizes = Sizes(**{each.name: known[each.name] for each in fields(Sizes)})
    with ExitStack() as stack, _answers() as answers:
        measures = Measures(Places(folder=Path(folder), postgres=postgres), sizes, stack)
        for line in sys.stdin:
            kind, *arguments = json.loads(line)
            answer: Any = getattr(measures, kind)(*arguments)
            print(json.dumps(answer), file=answers, flush=True)


def _answers() -> TextIO:
    """The standard output, from which whatever else is printed goes to the errors from now on."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


if __name__ == "__main__":
    main()
