"""Branch moves: a branch follows to a newer commit, and a clean checkout of it moves along.

A checkout is moved under the lock of its index, which is made as a second name of a file of ours:
so it is known whose it is, even after this process was killed. Files move first, then the index,
then the branch. What a killed process left is finished only if each file that differs between the
two commits is as in one of them; else nothing is touched, and the checkout is named.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.errors import (
    BranchMoved,
    CheckoutInTheWay,
    GitError,
    GitFailed,
    RepositoryLocked,
)
from holdfast.worker.git.git_command import GitPlace
from holdfast.worker.git.references import ReferenceMove, move_reference
from holdfast.worker.git.repository import (
    HEADS,
    Checkout,
    Repository,
    find_named_branch,
    list_checkouts,
    list_foreign_filters,
    read_branch,
)
from holdfast.worker.git.unfinished_work import (
    UnfinishedWork,
    dead_work,
    record_work,
    remove_dead_locks,
)
from holdfast.worker.git.worktrees import OPERATIONS

_KIND = "branch move"
_NO_BLOB = "0" * 40
_GITLINK = "160000"


@dataclass(frozen=True, kw_only=True)
class BranchMove:
    """A branch on its way from one commit to a newer one."""

    branch: str
    old: str
    new: str

    @property
    def reason(self) -> str:
        return f"holdfast: merge into {self.branch}"


def move_branch(repository: Repository, move: BranchMove) -> None:
    """Move a branch, and the clean checkout of it; idempotent.

    Raises `BranchMoved` where the branch is at neither commit, and `CheckoutInTheWay` where a
    checkout of the branch has changes, or files that the move would overwrite.
    """
    move = replace(move, branch=find_named_branch(repository, move.branch))
    found = read_branch(repository, move.branch)
    if found == move.new:
        return
    if found != move.old:
        raise BranchMoved(move.branch, move.old, found)
    held = [each for each in list_checkouts(repository) if each.branch == move.branch]
    if not held:
        reference = HEADS + move.branch
        moved = ReferenceMove(reference=reference, new=move.new, old=move.old, reason=move.reason)
        move_reference(repository, moved)
        return
    if len(held) > 1:
        places = ", ".join(str(each.path) for each in held)
        raise CheckoutInTheWay(places, move.branch, "in more than one place", [])
    _move_checkout(repository, held[0], move)


def _move_checkout(repository: Repository, checkout: Checkout, move: BranchMove) -> None:
    _refuse_operation(checkout, move)
    _refuse_sparse(repository, checkout, move)
    _refuse_filters(repository, checkout, move)
    facts = {
        "kind": _KIND,
        "checkout": str(checkout.path),
        "git_dir": str(checkout.git_dir),
        "branch": move.branch,
        "old": move.old,
        "new": move.new,
    }
    locks = [
        (repository.common / f"{HEADS}{move.branch}.lock", move.new),
        (checkout.git_dir / "HEAD.lock", move.new),
    ]
    index = checkout.git_dir / "index"
    with (
        record_work(repository.git, repository.common, locks, **facts) as work,
        _lock_index(index, _mark_of(index, work)) as fresh,
    ):
        place = repository.content_of(checkout.path, fresh).holding(work.descriptor)
        _refuse_changes(repository, checkout, place, move)
        _update_files(repository, checkout, place, move, work)
        # The index is replaced under its lock, as git replaces it by renaming its lock.
        fresh.replace(index)
        try:
            _move_checked_out_branch(repository, checkout, move, work)
        except BaseException:
            _take_back(repository, checkout, index, move)
            raise


@contextmanager
def _lock_index(index: Path, mark: Path) -> Iterator[Path]:
    """A copy of an index to work with, while its lock keeps every other git out."""
    lock = index.with_name("index.lock")
    mark.write_bytes(b"")
    try:
        try:
            os.link(mark, lock)
        except FileExistsError:
            raise RepositoryLocked(lock) from None
        fresh = mark.with_suffix(".copy")
        try:
            shutil.copyfile(index, fresh)
            yield fresh
        finally:
            fresh.unlink(missing_ok=True)
            lock.unlink(missing_ok=True)
    finally:
        mark.unlink(missing_ok=True)


def _mark_of(index: Path, work: UnfinishedWork) -> Path:
    """The file whose second name is the lock of an index, as long as some work is unfinished."""
    return index.with_name(f"holdfast-{work.path.stem}")


def _refuse_operation(checkout: Checkout, move: BranchMove) -> None:
    for name, operation in OPERATIONS.items():
        if (checkout.git_dir / name).exists():
            raise CheckoutInTheWay(
                checkout.path, move.branch, f"in the middle of a {operation}", []
            )


def _refuse_sparse(repository: Repository, checkout: Checkout, move: BranchMove) -> None:
    sparse = any(
        key == "core.sparsecheckout" and value.lower() == "true"
        for _, key, value in repository.settings
    )
    split = any(checkout.git_dir.glob("sharedindex.*"))
    if sparse or split:
        kind = "a sparse checkout" if sparse else "a checkout with a split index"
        raise CheckoutInTheWay(checkout.path, move.branch, f"which is {kind}", [])


def _refuse_filters(repository: Repository, checkout: Checkout, move: BranchMove) -> None:
    """Refuse to write files in their stored form where the user's git would filter them."""
    names = [name for name, each in _list_differences(repository, move).items() if each.new]
    known = list_foreign_filters(repository)
    if not known or not names:
        return
    place = repository.content_of(checkout.path, checkout.git_dir / "index").reading()
    given = b"".join(os.fsencode(name) + b"\0" for name in names)
    asked = ("check-attr", "-z", "--stdin", "filter")
    told = repository.git.run(*asked, place=place, given=given).names
    filtered = [name for name, value in zip(told[::3], told[2::3], strict=False) if value in known]
    if filtered:
        reason = (
            "where a filter of git, which Holdfast does not run (those of your own settings run "
            "with filters: true), writes"
        )
        raise CheckoutInTheWay(checkout.path, move.branch, reason, filtered)


def _refuse_changes(
    repository: Repository, checkout: Checkout, place: GitPlace, move: BranchMove
) -> None:
    git = repository.git
    git.ask("update-index", "-q", "--refresh", place=place)
    asked = ("diff-index", "-z", "--name-only", "--ignore-submodules=dirty", move.old)
    changed = git.run(*asked, place=place).names
    # A file that is staged, and changed back since, differs in the index alone.
    staged = git.run(*asked[:1], "--cached", *asked[1:], place=place).names
    names = sorted({*changed, *staged})
    if names:
        raise CheckoutInTheWay(checkout.path, move.branch, "with changes in", names)


def _update_files(
    repository: Repository,
    checkout: Checkout,
    place: GitPlace,
    move: BranchMove,
    work: UnfinishedWork,
) -> None:
    """Bring files and the copy of the index to the new commit, or refuse before anything moved."""
    names = _find_files_in_the_way(repository, checkout, move)
    if names:
        reason = "with files that git does not track where the move would write"
        raise CheckoutInTheWay(checkout.path, move.branch, reason, names)
    words = ("read-tree", "-m", "-u")
    try:
        repository.git.run(*words, "-n", move.old, move.new, place=place)
    except GitFailed as error:
        reason = f"which cannot move along ({error.reason})"
        raise CheckoutInTheWay(checkout.path, move.branch, reason, []) from error
    try:
        repository.git.run(*words, move.old, move.new, place=place)
    except BaseException:
        # A full disk, perhaps: what moved goes back.
        _restore_files(repository, checkout, move, towards="old", held=work.descriptor)
        raise


def _find_files_in_the_way(
    repository: Repository, checkout: Checkout, move: BranchMove
) -> list[str]:
    """The files that git does not track where the move would write, ignored ones too."""
    differences = _list_differences(repository, move)
    leaving = {name for name, each in differences.items() if not each.new}
    found: set[str] = set()
    for name, each in differences.items():
        if not each.old:
            found.update(_list_obstacles(checkout.path, name, leaving))
    return sorted(found)


def _list_obstacles(folder: Path, name: str, leaving: set[str]) -> Iterator[str]:
    """The files at, above and below a path that a move is about to add."""
    above = ["/".join(name.split("/")[:count]) for count in range(1, name.count("/") + 2)]
    for each in above:
        path = folder / each
        if os.path.lexists(path) and (path.is_symlink() or not path.is_dir()):
            if each not in leaving:
                yield each
            return
    for below, folders, files in os.walk(folder / name):
        links = [each for each in folders if Path(below, each).is_symlink()]
        paths = [os.path.relpath(Path(below, each), folder) for each in (*files, *links)]
        yield from (path for path in paths if path not in leaving)


def _move_checked_out_branch(
    repository: Repository, checkout: Checkout, move: BranchMove, work: UnfinishedWork
) -> None:
    place = repository.references_of(checkout.git_dir).holding(work.descriptor)
    reference = HEADS + move.branch
    try:
        repository.git.run(
            "update-ref", "-m", move.reason, reference, move.new, move.old, place=place
        )
    except GitFailed as error:
        found = read_branch(repository, move.branch)
        if found == move.new:
            return
        if found != move.old:
            raise BranchMoved(move.branch, move.old, found) from error
        raise


def _take_back(repository: Repository, checkout: Checkout, index: Path, move: BranchMove) -> None:
    """Bring a checkout back to where its branch still is."""
    fresh = index.with_name(f"{index.name}-holdfast-back")
    shutil.copyfile(index, fresh)
    try:
        place = repository.content_of(checkout.path, fresh)
        repository.git.run("read-tree", "-m", "-u", move.new, move.old, place=place)
        fresh.replace(index)
    finally:
        fresh.unlink(missing_ok=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Difference:
    """The blobs of a path in two commits; empty where a commit does not have the path."""

    old: str
    new: str
    submodule: bool


def _list_differences(repository: Repository, move: BranchMove) -> dict[str, _Difference]:
    asked = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", move.old, move.new)
    parts = repository.git.run(*asked, place=repository.objects.reading()).names
    found = {}
    for facts, name in zip(parts[::2], parts[1::2], strict=True):
        old_mode, new_mode, old, new, _ = facts.removeprefix(":").split(" ")
        found[name] = _Difference(
            old="" if set(old) == {"0"} else old,
            new="" if set(new) == {"0"} else new,
            submodule=_GITLINK in {old_mode, new_mode},
        )
    return found


def finish_branch_moves(repository: Repository) -> list[GitError]:
    """Finish the moves of killed processes; what could not be finished, each told in words."""
    told: list[GitError] = []
    with dead_work(repository.git, repository.common) as dead:
        for work in dead:
            if work.facts["kind"] == _KIND:
                try:
                    _finish(repository, work)
                except GitError as error:
                    told.append(error)
                work.path.unlink(missing_ok=True)
    return told


def _finish(repository: Repository, work: UnfinishedWork) -> None:
    facts = work.facts
    move = BranchMove(branch=facts["branch"], old=facts["old"], new=facts["new"])
    checkout = Checkout(
        path=Path(facts["checkout"]),
        git_dir=Path(facts["git_dir"]),
        branch=move.branch,
        head=move.old,
    )
    index = checkout.git_dir / "index"
    mark, lock = _mark_of(index, work), index.with_name("index.lock")
    remove_dead_locks(work)
    copies = [mark.with_suffix(".copy"), Path(f"{index}-holdfast-back")]
    try:
        if not (mark.exists() and lock.exists() and mark.samefile(lock)):
            # It died before it had the lock or after it was done: no file was half moved.
            return
        found = read_branch(repository, move.branch)
        if found == move.new:
            # The branch moves last.
            return
        if found != move.old:
            raise BranchMoved(move.branch, move.old, found)
        _restore_files(repository, checkout, move, towards="new")
        try:
            _move_checked_out_branch(repository, checkout, move, work)
        except GitError:
            _take_back(repository, checkout, index, move)
            raise
    finally:
        for each in (*copies, *(Path(f"{copy}.lock") for copy in copies)):
            each.unlink(missing_ok=True)
        with suppress(OSError):
            if mark.samefile(lock):
                lock.unlink()
        mark.unlink(missing_ok=True)


def _restore_files(
    repository: Repository,
    checkout: Checkout,
    move: BranchMove,
    *,
    towards: str,
    held: int | None = None,
) -> None:
    """Write the files that differ between two commits as they are in one; and the index, if new.

    Raises `CheckoutInTheWay` where one of them holds something else, and then touches nothing.
    """
    differences = _list_differences(repository, move)
    index = checkout.git_dir / "index"
    fresh = index.with_name(f"{index.name}-holdfast-back")
    shutil.copyfile(index, fresh)
    place = repository.content_of(checkout.path, fresh)
    place = place if held is None else place.holding(held)
    git = repository.git
    try:
        other = _find_other_content(repository, checkout, place, differences)
        if other:
            reason = "where a killed merge had begun to move files, and these hold something else"
            raise CheckoutInTheWay(checkout.path, move.branch, reason, other)
        commit = move.new if towards == "new" else move.old
        staged = git.run("diff-index", "-z", "--cached", "--name-only", commit, place=place).names
        unexpected = sorted(set(staged) - differences.keys())
        if unexpected:
            reason = "where a killed merge had begun to move files, with changes in"
            raise CheckoutInTheWay(checkout.path, move.branch, reason, unexpected)
        git.run("read-tree", "-i", "-m", commit, place=place)
        _write_files(repository, checkout, place, differences, towards)
        git.ask("update-index", "-q", "--refresh", place=place)
        fresh.replace(index)
    finally:
        fresh.unlink(missing_ok=True)


def _write_files(
    repository: Repository,
    checkout: Checkout,
    place: GitPlace,
    differences: dict[str, _Difference],
    towards: str,
) -> None:
    files = {name: each for name, each in differences.items() if not each.submodule}
    wanted = {name: each.new if towards == "new" else each.old for name, each in files.items()}
    # Folders that become files, and files that become folders, first lose what they were.
    for name in sorted((name for name, blob in wanted.items() if not blob), reverse=True):
        _remove_file(checkout.path, name)
    written = b"".join(os.fsencode(name) + b"\0" for name, blob in wanted.items() if blob)
    if written:
        asked = ("checkout-index", "-f", "-u", "-q", "-z", "--stdin")
        repository.git.run(*asked, place=place, given=written)


def _remove_file(folder: Path, name: str) -> None:
    path = folder / name
    with suppress(OSError):
        path.unlink()
    for parent in path.parents:
        if parent == folder:
            return
        try:
            parent.rmdir()
        except OSError:
            return


def _find_other_content(
    repository: Repository,
    checkout: Checkout,
    place: GitPlace,
    differences: dict[str, _Difference],
) -> list[str]:
    """The paths that hold neither what the old nor what the new commit has there, nor a part."""
    other = []
    for name, each in differences.items():
        path = checkout.path / name
        if each.submodule:
            continue
        found = _hash_file(repository, place, path, name)
        blobs = {each.old, each.new}
        if found not in blobs and not _is_half_written(repository, place, path, name, blobs):
            other.append(name)
    return other


def _is_half_written(
    repository: Repository, place: GitPlace, path: Path, name: str, blobs: set[str]
) -> bool:
    """Whether a file is how a blob begins: git was killed while it wrote, or the disk was full."""
    if path.is_symlink() or not path.is_file():
        return False
    written = path.read_bytes()
    asked = ("cat-file", "--filters", f"--path={name}")
    return any(
        repository.git.ask(*asked, blob, place=place, limit=len(written)).output == written
        for blob in blobs - {""}
    )


def _hash_file(repository: Repository, place: GitPlace, path: Path, name: str) -> str | None:
    """The blob that a file would be; empty for no file, None for what can be no file of git."""
    if path.is_symlink():
        given = os.fsencode(os.readlink(path))  # noqa: PTH115 - as bytes, which Path cannot give
        return repository.git.run("hash-object", "--stdin", place=place, given=given).text
    if path.is_file():
        asked = ("hash-object", "--path", name, "--stdin")
        return repository.git.run(*asked, place=place, given=path.read_bytes()).text
    if path.is_dir():
        # A folder where a file was, or will be: its files are looked at one by one.
        return ""
    return "" if not os.path.lexists(path) else None
