"""What is kept over HTTP is bounded, refused with a code, and told in pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.server.local_server import Served, served


@pytest.fixture
def few(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    with served(store_url, tmp_path / "home", max_effects=4, max_kept=1_000) as made:
        yield made


def begun(server: Served) -> tuple[str, dict[str, Any]]:
    """The path of a claimed task, and what its worker shows."""
    task = server.add()
    (got,) = server.claim(task_id=task["id"])
    return f"/claims/{task['id']}", {"token": got["token"]}


def test_an_effect_over_the_limit_of_an_attempt_is_refused_with_a_code(few: Served) -> None:
    path, held = begun(few)
    worker = few("worker")
    for number in range(4):
        body = {**held, "name": f"n {number}", "value": number}
        assert worker.post(f"{path}/effects", json=body).status_code == 200
    refused = worker.post(f"{path}/effects", json={**held, "name": "more", "value": 1})
    assert (refused.status_code, refused.json()["code"]) == (413, "too_much_kept")
    assert "max_effects" in refused.json()["detail"]


def test_an_artifact_that_is_too_much_leaves_no_file(few: Served) -> None:
    path, held = begun(few)
    worker = few("worker")
    kept = {**held, "name": "kept", "content": "a" * 700}
    for _ in range(2):
        assert worker.post(f"{path}/artifacts", json=kept).status_code == 200
    more = {**held, "name": "more", "content": "a" * 300}
    refused = worker.post(f"{path}/artifacts", json=more)
    assert (refused.status_code, refused.json()["code"]) == (413, "too_much_kept")
    files = {each.name for each in few.home.glob("artifacts/*/*")}
    assert files == {".store", "kept"}


def test_effects_are_told_in_pages(few: Served) -> None:
    path, held = begun(few)
    worker, viewer = few("worker"), few("viewer")
    for name in ("b/ö", "a", "c"):
        body = {**held, "name": name, "value": name}
        assert worker.post(f"{path}/effects", json=body).status_code == 200
    task = path.removeprefix("/claims")
    first = viewer.get(f"/tasks{task}/effects", params={"limit": 2}).json()
    assert [*first["effects"]] == ["b/ö", "a"]
    rest = viewer.get(f"/tasks{task}/effects?limit=2&after={first['next']}").json()
    assert rest == {"effects": {"c": "c"}}
    own = worker.post(f"{path}/effects", json={**held, "limit": 2}).json()
    assert own == first
    more = worker.post(f"{path}/effects", json={**held, "limit": 2, "after": own["next"]})
    assert more.json() == rest
    for wrong in ("*", "bm9uZQ=="):
        answer = viewer.get(f"/tasks{task}/effects", params={"after": wrong})
        assert (answer.status_code, answer.json()["field"]) == (422, "after")
