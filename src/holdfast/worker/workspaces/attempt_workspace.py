"""Attempt workspace: the worktree of one attempt, from where its line is to what becomes of it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from holdfast.errors import (
    GitError,
    GitMissing,
    HoldfastError,
    InvalidInput,
    RepositoryUnusable,
    WorkspaceUnusable,
)
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.task import Assignment
from holdfast.model.workflow.declarations import RECORDED, Access, Workspace
from holdfast.model.workflow.line import Draft, Head, LineState, NewHead, is_sha
from holdfast.worker.attempt.attempt_lease import AttemptEnded
from holdfast.worker.attempt.context import AttemptContext
from holdfast.worker.attempt.execution import ReportEntry, StepFailed
from holdfast.worker.files.home_registry import registry_path
from holdfast.worker.files.state_directory import StateDirectory
from holdfast.worker.git.commits import (
    AttemptWorktree,
    CommitMessage,
    CommitRules,
    LeftWork,
    commit_abandoned_work,
    commit_left_work,
)
from holdfast.worker.git.diffs import read_diff
from holdfast.worker.git.git_command import Git
from holdfast.worker.git.merges import MergeConflict, WantedMerge, merge_commits
from holdfast.worker.git.references import ReferenceMove, move_reference
from holdfast.worker.git.repository import HEADS, is_ancestor
from holdfast.worker.git.worktrees import (
    add_worktree,
    hand_over_worktree,
    remove_worktree,
)
from holdfast.worker.store_port import StorePort
from holdfast.worker.workspaces.copied_files import copy_files
from holdfast.worker.workspaces.line_repository import LineRepository, open_line_repository
from holdfast.worker.workspaces.port_blocks import hold_ports
from holdfast.worker.workspaces.worktree_pool import LentWorktree, WorktreePool, WorktreeRecord

ATTEMPT_BRANCHES = "holdfast-attempts/"
# Each other step that is faster costs one merge.
MOST_MERGES = 50
LONGEST_SUBJECT = 72
_ID = re.compile(r"[rt]_[0-9a-z]{1,40}")

log = logging.getLogger("holdfast.worker")


@dataclass(frozen=True, kw_only=True)
class WorkspacePorts:
    """What a workspace needs of its worker: its store, its state, and the end of processes."""

    store: StorePort
    state: StateDirectory
    is_stopped: Callable[[str, int], bool]

    @property
    def folder(self) -> Path:
        return self.state.root / "workspaces"

    @property
    def store_name(self) -> str:
        """What tells the store from others whose worktrees are in the same folder."""
        return self.store.store or self.store.settings.url

    def find_git(self) -> Git:
        return Git.find(self.state.root / "git")


@dataclass(frozen=True, kw_only=True)
class AttemptLine:
    """The line of an attempt, with the repository of its commits."""

    ports: WorkspacePorts
    assignment: Assignment
    context: AttemptContext
    place: LineRepository
    state: LineState

    @property
    def kept_name(self) -> str:
        return f"{self.assignment.task_id}.{self.assignment.attempt}"

    def guard(self) -> None:
        """Raise `AttemptEnded` unless the attempt may still act."""
        self.context.guard()

    def keep(self, commit: str) -> None:
        self.place.keep(self.state.run_id, self.kept_name, commit)

    def keep_diff(self, name: str, old: str, new: str) -> None:
        """Keep the changes between two commits as a file of the task, for people to look at."""
        text = read_diff(self.place.repository, old, new).patch.decode("utf-8", "replace")
        try:
            self.context.artifact(f"{name}.{self.assignment.attempt}.diff", text)
        except HoldfastError as error:
            log.warning("the changes of an attempt are not kept: %s", error)

    def read_again(self) -> AttemptLine:
        """The line as it is now."""
        opened = open_line(self.ports.store, self.assignment)
        return self if opened is None else replace(self, state=opened)

    def merge(self, into: Head, commit: str, subject: str) -> str | MergeConflict:
        """The commit on top of a newer head; the commit itself where it comes from that head."""
        repository = self.place.repository
        if is_ancestor(repository, into.sha, commit):
            return commit
        self.place.bring(self.state.run_id, into.sha)
        message = CommitMessage(subject=subject, trailers=self.trailers)
        merged = merge_commits(
            repository,
            WantedMerge(
                into=into.sha, head=commit, message=message.text, author=repository.identity
            ),
        )
        return merged if isinstance(merged, MergeConflict) else merged.commit

    @property
    def trailers(self) -> dict[str, str]:
        assignment = self.assignment
        return {
            "Holdfast-Run": assignment.run_id or "",
            "Holdfast-Step": assignment.step or assignment.name,
            "Holdfast-Attempt": f"{assignment.task_id}.{assignment.attempt}",
        }

    def complete(self, output: object, commit: NewHead) -> TransitionResult:
        """Report the result with its commit, and wait for the answer."""
        reports = self.ports.store.work.reports
        held = reports.read_token(self.assignment.task_id, self.assignment.token)
        report = AwaitedReport(self.ports.store, self.context)
        return report.tell(
            ReportEntry(reports.complete(held, output, commit=commit), report, last=False)
        )


class AwaitedReport:
    """A report that is sent as any other, and whose answer the step waits for."""

    def __init__(self, store: StorePort, context: AttemptContext) -> None:
        self._store = store
        self._context = context
        self._answer: Future[TransitionResult] = Future()

    def tell(self, entry: ReportEntry) -> TransitionResult:
        self.send(entry)
        return self._answer.result()

    def send(self, entry: ReportEntry) -> None:
        self._store.work.tell(entry, lambda: None)

    def in_time(self) -> bool:
        return not self._context.ended

    def on_answer(self, answer: TransitionResult | BaseException, *, last: bool) -> None:
        del last
        if isinstance(answer, BaseException):
            self._answer.set_exception(answer)
        else:
            self._answer.set_result(answer)


def open_line(
    store: StorePort,
    assignment: Assignment,
    base: str | None = None,
    repository: str | None = None,
    host: str | None = None,
) -> LineState | None:
    """The line of an attempt, None where it needs a base; raises `AttemptEnded` when it is over."""
    opened = store.work.open_line(assignment.task_id, assignment.token, base, repository, host)
    if not opened.answer.ok:
        told = opened.answer.detail or opened.answer.reason
        raise AttemptEnded(f"{assignment.name} may not open its line: {told}")
    return opened.line


@contextmanager
def _fail_in_words() -> Iterator[None]:
    """Fail the step with the words of an error of git: for good where no attempt helps."""
    try:
        yield
    except (RepositoryUnusable, GitMissing, InvalidInput) as error:
        raise StepFailed(str(error), retryable=False) from error
    except GitError as error:
        raise StepFailed(str(error)) from error


def refuse_odd_names(state: LineState) -> None:
    """Fail for ids and hashes that are none: folders and references are named by them."""
    lines, commits = [state.id, state.run_id], [state.base, state.head]
    commits += [] if state.subject is None else [state.subject]
    if state.draft is not None:
        commits += [state.draft.base, state.draft.sha]
    if state.around is not None:
        lines.append(state.around.line)
        commits.append(state.around.sha)
    odd = [each for each in lines if not _ID.fullmatch(each)]
    odd += [each for each in commits if not is_sha(each)]
    if odd:
        raise StepFailed(f"its line of commits has odd names: {odd[0][:60]!r}", retryable=False)


def find_line(
    ports: WorkspacePorts, assignment: Assignment, context: AttemptContext, workspace: Workspace
) -> AttemptLine:
    """The line of an attempt; the first attempt of a run decides where it begins."""
    with _fail_in_words():
        known = open_line(ports.store, assignment)
        # Never the repository that the line names: this one the worker has checked.
        place = open_line_repository(ports.find_git(), workspace.git, filters=workspace.filters)
        if known is None:
            base = place.find_base(workspace.start)
            known = open_line(ports.store, assignment, base, place.text, place.host)
    if known is None:
        raise StepFailed("its line of commits could not be begun", retryable=False)
    refuse_odd_names(known)
    return AttemptLine(
        ports=ports, assignment=assignment, context=context, place=place, state=known
    )


def _tell_nobody(_: str) -> None:
    pass


@dataclass(kw_only=True)
class AttemptWorkspace:
    """The worktree that an attempt works in, and the commit that it began at."""

    line: AttemptLine
    workspace: Workspace
    access: Access
    lent: LentWorktree
    start: str
    # The head that the start comes from.
    base: str
    port: int
    is_new: bool
    scratch: Path
    copied: list[str] = field(default_factory=list)
    # Whether what the attempt left is kept, or may be dropped.
    settled: bool = False
    kept: Draft | None = None
    # Writes a line into the log of the attempt.
    tell: Callable[[str], object] = _tell_nobody

    @property
    def path(self) -> Path:
        return self.lent.path

    @property
    def branch(self) -> str | None:
        """The branch of the attempt; one that changes nothing is at a commit without a branch."""
        return None if self.access == "read" else f"{ATTEMPT_BRANCHES}{self.line.kept_name}"

    @property
    def variables(self) -> Mapping[str, str]:
        named = {
            "HOLDFAST_WORKSPACE": str(self.path),
            "HOLDFAST_COMMIT": self.start,
            "HOLDFAST_PORT": str(self.port),
            "HOLDFAST_SCRATCH": str(self.scratch),
        }
        return named if self.branch is None else named | {"HOLDFAST_BRANCH": self.branch}

    def note_ready(self) -> None:
        """Note that the setup has run, so that the next attempt need not run it."""
        self.lent.note_ready()
        self.is_new = False

    def note_processes_left(self) -> None:
        """Note that processes live on in the worktree, which nobody gets any more."""
        self.lent.note_abandoned()

    def complete(self, output: object) -> object:
        """Commit what the attempt left, and report it with the output; what was reported."""
        self.line.guard()
        if self.access == "read":
            self.settled = True
            self.close()
            return add_commit(output, self.start)
        try:
            left = self._commit()
            self._settle(left.commit)
            # Before the report, by which the next step may begin in this worktree.
            self.close()
            return self._report(output, left)
        except WorkspaceUnusable as error:
            raise StepFailed(str(error)) from error
        except GitError as error:
            raise StepFailed(f"its work could not be committed: {error}") from error

    def _settle(self, commit: str) -> None:
        """Keep a commit, so that nothing in the worktree is needed any more."""
        if commit != self.base:
            self.line.keep(commit)
            self.kept = Draft(base=self.base, sha=commit)
        self.settled = True

    def _commit(self) -> LeftWork:
        left = commit_left_work(self.line.place.repository, *self._describe_work())
        self._tell_left_out(left)
        return left

    def _commit_aside(self) -> str:
        """Commit what is left, also where it can be no result, as on a branch of the agent's."""
        try:
            return self._commit().commit
        except WorkspaceUnusable:
            repository = self.line.place.repository
            return commit_abandoned_work(repository, *self._describe_work()) or self.start

    def _describe_work(self) -> tuple[AttemptWorktree, CommitMessage, CommitRules]:
        attempt = AttemptWorktree(path=self.path, start=self.start, branch=self.branch)
        message = CommitMessage(
            subject=name_work(self.line.assignment), trailers=self.line.trailers
        )
        rules = CommitRules(left_out=self.copied, largest_file=self.workspace.max_file)
        return attempt, message, rules

    def _tell_left_out(self, left: LeftWork) -> None:
        """Say in the log of the attempt what was not committed, and under which name."""
        if left.too_large:
            most = f"above {self.workspace.max_file} bytes (workspace: max_file)"
            self.tell(f"not committed, as too large, {most}: {', '.join(left.too_large)}")
        if left.nested:
            names = ", ".join(left.nested)
            self.tell(f"not committed, as they are repositories of their own: {names}")
        if left.changed and left.identity.assumed:
            missing = "git config --global user.name and user.email are not set"
            self.tell(f"committed as {left.identity.name}, because {missing}")

    def _report(self, output: object, left: LeftWork) -> object:
        commit, line = left.commit, self.line
        if commit == line.state.head:
            return add_commit(output, commit, changed=False)
        self.line.keep_diff("changes", self.start, commit)
        self.line.keep_diff("line", self.line.state.base, commit)
        for _ in range(MOST_MERGES):
            head = Head(line=line.state.id, number=line.state.number, sha=line.state.head)
            made = line.merge(head, commit, f"Merge {line.assignment.name} with what came before")
            if isinstance(made, MergeConflict):
                raise StepFailed(describe_conflict(made, "another step of the run"))
            if made != commit:
                line.keep(made)
            told = add_commit(output, made)
            new = NewHead(line=head.line, number=head.number, base=self.start, sha=made)
            answer = line.complete(told, new)
            if answer.reason != Refusal.HEAD_MOVED:
                self._finish(answer, made)
                return told
            line = line.read_again()
        raise StepFailed(f"its line moved on {MOST_MERGES} times while it was merged")

    def _finish(self, answer: TransitionResult, made: str) -> None:
        if not answer.ok:
            # The report that follows is refused in the same way, and says so in the log.
            return
        if self.line.state.id == self.line.state.run_id:
            try:
                self.line.place.follow(self.line.state.branch, made)
            except GitError as error:
                log.warning("the branch of a run is left where it was: %s", error)

    def leave(self) -> Draft | None:
        """Commit aside what an attempt left that is not done; None where it may not act."""
        assignment = self.line.assignment
        if self.access == "read":
            self.settled = True
            return None
        if not self.line.ports.store.work.guard(assignment.task_id, assignment.token).ok:
            return None
        if not self.settled:
            self._settle(self._commit_aside())
        return self.kept

    def close(self) -> None:
        """Give the worktree back; the branch of the attempt goes, its commits are kept."""
        if not self.settled or self.lent.closed:
            return
        # First: who comes after a crash finds nothing to keep, and removes the branch.
        self.lent.note_settled()
        if self.branch is not None:
            with _told("the branch of an attempt is left"):
                repository = self.line.place.repository
                git_dir = repository.common / "worktrees" / self.path.name
                repository.git.run(
                    *("update-ref", "--no-deref", "HEAD", "HEAD"),
                    place=repository.references_of(git_dir),
                )
                move_reference(repository, ReferenceMove(reference=HEADS + self.branch, new=None))
        self.lent.close()


@contextmanager
def _told(what: str) -> Iterator[None]:
    try:
        yield
    except GitError as error:
        log.warning("%s: %s", what, error)


@contextmanager
def open_workspace(
    line: AttemptLine, workspace: Workspace, access: Access
) -> Iterator[AttemptWorkspace]:
    """The workspace of an attempt for as long as the block runs.

    Where the block is left by an exception, what the attempt left is kept aside, and the context
    of the attempt has it for the report.
    """
    state, ports = line.state, line.ports
    base, start = choose_start(state)
    line.guard()
    with _fail_in_words():
        line.place.bring(state.run_id, start)
        if state.id == state.run_id and state.number:
            line.place.bring(state.run_id, state.head)
            line.place.follow(state.branch, state.head)
    pool = WorktreePool(ports.folder, ports.is_stopped)
    lent = pool.lend(state.id)
    registry = registry_path()
    ports_folder = (ports.state.root if registry is None else registry.parent) / "ports"
    try:
        with hold_ports(ports_folder) as port:
            opened = AttemptWorkspace(
                line=line,
                workspace=workspace,
                access=access,
                lent=lent,
                start=start,
                base=base,
                port=port,
                is_new=True,
                scratch=lent.empty_scratch(),
            )
            with _fail_in_words():
                _bring_worktree(opened)
            try:
                yield opened
            except BaseException:
                line.context.draft = _leave_quietly(opened)
                raise
            finally:
                opened.close()
    finally:
        lent.close()


def choose_start(state: LineState) -> tuple[str, str]:
    """The head that an attempt builds on, and where it begins: a draft, a subject, or the head."""
    if state.draft is not None:
        return state.draft.base, state.draft.sha
    if state.subject is not None:
        return state.subject, state.subject
    return state.head, state.head


def _leave_quietly(opened: AttemptWorkspace) -> Draft | None:
    try:
        return opened.leave()
    except HoldfastError as error:
        log.warning("what an attempt left is not kept: %s", error)
        return None


def _bring_worktree(opened: AttemptWorkspace) -> None:
    """Hand a worktree over from its last attempt, or make a new one, each recorded before it is."""
    lent, repository = opened.lent, opened.line.place.repository
    before = lent.before
    kept = before is None or not lent.path.is_dir() or _keep_what_was_left(opened, before)
    record = _make_record(opened)
    if not (before is not None and before.ready and _hand_over(opened, record)):
        remove_worktree(repository, lent.path)
        lent.write(record)
        add_worktree(repository, lent.path, opened.start, branch=opened.branch)
        opened.is_new = True
    if kept:
        _remove_former_branches(opened, record)
    lent.note_begun()
    opened.copied = copy_files(repository, lent.path, opened.workspace.copy)


def _make_record(opened: AttemptWorkspace) -> WorktreeRecord:
    line, before = opened.line, opened.lent.before
    former = () if before is None else before.branches
    return WorktreeRecord(
        store=line.ports.store_name,
        line=line.state.id,
        run=line.state.run_id,
        repository=line.place.text,
        filters=opened.workspace.filters,
        task=line.assignment.task_id,
        attempt=line.assignment.attempt,
        base=opened.base,
        start=opened.start,
        branches=former if opened.branch is None else (*former, opened.branch),
        on_branch=opened.branch is not None,
        keep=opened.workspace.keep,
        visible=line.state.branch,
        host=line.state.host or "",
    )


def _hand_over(opened: AttemptWorkspace, record: WorktreeRecord) -> bool:
    """Hand a worktree over; False where it is not one any more."""
    lent = opened.lent
    lent.write(replace(record, ready=True))
    try:
        hand_over_worktree(
            opened.line.place.repository, lent.path, opened.start, branch=opened.branch
        )
    except GitError as error:
        log.warning("a worktree is made anew: %s", error)
        return False
    opened.is_new = False
    return True


def _remove_former_branches(opened: AttemptWorkspace, record: WorktreeRecord) -> None:
    """Remove the branches of the attempts that had the worktree before."""
    for branch in record.branches:
        if branch != opened.branch:
            left = ReferenceMove(reference=HEADS + branch, new=None)
            move_reference(opened.line.place.repository, left)
    opened.lent.note_branch(opened.branch)


def _keep_what_was_left(opened: AttemptWorkspace, before: WorktreeRecord) -> bool:
    """Commit aside what a lost attempt left in a worktree; whether nothing of it can be missed."""
    line = opened.line
    if not (before.task and before.on_branch and before.begun):
        return True
    branch = before.branches[-1]
    lost = AttemptWorktree(path=opened.path, start=before.start, branch=branch)
    message = CommitMessage(
        subject=f"Left by attempt {before.attempt} of {before.task}",
        trailers={
            "Holdfast-Run": before.run,
            "Holdfast-Attempt": f"{before.task}.{before.attempt}",
        },
    )
    rules = CommitRules(
        left_out_globs=opened.workspace.copy, largest_file=opened.workspace.max_file
    )
    try:
        left = commit_abandoned_work(line.place.repository, lost, message, rules)
        if left is None:
            return True
        line.place.keep(before.run, f"{before.task}.{before.attempt}", left)
        assignment = line.assignment
        if before.task == assignment.task_id and before.attempt < assignment.attempt:
            line.ports.store.work.keep_aside(
                assignment.task_id,
                assignment.token,
                before.attempt,
                before.base or before.start,
                left,
            )
    except HoldfastError as error:
        log.warning(
            "what attempt %d of %s left is not kept: %s", before.attempt, before.task, error
        )
        return False
    return True


def name_work(assignment: Assignment) -> str:
    """A line for the commit of an attempt: how its prompt begins, or the name of its step."""
    prompt = "" if assignment.work is None else (assignment.work.prompt or "").strip()
    first = prompt.partition("\n")[0].strip().rstrip(".")
    if not first:
        return assignment.name
    return first if len(first) <= LONGEST_SUBJECT else f"{first[: LONGEST_SUBJECT - 1]}…"


def describe_conflict(conflict: MergeConflict, other: str) -> str:
    files = ", ".join(conflict.files)
    return f"its changes and those of {other} conflict in {files}\n\n{conflict.text}"


def add_commit(output: object, commit: str, *, changed: bool | None = None) -> dict[str, Any]:
    """The output of a step with its commit, as an object."""
    given = output if isinstance(output, dict) else {"value": output}
    kept = {name: value for name, value in given.items() if name not in RECORDED}
    return kept | {"commit": commit} | ({"no_changes": True} if changed is False else {})
