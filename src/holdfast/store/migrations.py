"""Migrations: numbered schema files, each applied once, in order, together with its record."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol, TypeVar

from holdfast.errors import SchemaDamaged, SchemaTooNew
from holdfast.store.sql_text.macros import Dialect

T = TypeVar("T")

DIRECTORY = Path(__file__).parent / "migrations"
TABLE = """
CREATE TABLE IF NOT EXISTS holdfast_migration (
  number integer PRIMARY KEY,
  name text NOT NULL,
  checksum text NOT NULL,
  applied_at bigint NOT NULL
)
"""
APPLIED = "SELECT number, name, checksum FROM holdfast_migration ORDER BY number"

_FILE = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")


@dataclass(frozen=True, kw_only=True)
class Migration:
    number: int
    name: str
    checksum: str
    text: str

    @property
    def file(self) -> str:
        return f"{self.number:04}_{self.name}.sql"


@dataclass(frozen=True, kw_only=True)
class AppliedMigration:
    number: int
    name: str
    checksum: str


class Ledger(Protocol):
    """The record of applied migrations, in a transaction that keeps all others out."""

    def applied(self) -> Sequence[AppliedMigration]: ...

    def apply(self, migration: Migration) -> None:
        """Run the file and write its record."""


class Migrator(Protocol):
    def applied(self) -> Sequence[AppliedMigration]:
        """Read the record without any lock; an empty list when the table does not exist yet."""

    def run_exclusively(self, work: Callable[[Ledger], T]) -> T:
        """Run `work` in one transaction that keeps every other migrator out."""


def load(dialect: Dialect, directory: Path = DIRECTORY) -> Sequence[Migration]:
    return (
        _load_package_migrations(dialect)
        if directory == DIRECTORY
        else _read_directory(directory / dialect)
    )


@cache
def _load_package_migrations(dialect: Dialect) -> Sequence[Migration]:
    """The files are read once: those of the package do not change while a program runs."""
    return _read_directory(DIRECTORY / dialect)


def _read_directory(directory: Path) -> Sequence[Migration]:
    found: list[Migration] = []
    for path in sorted(directory.glob("*.sql")):
        match = _FILE.fullmatch(path.name)
        if match is None or int(match[1]) != len(found) + 1:
            raise ValueError(
                f"{path.name}: migrations are called 0001_name.sql, 0002_…, without gaps"
            )
        text = path.read_text(encoding="utf-8")
        number, name = int(match[1]), match[2]
        found.append(Migration(number=number, name=name, checksum=checksum(text), text=text))
    return tuple(found)


def checksum(text: str) -> str:
    """Digest a text; line endings and trailing blanks do not count, since editors change them."""
    normal = "\n".join(map(str.rstrip, text.strip().splitlines()))
    return hashlib.sha256(normal.encode()).hexdigest()


def upgrade(migrator: Migrator, known: Sequence[Migration]) -> None:
    if not find_pending(known, migrator.applied()):
        return

    def apply_next(ledger: Ledger) -> bool:
        # The record is read again under the lock: another process may have been faster.
        missing = find_pending(known, ledger.applied())
        if missing:
            ledger.apply(missing[0])
        return len(missing) > 1

    while migrator.run_exclusively(apply_next):
        pass


def find_pending(
    known: Sequence[Migration], applied: Sequence[AppliedMigration]
) -> Sequence[Migration]:
    if len(applied) > len(known):
        newest = applied[-1]
        raise SchemaTooNew(
            f"this database has migration {newest.number:04}_{newest.name}, which this version of "
            f"Holdfast does not know (it ends at {len(known):04}); upgrade Holdfast, or point it "
            "at another database"
        )
    for migration, record in zip(known, applied, strict=False):
        if (migration.number, migration.name) != (record.number, record.name):
            found = f"{record.number:04}_{record.name}.sql"
            raise SchemaDamaged(
                f"{migration.file} should have been applied where the database records {found}; "
                "restore the database from a backup, or use the Holdfast that made it"
            )
        if migration.checksum != record.checksum:
            raise SchemaDamaged(
                f"{migration.file} was changed after it had been applied to this database; "
                "reinstall Holdfast, or restore that file and put the change in a new migration"
            )
    return known[len(applied) :]
