"""Reads texts that mean harm, and prints for each how long it took; at the end, the memory."""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from itertools import pairwise
from pathlib import Path

from holdfast.definition.workflow_file import read_workflow_text
from holdfast.errors import InvalidWorkflowFile

LETTERS = "abcdefghi"
STEPS = "name: w\nsteps:\n"


def step(number: int, more: str) -> str:
    return f"- {{id: s{number}, run: [x]{more}}}\n"


TEXTS = {
    "bomb": "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(
        f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in pairwise(LETTERS)
    ),
    "cycle": "name: w\nsteps: &s [*s]\n",
    "nested lists": "[" * 10_000 + "]" * 10_000,
    "nested mappings": "{a: " * 10_000,
    "nested dashes": "- " * 300_000,
    "many keys": "{" + ", ".join(f"k{number}: 1" for number in range(60_000)) + "}",
    "duplicate keys": "name: a\n" * 50_000,
    "long cycle": STEPS + "".join(step(n, f", needs: [s{(n + 1) % 1_900}]") for n in range(1_900)),
    "unknown needs": STEPS + "".join(step(n, f", needs: [t{n}]") for n in range(1_900)),
    "unknown keys": STEPS + "".join(step(n, f", prmpt{n}: x") for n in range(1_900)),
    "unknown variables": STEPS
    + "".join(step(n, f", prompt: '{{{{ steps.t{n}.x }}}}'") for n in range(1_900)),
    "traversal": "name: ../../etc/passwd\nsteps: [{id: a/../../b, run: [z]}]\n",
    "tag": "name: !!python/object/apply:os.system [ls]\n",
    "merge": "a: &a {x: 1}\nb:\n  <<: *a\n",
    "control": "name: a\x07b\n",
    "nul": 'name: "a\\0b"\n',
    "two documents": "name: a\n---\nname: b\n",
    "braces": STEPS + "- {id: a, run: ['" + "{{" * 200_000 + "']}\n",
    "blanks": STEPS + "- {id: a, run: ['" + "{{ " * 200_000 + "']}\n",
    "a reference of blanks": STEPS + step(1, ', when: "{{' + " " * 2_000 + 'x"'),
    "variables": STEPS + "- {id: a, run: ['" + "{{ run.id }}" * 70_000 + "']}\n",
    "long key": STEPS + "- {id: a, ? " + "x" * 900_000 + " : 1}\n",
    "long number": STEPS + "- {id: a, run: [x], priority: " + "9" * 100_000 + "}\n",
    "too long": "a" * 5_000_000,
    "quotes": "'" * 500_001,
    "quotes left out": STEPS + "- {id: a, title: " + "{{ a: " * 100_000 + "}\n",
    "a command of braces": STEPS + "- {id: a, run: '" + "{{" * 200_000 + "'}\n",
    "nothing": "",
}
JSON_TEXTS = {
    "nested lists": "[" * 100_000 + "]" * 100_000,
    "a number of many digits": '{"name": ' + "1" * 5_000 + "}",
    "a lone surrogate": '{"name": "\\ud800"}',
    "no number": '{"name": NaN}',
    "a number too large": '{"name": "w", "steps": [{"id": "a", "run": ["x"], "timeout": 1e999}]}',
    "a stray word": '{"name": "w", "steps" []}',
    "nothing": "",
}


def try_all() -> dict[str, list[float]]:
    took: dict[str, list[float]] = {}
    for ending, texts in (("yaml", TEXTS), ("json", JSON_TEXTS)):
        for name, text in texts.items():
            began = time.process_time()
            try:
                read_workflow_text(text, name=f"w.{ending}")
            except InvalidWorkflowFile as error:
                spent = time.process_time() - began
                took[f"{name} ({ending})"] = [spent, error.found[0].line, error.found[0].column]
                str(error)
    return took


def peak() -> int:
    """The most memory that this process has had, in kilobytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # What the system calls the most of a process counts whoever started it, too.
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        assert found is not None
        return int(found[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    took = try_all()
    json.dump([took, peak()], sys.stdout)
