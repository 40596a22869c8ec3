"""A server in this process, on a port of its own, and clients with tokens of each role."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from holdfast import Holdfast
from holdfast.engine.engine import engine_of
from holdfast.server.application import Application
from holdfast.server.gate import GateRules
from holdfast.server.http_server import HttpServer
from holdfast.server.listen_address import ListenAddress
from holdfast.service.admin.tokens import Tokens
from holdfast.service.project.project import StoreLocation
from holdfast.service.service import Service

ROLES = ("viewer", "operator", "worker", "admin")
API = "/api/v1"
# Made once: to make one for each client takes longer than a test.
PLAIN = ssl.create_default_context()


class Served:
    """What a test talks to: `served("operator").post(…)`."""

    def __init__(
        self,
        hf: Holdfast,
        server: HttpServer,
        application: Application,
        tokens: dict[str, str] | None = None,
    ) -> None:
        self.hf = hf
        self.url = server.url
        self.drain = server.stop
        self.home = application.server_state.service.location.home
        self.application = application
        self.tokens = tokens or _make_tokens(hf)
        self._clients = {role: self.client(token) for role, token in self.tokens.items()}

        self.stranger = httpx.Client(base_url=self.url, timeout=30, verify=PLAIN)

    def __call__(self, role: str = "admin") -> httpx.Client:
        return self._clients[role]

    def client(self, token: str | None, **headers: str) -> httpx.Client:
        own = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(
            base_url=self.url + API, headers={**own, **headers}, timeout=30, verify=PLAIN
        )

    def add(self, title: str = "a task", **fields: Any) -> dict[str, Any]:
        made = self("operator").post("/tasks", json={"title": title, **fields})
        assert made.status_code == 201, made.text
        return dict(made.json())

    def claim(self, worker: str = "w", **fields: Any) -> list[dict[str, Any]]:
        got = self("worker").post("/claims", json={"worker": worker, **fields})
        assert got.status_code == 200, got.text
        return list(got.json()["assignments"])

    def close(self) -> None:
        for client in (self.stranger, *self._clients.values()):
            client.close()


def _make_tokens(hf: Holdfast) -> dict[str, str]:
    tokens = Tokens(engine_of(hf))
    return {role: tokens.create(role, role=role)["token"] for role in ROLES}


@contextmanager
def served(
    url: str,
    folder: Path,
    tokens: dict[str, str] | None = None,
    rules: GateRules | None = None,
    **settings: Any,
) -> Iterator[Served]:
    """A server on a store; at the end it drains, and the doctor finds nothing."""
    with Holdfast(url, **settings) as hf:
        place = StoreLocation(url=url, home=folder, may_be_created=True)
        application = Application(Service(place, engine_of(hf)), rules)
        server = HttpServer(application, ListenAddress(port=0))
        thread = threading.Thread(target=server.run)
        thread.start()
        made = Served(hf, server, application, tokens)
        try:
            yield made
        finally:
            made.close()
            server.stop()
            thread.join(30)
        assert not thread.is_alive()
        diagnosis = hf.doctor()
        assert diagnosis.ok, str(diagnosis)
