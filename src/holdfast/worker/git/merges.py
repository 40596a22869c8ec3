"""Merges: two lines of commits brought together in the object store, without any checkout.

The commits are made from nothing but the two heads, with the date of the merged one: whoever makes
them again, after a crash or on another machine with the same author, makes the same commits.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from holdfast.errors import RepositoryUnusable
from holdfast.worker.git.commits import (
    CommitParts,
    make_authored_commit,
    make_commit,
    name_person,
)
from holdfast.worker.git.git_command import GitPlace
from holdfast.worker.git.repository import (
    OWN_IDENTITY,
    Identity,
    Repository,
    is_ancestor,
    read_tree_id,
)

MergeStrategy = Literal["merge", "squash", "rebase"]
CONFLICT_BYTES = 16 * 1024
_BLOB_BYTES = 1024 * 1024
_HUNK = re.compile(r"^<<<<<<<.*?^>>>>>>>[^\n]*\n?", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Merged:
    """The commit that holds both lines; `already` where one of them held the other before."""

    commit: str
    already: bool = False


@dataclass(frozen=True, kw_only=True)
class MergeConflict:
    """The files on which two lines disagree, and how, as text of a bounded size."""

    files: tuple[str, ...]
    text: str


@dataclass(frozen=True, kw_only=True)
class WantedMerge:
    """A merge of the line of `head` into that of `into`; `message` is for a merge or a squash."""

    into: str
    head: str
    message: str
    strategy: MergeStrategy = "merge"
    author: Identity = OWN_IDENTITY


def merge_commits(repository: Repository, wanted: WantedMerge) -> Merged | MergeConflict:
    """The commit that brings one line into another, or the conflict between the two."""
    into, head, author = wanted.into, wanted.head, wanted.author
    if is_ancestor(repository, head, into):
        return Merged(commit=into, already=True)
    if wanted.strategy == "rebase":
        return _rebase(repository, into, head, author)
    with merge_place(repository, into) as place:
        tree = merge_trees(repository, place, into, head)
    if isinstance(tree, MergeConflict):
        return tree
    if wanted.strategy == "squash" and tree == read_tree_id(repository, into):
        return Merged(commit=into, already=True)
    parents = [into, head] if wanted.strategy == "merge" else [into]
    date = _read_fields(repository, head, "%cd")[0]
    parts = CommitParts(tree=tree, parents=parents, message=wanted.message)
    commit = make_commit(repository, parts, author, date=date)
    return Merged(commit=commit)


def _rebase(
    repository: Repository, into: str, head: str, author: Identity
) -> Merged | MergeConflict:
    """Make the commits of a line again, one by one, on top of another; empty ones are left out."""
    listed = ("rev-list", "--reverse", "--topo-order", "--no-merges", f"{into}..{head}")
    commits = repository.git.run(*listed, place=repository.objects.reading()).text.split()
    merges = ("rev-list", "--merges", "--count", f"{into}..{head}")
    has_merges = repository.git.run(*merges, place=repository.objects.reading()).text != "0"
    if is_ancestor(repository, into, head) and not has_merges:
        return Merged(commit=head)
    top = into
    for commit in commits:
        with merge_place(repository, top) as place:
            picked = _pick(repository, place, top, commit)
        if isinstance(picked, MergeConflict):
            return picked
        if picked != read_tree_id(repository, top):
            top = _remake_commit(repository, commit, picked, top, author)
    return Merged(commit=top, already=top == into)


def _pick(repository: Repository, place: GitPlace, top: str, commit: str) -> str | MergeConflict:
    """The tree of one commit's change on top of another commit.

    Before git 2.40 `merge-tree` takes no base: commits made for it have the base as their parent.
    """
    parents = _read_fields(repository, commit, "%P")[0].split()
    base_tree = read_tree_id(repository, parents[0]) if parents else _empty_tree(repository)
    date = "@0 +0000"

    def make(tree: str, above: list[str]) -> str:
        parts = CommitParts(tree=tree, parents=above, message="Base of a pick\n")
        return make_commit(repository, parts, OWN_IDENTITY, date=date)

    base = make(base_tree, [])
    ours = make(read_tree_id(repository, top), [base])
    theirs = make(read_tree_id(repository, commit), [base])
    return merge_trees(repository, place, ours, theirs)


def _empty_tree(repository: Repository) -> str:
    return repository.git.run("mktree", place=repository.objects, given=b"").text


def _remake_commit(
    repository: Repository, commit: str, tree: str, parent: str, committer: Identity
) -> str:
    name, email, written, committed = _read_fields(repository, commit, "%an%x00%ae%x00%ad%x00%cd")
    author = Identity(name=name or committer.name, email=email)
    people = name_person("AUTHOR", author, written)
    people |= name_person("COMMITTER", committer, committed)
    message = _read_fields(repository, commit, "%B")[0].rstrip("\n") + "\n"
    parts = CommitParts(tree=tree, parents=[parent], message=message)
    return make_authored_commit(repository, parts, people)


def _read_fields(repository: Repository, commit: str, fields: str) -> list[str]:
    asked = ("log", "-1", "--no-show-signature", "--date=raw", f"--format={fields}")
    place = repository.objects.reading()
    told = repository.git.run(*asked, "--end-of-options", commit, place=place).text
    fixed = told.split("\0")
    # A date without @ is taken for a year where it is short.
    return [f"@{each}" if re.fullmatch(r"\d+ [+-]\d{4}", each) else each for each in fixed]


@contextmanager
def merge_place(repository: Repository, commit: str) -> Iterator[GitPlace]:
    """An empty worktree with the attributes of a commit, by which files may ask to be merged."""
    with tempfile.TemporaryDirectory(prefix="merge-", dir=repository.git.home) as name:
        folder = Path(name)
        asked = ("ls-tree", "-r", "-z", "--full-tree", commit)
        entries = repository.git.run(*asked, place=repository.objects.reading()).names
        for entry in entries:
            facts, _, path = entry.partition("\t")
            mode, _, blob = facts.split(" ")
            parts = Path(path).parts
            if parts[-1:] == (".gitattributes",) and mode.startswith("100"):
                target = folder.joinpath(*parts)
                if not target.is_relative_to(folder) or ".." in parts:
                    # A tree that was made by hand may hold any name.
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(_read_blob(repository, blob))
        yield repository.content_of(folder, folder / "no-index")


def _read_blob(repository: Repository, name: str) -> bytes:
    place = repository.objects.reading()
    return repository.git.ask("cat-file", "blob", name, place=place, limit=_BLOB_BYTES).output


def merge_trees(
    repository: Repository, place: GitPlace, ours: str, theirs: str
) -> str | MergeConflict:
    """The tree of two commits together, or their conflict."""
    asked = ("merge-tree", "--write-tree", "-z", "--name-only", "--messages")
    answer = repository.git.ask(*asked, "--allow-unrelated-histories", ours, theirs, place=place)
    parts = os.fsdecode(answer.output).split("\0")
    tree = parts[0].strip()
    if not tree:
        raise RepositoryUnusable(repository.path, f"cannot be merged: {answer.error}")
    if answer.code == 0:
        return tree
    end = parts.index("", 1) if "" in parts[1:] else len(parts)
    files = tuple(dict.fromkeys(parts[1:end]))
    return MergeConflict(files=files, text=_describe(repository, tree, files, parts[end + 1 :]))


def _describe(
    repository: Repository, tree: str, files: tuple[str, ...], messages: list[str]
) -> str:
    """The hunks of a conflict, after the messages of git for what has no hunks."""
    lines = [text.strip() for text in _read_messages(messages) if text.startswith("CONFLICT")]
    for name in files:
        content = _read_blob(repository, f"{tree}:{name}").decode("utf-8", "replace")
        hunks = _HUNK.findall(content)
        if hunks:
            lines += [f"--- {name}", "".join(hunks).rstrip("\n")]
    text = "\n".join(lines)
    if len(text) <= CONFLICT_BYTES:
        return text
    return text[:CONFLICT_BYTES] + "\n… the rest is left out"


def _read_messages(parts: list[str]) -> Iterator[str]:
    """The texts of messages: each is a count, so many paths, a kind and a text."""
    at = 0
    while at < len(parts) and parts[at].isdigit():
        at += int(parts[at]) + 2
        if at < len(parts):
            yield parts[at]
        at += 1
