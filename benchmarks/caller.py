"""Another process: enqueues one task after another, and tells when it asked and was answered.

python -m benchmarks.caller URL COUNT
"""

from __future__ import annotations

import sys
import time

from benchmarks.program import program


def main(url: str, count: str) -> None:
    with program(url) as made:
        for _ in range(int(count)):
            asked = time.perf_counter()
            made.note_time.enqueue().result(60)
            print(asked, time.perf_counter(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
