"""Merge steps: the line of a run into a branch, or that of an item into the line around it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from holdfast.errors import BranchMoved, CheckoutInTheWay, GitError, InvalidInput
from holdfast.model.result import Refusal
from holdfast.model.workflow.declarations import Merge
from holdfast.model.workflow.line import NewHead
from holdfast.worker.attempt.execution import StepFailed
from holdfast.worker.git.branch_moves import BranchMove, move_branch
from holdfast.worker.git.commits import CommitMessage
from holdfast.worker.git.merges import MergeConflict, WantedMerge, merge_commits
from holdfast.worker.git.repository import (
    HEADS,
    check_branch_name,
    has_commit,
    is_ancestor,
    read_branch,
)
from holdfast.worker.git.shared_clones import fetch_branches, push_commit
from holdfast.worker.workspaces.attempt_workspace import (
    MOST_MERGES,
    AttemptLine,
    add_commit,
    describe_conflict,
)

log = logging.getLogger("holdfast.worker")


class LandingConflict(StepFailed):
    """The line of an item conflicts with the line around it, and begins anew there."""

    anew = True


@dataclass(frozen=True, kw_only=True)
class PlannedMerge:
    """A merge that was recorded before its branch moves: from `old` to `new`."""

    old: str
    new: str
    head: str

    def describe(self) -> dict[str, str]:
        return {"old": self.old, "new": self.new, "head": self.head}


class MergeStep:
    """One attempt of a step that merges."""

    def __init__(self, line: AttemptLine, merge: Merge | None, *, landing: bool) -> None:
        self._line = line
        self._merge = merge or Merge(strategy="leave")
        self._landing = landing

    def run(self) -> dict[str, Any]:
        """Merge, and give the output of the step; a merge that is found done is done."""
        try:
            if self._landing:
                return self._land()
            merge = self._merge
            if merge.into is None or merge.strategy == "leave":
                return self._leave()
            return self._merge_into(
                check_branch_name(self._line.place.repository.git, merge.into), merge
            )
        except (CheckoutInTheWay, InvalidInput) as error:
            raise StepFailed(str(error), retryable=False) from error
        except GitError as error:
            raise StepFailed(str(error)) from error

    def _leave(self) -> dict[str, Any]:
        state = self._line.state
        self._line.place.bring(state.run_id, state.head)
        self._line.guard()
        self._line.place.follow(state.branch, state.head)
        return add_commit({"branch": state.branch}, state.head)

    def _merge_into(self, into: str, merge: Merge) -> dict[str, Any]:
        """Merge the line of the run into a branch; each plan is recorded before the branch moves.

        Where the branch has moved since, the merge is planned again, on top of what is there.
        """
        line, state = self._line, self._line.state
        line.place.bring(state.run_id, state.head)
        for number in range(1, MOST_MERGES):
            recorded = line.context.effect(f"merge {number} into {into}", self._plan, into, merge)
            planned = PlannedMerge(**recorded)
            if self._is_done(into, planned) or self._move(into, planned):
                output = {"branch": state.branch, "into": into, "merged": planned.head}
                return add_commit(output, planned.new, changed=planned.new != planned.old)
        raise StepFailed(f"{into} moved on {MOST_MERGES} times while it was merged into")

    def _plan(self, into: str, merge: Merge) -> dict[str, str]:
        line, state = self._line, self._line.state
        old = self._read_into(into)
        if old is None:
            reason = f"there is no branch {into} in {line.place.text}; make it, and retry"
            raise StepFailed(reason, retryable=False)
        if merge.strategy == "leave":
            return PlannedMerge(old=old, new=old, head=state.head).describe()
        message = CommitMessage(subject=f"Merge {state.branch} into {into}", trailers=line.trailers)
        repository = line.place.repository
        wanted = WantedMerge(
            into=old,
            head=state.head,
            message=message.text,
            strategy=merge.strategy,
            author=repository.identity,
        )
        merged = merge_commits(repository, wanted)
        if isinstance(merged, MergeConflict):
            advice = f"whoever takes this up has to merge the commit {old} of {into} first"
            told = f"{describe_conflict(merged, into)}\n\n{advice}"
            raise StepFailed(told, retryable=False)
        line.keep(merged.commit)
        return PlannedMerge(old=old, new=merged.commit, head=state.head).describe()

    def _read_into(self, into: str) -> str | None:
        place = self._line.place
        if place.url is None:
            return read_branch(place.repository, into)
        reference = HEADS + into
        return fetch_branches(place.repository, place.url, [reference]).get(reference)

    def _is_done(self, into: str, planned: PlannedMerge) -> bool:
        now, repository = self._read_into(into), self._line.place.repository
        if now is None or not has_commit(repository, planned.new):
            return False
        return is_ancestor(repository, planned.new, now)

    def _move(self, into: str, planned: PlannedMerge) -> bool:
        """Move the branch, and its clean checkout; gives False where it is elsewhere by now."""
        line = self._line
        if self._read_into(into) != planned.old:
            return False
        line.place.bring(line.state.run_id, planned.new)
        line.guard()
        try:
            if line.place.url is None:
                move = BranchMove(branch=into, old=planned.old, new=planned.new)
                move_branch(line.place.repository, move)
            else:
                push_commit(
                    line.place.repository,
                    line.place.url,
                    planned.new,
                    HEADS + into,
                    old=planned.old,
                )
        except BranchMoved as error:
            log.info("%s is merged again: %s", line.assignment.name, error)
            return False
        return True

    def _land(self) -> dict[str, Any]:
        """Bring the line of an item into the line around it, which may move on meanwhile."""
        line = self._line
        for _ in range(MOST_MERGES):
            state, around = line.state, line.state.around
            if around is None:
                raise StepFailed("its item has no line of its own to land", retryable=False)
            line.place.bring(state.run_id, state.head)
            line.place.bring(state.run_id, around.sha)
            if is_ancestor(line.place.repository, state.head, around.sha):
                return add_commit({}, around.sha, changed=False)
            made = line.merge(around, state.head, f"Merge {line.assignment.name}")
            if isinstance(made, MergeConflict):
                told = describe_conflict(made, "what was merged before it")
                former = f"its work so far is the commit {state.head}"
                raise LandingConflict(f"{told}\n\n{former}", retryable=False)
            line.guard()
            line.keep(made)
            line.keep_diff("changes", around.sha, made)
            line.keep_diff("line", state.around_base or around.sha, made)
            output = add_commit({}, made)
            new = NewHead(line=around.line, number=around.number, base=around.sha, sha=made)
            answer = line.complete(output, new)
            if answer.reason != Refusal.HEAD_MOVED:
                if answer.ok and around.line == state.run_id:
                    line.place.follow(state.branch, made)
                return output
            line = line.read_again()
        raise StepFailed(f"the line around it moved on {MOST_MERGES} times while it was merged")
