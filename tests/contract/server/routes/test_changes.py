"""What runs and tasks have changed in a repository, from the patches that workers kept."""

from __future__ import annotations

from holdfast.engine.engine import Engine, engine_of
from holdfast.model.task import Assignment
from holdfast.worker.files.artifacts import name_attempt_patch, name_line_patch
from tests.contract.engine.read.test_step_texts import begin
from tests.contract.engine.state.test_lines import BASE, TWINS, A, B, commit, opened, take
from tests.contract.server.local_server import Served

PATCH = (
    "diff --git a/a.txt b/a.txt\nnew file mode 100644\n--- /dev/null\n+++ b/a.txt\n"
    "@@ -0,0 +1,2 @@\n+one\n+two\n"
)
ALL = PATCH + (
    "diff --git a/b.txt b/b.txt\n--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-\x1b[31mold\n+new\n"
)


def keep(server: Served, got: Assignment, name: str, content: str) -> None:
    body = {"token": got.token, "name": name, "content": content}
    answer = server("worker").post(f"/claims/{got.task_id}/artifacts", json=body)
    assert answer.status_code == 200, answer.text


def begin_one(server: Served) -> tuple[Engine, str, Assignment]:
    engine = engine_of(server.hf)
    run = begin(engine, TWINS)
    got = take(engine)
    opened(engine, got, BASE)
    return engine, run, got


def test_a_task_and_its_run_tell_what_they_have_changed(server: Served) -> None:
    engine, run, got = begin_one(server)
    viewer = server("viewer")
    nothing = viewer.get(f"/runs/{run}/diff").json()
    assert (nothing["files"], nothing["base"], nothing["commit"]) == ([], BASE, BASE)
    keep(server, got, name_attempt_patch(1), PATCH)
    keep(server, got, name_line_patch(1), ALL)
    assert commit(engine, got, A).ok
    told = viewer.get(f"/tasks/{got.task_id}/diff").json()
    assert told == {
        "task_id": got.task_id,
        "attempt": 1,
        "base": BASE,
        "commit": A,
        "kind": "head",
        "files": [{"path": "a.txt", "change": "added", "added": 2, "removed": 0}],
        "added": 2,
        "removed": 0,
        "patch": PATCH,
    }
    whole = viewer.get(f"/runs/{run}/diff").json()
    assert (whole["commit"], whole["added"], whole["removed"]) == (A, 3, 1)
    assert [each["path"] for each in whole["files"]] == ["a.txt", "b.txt"]


def test_what_has_changed_nothing_or_is_unknown_is_told_in_words(server: Served) -> None:
    engine, run, got = begin_one(server)
    viewer = server("viewer")
    other = server.add()["id"]
    for place, words in (
        (f"/tasks/{got.task_id}/diff", "no attempt of it has committed anything"),
        (f"/tasks/{other}/diff", "no attempt of it has committed anything"),
        ("/runs/r_00000000000000000000/diff", "there is no such run"),
    ):
        refused = viewer.get(place)
        assert (refused.status_code, refused.json()["code"]) == (404, "not_found"), place
        assert words in refused.json()["detail"]
    assert viewer.get(f"/tasks/{got.task_id}/diff", params={"attempt": 0}).status_code == 422
    assert commit(engine, got, B).ok
    lost = viewer.get(f"/runs/{run}/diff")
    assert (lost.status_code, "line.1.diff" in lost.json()["detail"]) == (404, True)
