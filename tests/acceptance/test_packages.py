"""The wheel and the sdist: both carry the built dashboard, and nothing that only builds it."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from tools import dashboard

ROOT = Path(__file__).parents[2]


def test_wheel_and_sdist_carry_the_dashboard_as_it_is_served(tmp_path: Path) -> None:
    dashboard.build()
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    served = {
        f"holdfast/server/{dashboard.BUILT.name}/{path.relative_to(dashboard.BUILT).as_posix()}": (
            path.read_bytes()
        )
        for path in dashboard.BUILT.rglob("*")
        if path.is_file()
    }
    assert any(name.endswith("index.html") for name in served)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        assert {name: packed.read(name) for name in names if dashboard.BUILT.name in name} == served
    assert [name for name in names if "node_modules" in name or name.startswith("dashboard")] == []
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as packed_sources:
        members = {
            name.partition("/")[2]: packed_sources.extractfile(name)
            for name in packed_sources.getnames()
        }
    assert {f"src/{name}" for name in served} <= members.keys()
    assert "dashboard/src/main.tsx" in members
    assert [name for name in members if "node_modules" in name] == []


def test_the_locks_of_packages_name_no_host() -> None:
    for folder in dashboard.LOCKED_FOLDERS:
        text = (folder / dashboard.LOCK).read_text(encoding="utf-8")
        assert ("://" in text, '"resolved"' in text, '"integrity"' in text) == (False, False, True)
