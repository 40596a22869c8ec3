"""Tokens: access to the server of a store; the token of the project is kept in a file."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import InvalidInput, KeyConflict
from holdfast.model.token import AccessToken, Role, digest_secret
from holdfast.service.admin.browser_links import BrowserLinks
from holdfast.service.queries.shapes import ExampleOf, Shape, field
from holdfast.service.queries.views import View, time
from holdfast.worker.files.homes import make_private_directory
from holdfast.worker.files.state_directory import find_state_directory
from holdfast.worker.files.state_paths import open_private, read_private

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine

FILE = "token"
PREFIX = "hf_"
_SECRET_BYTES = 32
TOKEN = Shape(
    field("name", kind=str, example="ci"),
    field("role", "role.value", kind=str, example="worker"),
    field(
        "agents",
        lambda access: None if access.agents is None else list(access.agents),
        example=["builder"],
    ),
    time("created_at", example=ExampleOf.TIME),
    time("expires_at"),
    time("revoked_at"),
)


def token_path(url: str) -> Path:
    """The path of the file with the token of the project that the store belongs to."""
    return find_state_directory(url).root / FILE


def read_token(url: str) -> str | None:
    """The token in the file of this project; None where there is none."""
    path = token_path(url)
    try:
        text = read_private(path, path.parent).decode("ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    except OSError as error:
        reason = f"{path} cannot be read: {error.strerror}"
        raise InvalidInput("token", reason) from error
    return text or None


class Tokens:
    """The tokens of the server of a store: created, revoked, listed and found."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def ensure_own(self) -> str:
        """The admin token of this project; it is created where there is no valid one."""
        url = self._engine.settings.url
        secret = read_token(url) or _write_token(token_path(url), self._make_secret())
        if self._accepts_own(secret):
            return secret
        # The token in the file was revoked or has expired.
        token_path(url).unlink(missing_ok=True)
        secret = _write_token(token_path(url), self._make_secret())
        self._accepts_own(secret)
        return secret

    def link_own(self) -> View:
        """Create a link that lets one browser in as the admin of this project."""
        return BrowserLinks(self._engine).create_link(_name_of_own_token(self.ensure_own()))

    def create(
        self,
        name: str,
        *,
        role: str,
        agents: Sequence[str] | None = None,
        expires: float | str | None = None,
    ) -> View:
        """Create a token, and return its rights with its secret, which is shown only here."""
        secret = self._make_secret()
        made = self._engine.access.grant(name, secret, role=role, agents=agents, expires=expires)
        if made is None:
            advice = f"a token that is good; `holdfast token revoke {name}` ends that one"
            raise KeyConflict(name, name, advice, kind="name")
        return {**view_access(made), "token": secret}

    def revoke(self, name: str) -> View:
        return view_access(self._engine.access.revoke(name))

    def list(self) -> View:
        return {"items": [view_access(each) for each in self._engine.access.list()]}

    def find(self, secret: str) -> AccessToken | None:
        """The token with this secret, as the store has it now; None if it is not valid."""
        return self._engine.access.find(secret)

    def good_digests(self) -> frozenset[str]:
        """The digests of every valid secret: of tokens, of links and of sessions of browsers."""
        return self._engine.access.good_digests()

    def good_among(self, digests: Sequence[str]) -> frozenset[str]:
        """Those of some digests whose token or session is valid."""
        return self._engine.access.good_among(digests)

    def on_grant(self, callback: Callable[[Sequence[str]], None]) -> Callable[[], None]:
        """Call back with tokens that this process grants or revokes; returns how to stop that."""
        return self._engine.on_grant(callback)

    def _make_secret(self) -> str:
        raw = self._engine.randomness.token_bytes(_SECRET_BYTES)
        return PREFIX + base64.urlsafe_b64encode(raw).decode().rstrip("=")

    def _accepts_own(self, secret: str) -> bool:
        """Grant the secret as an admin token if its name is new; whether it is valid then."""
        access = self._engine.access
        name = _name_of_own_token(secret)
        if access.find(secret) is None and name not in {each.name for each in access.list()}:
            access.grant(name, secret, role=Role.ADMIN)
        return access.find(secret) is not None


def _name_of_own_token(secret: str) -> str:
    return f"admin-{digest_secret(secret)[:8]}"


def view_access(access: AccessToken) -> View:
    return TOKEN.view(access)


def _write_token(path: Path, secret: str) -> str:
    """Write a token to a file for its owner alone; returns the token of the first who wrote it."""
    aside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        make_private_directory(path.parent)
        aside.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(open_private(aside, flags, path.parent), "w") as file:
            file.write(f"{secret}\n")
        try:
            os.link(aside, path)
        finally:
            aside.unlink()
    except FileExistsError:
        return read_private(path, path.parent).decode("ascii").strip()
    except OSError as error:
        raise InvalidInput("token", f"{path} cannot be written: {error.strerror}") from error
    return secret
