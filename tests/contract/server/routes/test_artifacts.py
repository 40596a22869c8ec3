"""Files that tasks have kept, listed and read over HTTP."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from tests.contract.server.local_server import Served

# Two pieces of an answer, with bytes that are no text.
CONTENT = bytes(range(256)) * 1_100


def keep(server: Served, got: dict[str, Any], name: str, content: bytes) -> int:
    file = {"name": name, "content": base64.b64encode(content).decode(), "encoding": "base64"}
    place = f"/claims/{got['task']['id']}/artifacts"
    return server("worker").post(place, json={"token": got["token"], **file}).status_code


def test_the_files_of_a_task_are_listed_by_name_and_read_as_they_were_kept(server: Served) -> None:
    task = server.add()
    place, viewer = f"/tasks/{task['id']}/artifacts", server("viewer")
    assert viewer.get(place).json() == {"items": []}
    (got,) = server.claim("digger")
    for name, content in (("b.bin", CONTENT), ("a.txt", b""), ("c-1.txt", b"c")):
        assert keep(server, got, name, content) == 200
    other = {"token": got["token"], "name": "artifact", "value": {"bytes": 1, "digest": ""}}
    for name in ("artifact", "artifact ../up", "artifacts", "artifact d.txt"):
        sent = other | {"name": name, "value": other["value"] if " .." in name else "none"}
        assert server("worker").post(f"/claims/{task['id']}/effects", json=sent).status_code == 200
    # A worker may give any effect such a name, and it is on a page, but not listed.
    page = viewer.get(place, params={"limit": 3}).json()
    assert [(each["name"], each["bytes"], each["attempt"]) for each in page["items"]] == [
        ("a.txt", 0, 1),
        ("b.bin", len(CONTENT), 1),
    ]
    digest = hashlib.sha256(CONTENT).hexdigest()
    assert page["items"][1]["digest"] == digest
    rest = viewer.get(place, params={"after": page["next"]}).json()
    assert ([each["name"] for each in rest["items"]], "next" in rest) == (["c-1.txt"], False)
    read = viewer.get(f"{place}/b.bin")
    assert (read.status_code, read.content) == (200, CONTENT)
    assert read.headers["content-type"] == "application/octet-stream"
    assert read.headers["content-disposition"] == 'attachment; filename="b.bin"'
    assert read.headers["x-content-type-options"] == "nosniff"
    assert (read.headers["etag"], read.headers["content-length"]) == (
        f'"{digest}"',
        str(len(CONTENT)),
    )
    assert viewer.get(f"{place}/a.txt").content == b""
    missing = viewer.get(f"{place}/nope")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    assert "the task has kept a.txt, b.bin, c-1.txt" in missing.json()["detail"]
    for odd in ("..%2Fup", ".store", "%00", "d.txt"):
        assert viewer.get(f"{place}/{odd}").status_code == 404, odd
    for role, status in {"operator": 200, "admin": 200, "worker": 403}.items():
        answers = [server(role).get(each) for each in (place, f"{place}/a.txt")]
        assert [each.status_code for each in answers] == [status, status]
    unknown = viewer.get(f"/tasks/t_{'0' * 20}/artifacts")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")


def test_a_file_that_is_elsewhere_or_another_one_is_not_given(server: Served) -> None:
    task = server.add()
    (got,) = server.claim("far-away")
    assert keep(server, got, "a.txt", b"all is well") == 200
    place = f"/tasks/{task['id']}/artifacts"
    (file,) = server.home.glob("artifacts/*/a.txt")
    file.write_bytes(b"all is ill!")
    changed = server("viewer").get(f"{place}/a.txt")
    file.unlink()
    gone = server("viewer").get(f"{place}/a.txt")
    for answer in (changed, gone):
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert "it was kept by far-away on the machine" in answer.json()["detail"]
    assert [each["name"] for each in server("viewer").get(place).json()["items"]] == ["a.txt"]


def test_of_a_task_that_was_done_again_the_newest_files_count(server: Served) -> None:
    task = server.add()
    for content in (b"first", b"second"):
        (got,) = server.claim("digger")
        assert keep(server, got, "a.txt", content) == 200
        if content == b"first":
            assert keep(server, got, "old.txt", content) == 200
        done = {"token": got["token"], "output": {}}
        assert server("worker").post(f"/claims/{task['id']}/complete", json=done).status_code == 200
        if content == b"first":
            assert server("operator").post(f"/tasks/{task['id']}/reopen").status_code == 200
    place = f"/tasks/{task['id']}/artifacts"
    items = server("viewer").get(place).json()["items"]
    assert [(each["name"], each["bytes"], each["attempt"]) for each in items] == [
        ("a.txt", 6, 2),
        ("old.txt", 5, 1),
    ]
    assert server("viewer").get(f"{place}/a.txt").content == b"second"


def test_a_size_that_a_worker_made_up_is_not_sent(quick_server: Served) -> None:
    server = quick_server
    task = server.add()
    (got,) = server.claim("digger")
    for name in ("a.txt", "b.txt"):
        assert keep(server, got, name, b"four") == 200
    done = {"token": got["token"], "output": {}}
    assert server("worker").post(f"/claims/{task['id']}/complete", json=done).status_code == 200
    assert server("operator").post(f"/tasks/{task['id']}/reopen").status_code == 200
    (got,) = server.claim("digger")
    made_up: dict[str, int] = {"a.txt": 3, "b.txt": True}
    for name, size in made_up.items():
        value = {"bytes": size, "digest": hashlib.sha256(b"four").hexdigest()}
        effect = {"token": got["token"], "name": f"artifact {name}", "value": value}
        assert server("worker").post(f"/claims/{task['id']}/effects", json=effect).is_success
    place = f"/tasks/{task['id']}/artifacts"
    assert server("viewer").get(f"{place}/a.txt").status_code == 404
    assert server("viewer").get(f"{place}/b.txt").status_code == 404
    assert [each["name"] for each in server("viewer").get(place).json()["items"]] == ["a.txt"]
