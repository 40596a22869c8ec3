"""Commands in workspaces: where they begin, and what becomes of what they leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.model.run import Run
from tests.contract.worker.git.repositories import (
    World,
    commit_files,
    head,
    plant,
    run,
    save,
    show,
    tree,
    write,
)
from tests.contract.worker.workspaces.workspace_runs import HEADING, WorkspaceRuns
from tests.race.racers import eventually


def test_what_a_command_leaves_is_where_the_next_step_begins_and_on_the_visible_branch(
    runs: WorkspaceRuns,
) -> None:
    ended = runs.end(
        """
  - {id: one, run: [sh, -c, 'echo two > a.txt; echo new > b.txt']}
  - {id: two, run: [sh, -c, 'cat a.txt b.txt; echo "{{ steps.one.commit }}"; git rev-parse HEAD']}
"""
    )
    assert ended.status == "completed", runs.tell(ended)
    one, two = runs.task(ended, "one"), runs.task(ended, "two")
    commit = one.output["commit"]
    assert runs.log(two) == f"two\nnew\n{commit}\n{commit}\n"
    assert two.output["no_changes"] is True
    assert head(runs.path, runs.branch(ended)) == commit
    assert show(runs.path, commit, "b.txt") == "new"
    assert run(runs.path, "status", "--porcelain") == ""
    assert head(runs.path) == runs.base
    assert "holdfast-attempts" not in run(runs.path, "branch", "--all")
    told = run(runs.path, "log", "-1", "--format=%(trailers:only)", commit)
    assert told.split("\n") == [
        f"Holdfast-Run: {ended.id}",
        "Holdfast-Step: one",
        f"Holdfast-Attempt: {one.id}.1",
    ]


def test_a_worktree_is_used_again_and_set_up_once(runs: WorkspaceRuns) -> None:
    heading = HEADING.replace(
        "'{{ input.repo }}'}", "'{{ input.repo }}', setup: [sh, -c, 'echo set up; echo x > made']}"
    )
    write(runs.path, {".gitignore": "made\n"})
    save(runs.path, "Ignore")
    ended = runs.end(
        """
  - {id: one, run: [sh, -c, 'pwd; cat made; touch left.txt']}
  - {id: two, run: [sh, -c, 'pwd; cat made; ls']}
""",
        heading,
    )
    assert ended.status == "completed", runs.tell(ended)
    first = runs.log(runs.task(ended, "one")).split()
    assert first[:2] == ["set", "up"]
    assert first[2].endswith(f"{ended.id}.1")
    assert runs.log(runs.task(ended, "two")).split() == [
        *first[2:],
        "a.txt",
        "folder",
        "left.txt",
        "made",
    ]


def test_a_setup_that_fails_fails_the_attempt_and_runs_again(runs: WorkspaceRuns) -> None:
    flag = runs.world.folder / "flag"
    script = f"[ -e {flag} ] || {{ touch {flag}; exit 3; }}"
    setup = f"'{{{{ input.repo }}}}', setup: [sh, -c, '{script}']}}"
    heading = HEADING.replace("'{{ input.repo }}'}", setup)
    ended = runs.end("  - {id: one, run: [echo, done]}\n", heading)
    task = runs.task(ended, "one")
    assert (task.status, task.attempt) == ("done", 2)
    first = runs.hf.tasks.attempts(task.id)[0]
    assert first.error["message"].startswith("the setup of its workspace ended with exit code 3")


def test_copied_files_are_there_and_are_never_committed(runs: WorkspaceRuns) -> None:
    heading = HEADING.replace(
        "'{{ input.repo }}'}",
        "'{{ input.repo }}', copy: [.env, 'conf', 'out', a.txt, '*.missing']}",
    )
    secret = runs.world.folder / "secret"
    secret.write_text("secret\n")
    write(runs.path, {".env": "K=1\n", "conf/x.ini": "x\n", "a.txt": "changed\n"})
    (runs.path / "out").symlink_to(secret)
    ended = runs.end(
        "  - {id: one, run: [sh, -c, 'cat .env conf/x.ini a.txt; ls out; echo b > b.txt']}\n",
        heading,
    )
    task = runs.task(ended, "one")
    assert "K=1\nx\none\n" in runs.log(task)
    assert "cannot access 'out'" in runs.log(task)
    assert tree(runs.path, task.output["commit"]) == ["a.txt", "b.txt", "folder/b.txt"]


def test_a_reading_step_leaves_nothing_and_names_the_commit_it_saw(runs: WorkspaceRuns) -> None:
    ended = runs.end(
        """
  - {id: one, run: [sh, -c, 'echo two > a.txt']}
  - {id: look, run: [sh, -c, 'cat a.txt; echo changed > a.txt; echo x > x'], workspace: read}
  - {id: two, run: [sh, -c, 'cat a.txt; ls']}
"""
    )
    commit = runs.task(ended, "one").output["commit"]
    assert runs.task(ended, "look").output["commit"] == commit
    assert runs.log(runs.task(ended, "two")) == "two\na.txt\nfolder\n"
    assert head(runs.path, runs.branch(ended)) == commit


def test_a_verifier_sees_the_named_commit_and_a_rejection_begins_at_the_head(
    runs: WorkspaceRuns,
) -> None:
    ended = runs.end(
        """
  - {id: implement, run: [sh, -c, 'cat a.txt; echo "$HOLDFAST_ATTEMPT" >> a.txt']}
  - id: verify
    verifies: implement
    run: [sh, -c, 'test "$(git rev-parse HEAD)" = "{{ subject.commit }}" || exit 9;
      if grep -q 2 a.txt; then echo "VERDICT: accept"; else echo "VERDICT: reject"; fi']
"""
    )
    assert ended.status == "completed", runs.tell(ended)
    task = runs.task(ended, "implement")
    assert show(runs.path, runs.branch(ended), "a.txt") == "one\n1\n2"
    assert runs.log(task, 2) == "one\n1\n"
    assert runs.subjects(runs.branch(ended)) == ["implement", "implement", "Begin"]


NAMED = """
name: work
input: {repo: string}
workspace: {git: '{{ input.repo }}'}
agents:
  developer: {command: [sh, -c, 'echo done > story.txt']}
  other: {command: [sh, -c, 'echo moved > other.txt; echo moved > story.txt']}
  judge:
    command: [sh, -c, 'git rev-parse HEAD; cat story.txt; ls; echo "VERDICT: accept"']
steps:
  - {id: implement, agent: developer, prompt: Do it}
  - {id: verify, agent: judge, verifies: implement, prompt: "Look at {{ subject.commit }}"}
  - {id: move, needs: [], agent: other, prompt: Move on}
  - {id: review, needs: [verify, move], agent: judge, workspace: read, prompt: Look at all}
"""


def step_ends(runs: WorkspaceRuns, started: Run, step: str) -> bool:
    return eventually(lambda: runs.task(started, step).terminal)


def test_a_verifier_sees_the_named_commit_although_the_branch_has_moved_on_since(
    sqlite_store_url: str, world: World, tmp_path: Path
) -> None:
    with Holdfast(sqlite_store_url) as hf:
        runs = WorkspaceRuns(hf, world, tmp_path / "home")
        started = runs.start("", NAMED)
        # One after the other: the verifier begins when the run is already further.
        for agent, step in (("developer", "implement"), ("other", "move"), ("judge", "review")):
            with hf.worker(agents=[agent]):
                assert step_ends(runs, started, step), runs.tell(started)
                assert eventually(runs.no_worktree_is_lent)
            run(runs.path, "commit", "--quiet", "--allow-empty", "-m", "Somebody else's")
        ended = runs.wait(started)
        assert ended.status == "completed", runs.tell(ended)
        named = runs.task(ended, "implement").output["commit"]
        moved = runs.task(ended, "move").output["commit"]
        assert head(runs.path, runs.branch(ended)) == moved != named
        lines = runs.log(runs.task(ended, "verify")).splitlines()
        assert lines[:2] == [named, "done"]
        assert "other.txt" not in lines
        assert runs.task(ended, "verify").output["commit"] == named
        assert runs.log(runs.task(ended, "review")).splitlines()[0] == moved


def test_a_failed_attempt_is_kept_aside_and_the_next_begins_at_the_head(
    runs: WorkspaceRuns,
) -> None:
    ended = runs.end(
        """
  - {id: one, run: [sh, -c, 'cat a.txt; n=$HOLDFAST_ATTEMPT; echo "$n" > a.txt; [ "$n" = 2 ]']}
"""
    )
    task = runs.task(ended, "one")
    assert (task.status, task.attempt) == ("done", 2)
    assert runs.log(task, 2) == "one\n"
    kept = f"refs/holdfast/runs/{ended.id}/{task.id}.1"
    assert show(runs.path, kept, "a.txt") == "1"
    assert show(runs.path, task.output["commit"], "a.txt") == "2"


def test_a_question_keeps_the_draft_and_the_next_attempt_goes_on_from_it(
    runs: WorkspaceRuns,
) -> None:
    started = runs.start(
        """
  - id: one
    run: [sh, -c, 'cat a.txt; if grep -q draft a.txt; then echo done > b.txt; else
      echo draft > a.txt; echo "{\\"question\\": \\"Which?\\"}"; fi']
"""
    )
    assert eventually(lambda: runs.task(started, "one").question is not None), runs.tell(started)
    task = runs.task(started, "one")
    runs.hf.answer(task.id, "this")
    ended = runs.wait(started)
    assert ended.status == "completed", runs.tell(ended)
    task = runs.task(ended, "one")
    assert runs.log(task, 2) == "draft\n"
    assert show(runs.path, task.output["commit"], "a.txt") == "draft"
    assert show(runs.path, task.output["commit"], "b.txt") == "done"


def wait_for_both(runs: WorkspaceRuns) -> str:
    """Lines of shell that go on once both steps are there."""
    one, two = (runs.world.folder / each for each in ("one", "two"))
    there = f"[ -e {one} ] && [ -e {two} ]"
    return f"touch {runs.world.folder}/$0; until {there}; do sleep 0.02; done"


def test_two_steps_at_once_are_merged_and_a_conflict_is_told_and_tried_again(
    runs: WorkspaceRuns,
) -> None:
    meet = wait_for_both(runs)
    ended = runs.end(
        f"""
  - {{id: one, needs: [], run: [sh, -c, '{meet}; echo $0 > $0.txt; echo $0 >> a.txt', one]}}
  - {{id: two, needs: [], run: [sh, -c, '{meet}; echo $0 > $0.txt; echo $0 >> a.txt', two]}}
"""
    )
    assert ended.status == "completed", runs.tell(ended)
    assert sorted(tree(runs.path, runs.branch(ended))) == [
        "a.txt",
        "folder/b.txt",
        "one.txt",
        "two.txt",
    ]
    said = show(runs.path, runs.branch(ended), "a.txt").split("\n")
    assert sorted(said) == ["one", "one", "two"]
    failed = [
        each.error["message"]
        for step in ("one", "two")
        for each in runs.hf.tasks.attempts(runs.task(ended, step).id)
        if each.outcome == "failed"
    ]
    assert len(failed) == 1
    assert "conflict in a.txt" in failed[0]
    assert "<<<<<<<" in failed[0]


def test_two_steps_at_once_in_different_files_are_merged_without_a_failure(
    runs: WorkspaceRuns,
) -> None:
    meet = wait_for_both(runs)
    ended = runs.end(
        f"""
  - {{id: one, needs: [], run: [sh, -c, '{meet}; echo $0 > $0.txt', one]}}
  - {{id: two, needs: [], run: [sh, -c, '{meet}; echo $0 > $0.txt', two]}}
"""
    )
    assert ended.status == "completed", runs.tell(ended)
    assert {"one.txt", "two.txt"} <= set(tree(runs.path, runs.branch(ended)))
    assert [runs.task(ended, each).attempt for each in ("one", "two")] == [1, 1]


def test_a_command_knows_its_workspace_its_ports_and_an_empty_scratch_folder(
    runs: WorkspaceRuns,
) -> None:
    ended = runs.end(
        """
  - {id: one, run: [sh, -c, 'env | grep ^HOLDFAST_ | sort; touch "$HOLDFAST_SCRATCH/x"']}
  - {id: two, run: [sh, -c, 'ls -A "$HOLDFAST_SCRATCH"'], workspace: read}
  - {id: three, run: [sh, -c, 'env | grep HOLDFAST_WORKSPACE || echo none'], workspace: none}
"""
    )
    told = dict(line.split("=", 1) for line in runs.log(runs.task(ended, "one")).splitlines())
    task = runs.task(ended, "one")
    assert told["HOLDFAST_WORKSPACE"].endswith(f"workspaces/{ended.id}.1")
    assert told["HOLDFAST_BRANCH"] == f"holdfast-attempts/{task.id}.1"
    assert told["HOLDFAST_COMMIT"] == runs.base
    assert int(told["HOLDFAST_PORT"]) % 10 == 0
    assert runs.log(runs.task(ended, "two")) == ""
    assert runs.log(runs.task(ended, "three")) == "none\n"


@pytest.mark.parametrize(
    ("heading", "message"),
    [
        ("from: nowhere", "has no commit, branch or tag 'nowhere'"),
        ("from: --upload-pack=x", "is no name for a branch"),
    ],
)
def test_a_start_that_is_not_there_fails_the_run_in_words(
    runs: WorkspaceRuns, heading: str, message: str
) -> None:
    ended = runs.end(
        "  - {id: one, run: [echo, x]}\n", HEADING.replace("repo }}'}", f"repo }}}}', {heading}}}")
    )
    task = runs.task(ended, "one")
    assert (task.status, task.attempt) == ("failed", 1)
    assert message in task.error["message"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "does not exist"),
        ("plain", "is in no git repository"),
        ("empty", "no commit yet"),
    ],
)
def test_a_repository_that_cannot_be_used_fails_the_run_in_words(
    runs: WorkspaceRuns, name: str, message: str
) -> None:
    (runs.world.folder / "plain").mkdir()
    runs.world.repository("empty", commit=False)
    ended = runs.end("  - {id: one, run: [echo, x]}\n", repo=str(runs.world.folder / name))
    task = runs.task(ended, "one")
    assert (task.status, task.attempt) == ("failed", 1)
    assert message in task.error["message"]


def test_a_dirty_a_bare_and_a_shallow_repository_can_be_worked_in(runs: WorkspaceRuns) -> None:
    commit_files(runs.path, runs.base, {"c.txt": "c\n"})
    run(runs.world.folder, "clone", "--quiet", "--bare", str(runs.path), "bare.git")
    run(runs.world.folder, "clone", "--quiet", "--depth=1", f"file://{runs.path}", "shallow")
    write(runs.path, {"a.txt": "dirty\n"})
    for name in ("repository", "bare.git", "shallow"):
        ended = runs.end(
            "  - {id: one, run: [sh, -c, 'cat a.txt; echo two > a.txt']}\n",
            repo=str(runs.world.folder / name),
        )
        assert ended.status == "completed", runs.tell(ended)
        assert runs.log(runs.task(ended, "one")) == "one\n"
    assert (runs.path / "a.txt").read_text() == "dirty\n"


def test_a_repository_with_hooks_and_filters_runs_none_of_them(runs: WorkspaceRuns) -> None:
    canary = runs.world.folder / "canary"
    plant(runs.path, canary)
    canary.unlink(missing_ok=True)
    ended = runs.end(
        """
  - {id: one, run: [sh, -c, 'echo two > a.txt; echo x > new.md']}
  - {id: two, run: [cat, a.txt], workspace: read}
"""
    )
    assert ended.status == "completed", runs.tell(ended)
    assert not canary.exists(), canary.read_text()


def test_the_changes_of_an_attempt_are_kept_as_an_artifact(runs: WorkspaceRuns) -> None:
    ended = runs.end(
        """
  - {id: one, run: [sh, -c, 'echo two > a.txt']}
  - {id: two, run: [sh, -c, 'echo three > b.txt']}
"""
    )
    folder = runs.state.artifacts(runs.task(ended, "two").id).path
    assert "+three" in (folder / "changes.1.diff").read_text()
    assert "two" not in (folder / "changes.1.diff").read_text()
    assert "+two" in (folder / "line.1.diff").read_text()


def test_what_is_not_committed_is_told_in_the_log(runs: WorkspaceRuns) -> None:
    ended = runs.end(
        """
  - id: one
    run: [sh, -c, 'echo x > x.txt; head -c 2000 /dev/zero > big.bin; git init -q inner']
""",
        HEADING.replace("repo }}'}", "repo }}', max_file: 1000B}"),
    )
    task = runs.task(ended, "one")
    assert tree(runs.path, task.output["commit"]) == ["a.txt", "folder/b.txt", "x.txt"]
    assert "too large, above 1000 bytes (workspace: max_file): big.bin]" in runs.log(task)
    assert "repositories of their own: inner/]" in runs.log(task)


def test_the_next_step_works_in_the_same_worktree(runs: WorkspaceRuns) -> None:
    steps = "".join(
        f"  - {{id: s{number}, run: [sh, -c, 'pwd; echo {number} >> a.txt']}}\n"
        for number in range(6)
    )
    ended = runs.end(steps)
    folders = {runs.log(runs.task(ended, f"s{number}")) for number in range(6)}
    assert len(folders) == 1


def test_a_step_that_rewrites_history_fails_in_words(runs: WorkspaceRuns) -> None:
    ended = runs.end(
        """
  - {id: one, max_attempts: 1, run: [sh, -c, 'git checkout -q --orphan other; git commit -qm x']}
"""
    )
    task = runs.task(ended, "one")
    assert task.status == "failed"
    assert "left it for the branch other" in task.error["message"]


def test_cwd_is_inside_the_worktree(runs: WorkspaceRuns) -> None:
    (runs.path / "out").symlink_to(runs.world.folder)
    save(runs.path, "Link")
    ended = runs.end("  - {id: one, run: [ls], cwd: folder}\n")
    assert runs.log(runs.task(ended, "one")) == "b.txt\n"
    ended = runs.end("  - {id: one, run: [ls], cwd: out, max_attempts: 1}\n")
    assert "no folder of the workspace" in runs.task(ended, "one").error["message"]


def test_a_file_that_the_commit_has_is_not_replaced_by_the_copy_of_another(
    runs: WorkspaceRuns,
) -> None:
    run(runs.path, "branch", "template")
    run(runs.path, "rm", "--quiet", "a.txt")
    save(runs.path, "Without a.txt")
    write(runs.path, {"a.txt": "password\n", "folder.ini": "x\n"})
    heading = HEADING.replace("repo }}'}", "repo }}', from: template, copy: [a.txt, '*.ini']}")
    ended = runs.end("  - {id: one, run: [sh, -c, 'cat *.txt *.ini; echo new > b']}\n", heading)
    one = runs.task(ended, "one")
    assert runs.log(one) == "one\nx\n"
    assert show(runs.path, one.output["commit"], "a.txt") == "one"


def test_a_command_is_in_its_worktree_though_a_git_started_its_worker(
    runs: WorkspaceRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = runs.world.repository("other")
    for name, value in (("DIR", other / ".git"), ("INDEX_FILE", other / ".git/index")):
        monkeypatch.setenv(f"GIT_{name}", str(value))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    ended = runs.end("  - {id: one, run: [sh, -c, 'git rev-parse --show-toplevel']}\n")
    monkeypatch.undo()
    assert runs.log(runs.task(ended, "one")).strip().endswith(f"{ended.id}.1")


@pytest.mark.parametrize(
    "what",
    [
        "git checkout -q -B mine; git add -A; git commit -qm own",
        "git checkout -q --detach; git add -A",
        "touch $(git rev-parse --git-dir)/MERGE_HEAD",
        "git commit -q --amend -m rewritten --allow-empty",
    ],
)
@pytest.mark.parametrize("code", [0, 1])
def test_what_can_be_no_result_is_kept_aside_also_by_the_last_attempt(
    runs: WorkspaceRuns, what: str, code: int
) -> None:
    script = f"echo $HOLDFAST_ATTEMPT > new.txt; {what}; echo x > x; exit {code}"
    ended = runs.end(f"  - {{id: one, max_attempts: 2, run: [sh, -c, '{script}']}}\n")
    task = runs.task(ended, "one")
    assert task.status == "failed", task.output
    for number in (1, 2):
        name = f"refs/holdfast/runs/{ended.id}/{task.id}.{number}"
        assert tree(runs.path, name) == ["a.txt", "folder/b.txt", "new.txt", "x"]
        assert show(runs.path, name, "new.txt") == str(number)
