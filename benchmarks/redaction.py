"""Redaction: how many megabytes of log it reads in a second, beside that of another checkout.

python -m benchmarks.redaction [--beside FOLDER] [--rounds N]

FOLDER is a checkout of this repository, for example of an earlier release: `git worktree add
FOLDER COMMIT`. Both are measured in turn, so that a slow moment of the machine meets both. Each
line tells the best round, for a log that comes in pieces of 64 KB and for one that comes line by
line.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).parents[1]
PIECE = 65_536
SIZE = 1_000_000
SAID = """
    INFO WARNING request finished in 12 ms GET /api/v1/tasks?limit=50&state=ready 200 user=42
    compiling src/holdfast/worker/pool/worker.py passed tests/unit/test_clock.py::test_now 0.03s
    2026-11-18T18:39:44.123Z connection from 10.0.0.17:51234 closed, retrying in 1.5 s; id=
"""


def typical_log(chance: random.Random) -> bytes:
    """Lines of words, some of JSON, and some with a digest."""
    lines: list[str] = []
    size = 0
    while size < SIZE:
        text = " ".join(chance.choices(SAID.split(), k=14))
        match chance.randrange(10):
            case 0:
                text = json.dumps({"at": 1.5, "message": f'said "{text}"\n', "level": "info"})
            case 1:
                text = f"{text} sha256:{chance.randbytes(32).hex()}"
        lines.append(f"{text}\n")
        size += len(text) + 1
    return "".join(lines).encode()


def secrets(count: int, chance: random.Random) -> dict[str, str]:
    """Passwords, tokens and URLs of a usual length."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_/+!$&<"
    return {
        f"S{n}": "".join(chance.choices(letters, k=chance.randint(12, 40))) for n in range(count)
    }


def measure(data: bytes, pieces: list[bytes], count: int) -> float:
    """Megabytes in a second through a stream that looks for so many secrets."""
    # That of the checkout this process was started for.
    from holdfast.worker.secrets.redaction import Redaction, RedactionStream  # noqa: PLC0415

    redaction = Redaction(secrets(count, random.Random(count)))  # noqa: S311 - no secret is kept
    stream = RedactionStream(lambda: redaction)
    began = time.process_time()
    clean = b"".join([*map(stream.feed, pieces), stream.flush()])
    took = time.process_time() - began
    assert clean == data
    return len(data) / took / 1e6


def measure_all() -> dict[str, float]:
    data = typical_log(random.Random(20))  # noqa: S311 - the same each time
    whole = [data[place : place + PIECE] for place in range(0, len(data), PIECE)]
    ways = {"64 KB": whole, "lines": data.splitlines(keepends=True)}
    return {
        f"{count} secrets, {way}": measure(data, pieces, count)
        for count in (1, 10, 50)
        for way, pieces in ways.items()
    }


def measured_in(folder: Path) -> dict[str, float]:
    """The same by a process that imports Holdfast from another folder."""
    # Not in the process of the other checkout, whose benchmarks may lack it.
    from benchmarks.checkouts import environment_of, python_command  # noqa: PLC0415

    command = [*python_command(Path(__file__)), "--once"]
    ended = subprocess.run(command, env=environment_of(folder), check=True, capture_output=True)
    return {name: float(rate) for name, rate in json.loads(ended.stdout).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast redaction reads a log.")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="another checkout")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        print(json.dumps(measure_all()))
        return
    folders = [HERE, *([options.beside] if options.beside else [])]
    best: dict[Path, dict[str, float]] = {folder: {} for folder in folders}
    for _ in range(options.rounds):
        for folder in folders:
            for name, rate in measured_in(folder).items():
                best[folder][name] = max(rate, best[folder].get(name, 0.0))
    for name in best[HERE]:
        beside = f", beside {best[folders[-1]][name]:6.1f}" if options.beside else ""
        print(f"{name:>20}: {best[HERE][name]:6.1f} MB/s{beside}")


if __name__ == "__main__":
    main()
