"""The dashboard: its types, its logic, and stories in a real browser on a real server.

`HOLDFAST_TEST_BROWSER` names another Chromium than that of the packages.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import dashboard

HERE = Path(__file__).parent
STORIES = sorted((HERE / "stories").glob("*.mjs"))
# What the packages unpack the browser for: it brings the libraries that a small system lacks.
UNPACKS_LIBRARIES = "AWS_Lambda_nodejs22.x"
UNPACK = 'await (await import("@sparticuz/chromium")).default.executablePath()'


@pytest.fixture(scope="session")
def browser_environment() -> dict[str, str]:
    """The environment of a story: the browser is unpacked once, beside its package."""
    dashboard.build()
    dashboard.install_packages(HERE)
    unpacked = HERE / dashboard.PACKAGES / ".unpacked"
    unpacked.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "AWS_EXECUTION_ENV": UNPACKS_LIBRARIES,
        "HOLDFAST": str(Path(sys.executable).parent / "holdfast"),
        "TMPDIR": str(unpacked),
    }
    with dashboard.alone(HERE):
        node = [str(dashboard.NODE), "--input-type=module", "--eval", UNPACK]
        subprocess.run(node, cwd=HERE, env=environment, check=True, timeout=110)
    return environment


def test_the_types_of_the_dashboard_hold_for_the_api_as_it_is() -> None:
    dashboard.check_types()


def test_the_logic_of_the_dashboard_holds() -> None:
    dashboard.run_unit_tests()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("story", STORIES, ids=lambda path: path.stem)
def test_a_story_in_a_browser(
    story: Path, browser_environment: dict[str, str], tmp_path: Path
) -> None:
    picture = tmp_path / "picture.png"
    told = subprocess.run(
        [str(dashboard.NODE), str(story)],
        cwd=HERE,
        env=browser_environment | {"STORY_PICTURE": str(picture)},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert told.returncode == 0, f"{told.stdout}{told.stderr}\nthe last page: {picture}"
