"""Secrets: the secrets that a worker has for its steps, and those that workflows name."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from holdfast.errors import InvalidInput
from holdfast.model.task import Assignment
from holdfast.store.database import is_postgresql
from holdfast.worker.secrets.redaction import SHORTEST_SECRET, Redaction, check_secret
from holdfast.worker.store_port import StorePort

SECRETS_VARIABLE = "HOLDFAST_SECRETS"
STORE = "HOLDFAST_DB"
STORE_PASSWORD = f"{STORE}_PASSWORD"
_OPEN_TO_OTHERS = 0o077
_IN_URL = re.compile(r"://([^@/]*:[^@/]*@[^/?]*)|[?&](password=[^&]*)")
KEPT_VERSIONS = 10_000
# In microseconds: a workflow that was created earlier may be committed this much later.
OVERLAP = 60_000_000


class Secrets:
    """Secrets from the file that `HOLDFAST_SECRETS` names, else from the worker's environment.

    Redacted from the start are the secrets in the file, the password of the store, and the worker's
    `own` secrets, which no step gets. A variable of the environment is redacted once a workflow may
    ask for it.
    """

    def __init__(
        self,
        url: str,
        environment: Mapping[str, str] = os.environ,
        own: Mapping[str, str] | None = None,
    ) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        path = environment.get(SECRETS_VARIABLE)
        self._from_file = {} if path is None else _read_file(Path(path))
        self._known = _merge_secrets(
            self._from_file, {**_find_store_password(url, environment), **(own or {})}
        )
        self.redaction = Redaction(self._known)

    def get(self, name: str) -> str:
        """The secret of a name; from now on it is redacted."""
        value = self._find(name)
        if value is None:
            raise InvalidInput(
                f"secret {name}",
                f"this worker does not have it; set it in its environment, or as {name}=… in the "
                f"file that {SECRETS_VARIABLE} names, and retry the step",
            )
        self._add_known({name: value})
        return value

    def is_in_file(self, name: str) -> bool:
        """Whether a secret is in the file of secrets, which every workflow may read."""
        return name in self._from_file

    def expect_secrets(self, names: Iterable[str]) -> None:
        """Redact secrets that may be asked for; a missing one is refused when it is asked for."""
        found = {name: value for name in names if (value := self._find(name)) is not None}
        self._add_known(
            {name: value for name, value in found.items() if len(value) >= SHORTEST_SECRET}
        )

    def _find(self, name: str) -> str | None:
        return self._from_file.get(name, self._environment.get(name))

    def _add_known(self, found: Mapping[str, str]) -> None:
        with self._lock:
            if found.items() <= self._known.items():
                return
            known = _merge_secrets(found, self._known)
            self.redaction = Redaction(known)
            self._known = known

    def make_redaction_with(self, more: Mapping[str, str]) -> Callable[[], Redaction]:
        """A function that gives the redaction of all secrets known at the time, and of `more`."""
        known, redaction = self._known, Redaction(_merge_secrets(self._known, more))

        def current_redaction() -> Redaction:
            nonlocal known, redaction
            if known is not self._known:
                known = self._known
                redaction = Redaction(_merge_secrets(known, more))
            return redaction

        return current_redaction


def _merge_secrets(known: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """The secrets of both mappings; of two values under one name, both are kept."""
    both = dict(known)
    for name, value in more.items():
        free = name
        while both.get(free, value) != value:
            free += "_"
        both[free] = value
    return both


def _find_store_password(url: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The password of a store, and the part of its URL that holds it.

    A short password is only redacted together with the text around it.
    """
    if not is_postgresql(url):
        return {}
    # Imported here, because only a store on PostgreSQL needs the driver.
    from holdfast.store.postgresql.connection import ServerAddress  # noqa: PLC0415

    address = ServerAddress(url)
    found = (
        {STORE: found_in_url[1] or found_in_url[2]} if (found_in_url := _IN_URL.search(url)) else {}
    )
    password = address.password or environment.get("PGPASSWORD", "")
    # A password that equals the name of the user or the database is a common word, and no secret.
    if password not in address.names:
        found[STORE_PASSWORD] = password
    return {name: value for name, value in found.items() if len(value) >= SHORTEST_SECRET}


def _read_file(path: Path) -> dict[str, str]:
    try:
        if path.stat().st_mode & _OPEN_TO_OTHERS:
            reason = f"{path} can be read by others; have it for you alone: chmod 600 {path}"
            raise InvalidInput(SECRETS_VARIABLE, reason)
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(SECRETS_VARIABLE, f"{path} cannot be read: {error}") from error
    secrets = _parse_json(path, text) if text.lstrip().startswith("{") else _parse_lines(path, text)
    for name, value in secrets.items():
        check_secret(name, value)
    return secrets


def _parse_json(path: Path, text: str) -> dict[str, str]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidInput(SECRETS_VARIABLE, f"{path} is not JSON: {error}") from error
    if not all(isinstance(value, str) for value in found.values()):
        raise InvalidInput(SECRETS_VARIABLE, f"{path} must hold a text for each name")
    return dict(found)


def _parse_lines(path: Path, text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, separator, value = line.partition("=")
        if not separator:
            raise InvalidInput(SECRETS_VARIABLE, f"{path}, line {number}: write NAME=value")
        found[name.strip()] = value.strip()
    return found


class WorkflowSecrets:
    """The names of the secrets in workflows; each version never changes, and is read once."""

    def __init__(self, store: StorePort) -> None:
        self._store = store
        self._known: dict[tuple[str, str], frozenset[str]] = {}
        self._all_names: frozenset[str] = frozenset()
        self._read_versions: set[tuple[str, str]] = set()
        self._newest_created_at = 0
        self._lock = store.threads.lock()

    def names_of(self, assignment: Assignment) -> frozenset[str]:
        """The names of all secrets in the workflow of an assignment."""
        workflow, version = assignment.workflow, assignment.workflow_version
        if workflow is None or version is None:
            return frozenset()
        return self._read_names(workflow, version)

    def names_of_all(self) -> frozenset[str]:
        """The names of the secrets in every workflow that the store has now."""
        with self._lock:
            since = max(0, self._newest_created_at - OVERLAP)
            for name, version, created_at in self._store.work.workflows_since(since):
                if (name, version) not in self._read_versions:
                    self._all_names |= self._read_names(name, version)
                    self._read_versions.add((name, version))
                self._newest_created_at = max(self._newest_created_at, created_at)
            return self._all_names

    def _read_names(self, workflow: str, version: str) -> frozenset[str]:
        found = self._known.get((workflow, version))
        if found is None:
            found = self._store.work.secrets_of(workflow, version)
            if len(self._known) >= KEPT_VERSIONS:
                self._known.clear()
            self._known[workflow, version] = found
        return found
