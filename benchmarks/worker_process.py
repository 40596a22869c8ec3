"""A worker process: it runs a worker as it comes, from its first line of input to the last.

python -m benchmarks.worker_process URL PREFIX

It prints a line when it is ready, and then, for each of its commits, how many tasks (`t_`) or runs
(`r_`) that commit ended.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks.program import program
from holdfast.engine.engine import engine_of


def main(url: str, prefix: str) -> None:
    def tell(identifiers: Sequence[str]) -> None:
        ended = sum(each.startswith(prefix) for each in identifiers)
        if ended:
            print(ended, flush=True)

    with program(url) as made:
        engine_of(made.hf).on_end(tell)
        print("ready", flush=True)
        sys.stdin.readline()
        with made.hf.worker():
            sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
