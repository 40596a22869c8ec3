"""`open` and the token of a store: it goes to no server that nobody named."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from holdfast.engine.engine import Engine
from holdfast.service.admin.browser_links import BrowserLinks
from holdfast.service.admin.tokens import Tokens
from holdfast.service.project.server_address import announce_server
from tests.contract.cli.command_line import Typed, logs_as_before
from tests.contract.http_service import Reply, Service, service

LINK = Reply(body=b'{"path": "/enter?code=x", "expires_at": "2100-01-01T00:00:00Z"}')


@pytest.fixture
def url(store_url: str) -> str:
    return store_url


@pytest.fixture
def own(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> str:
    """The admin's token of the store, with none in the environment."""
    monkeypatch.delenv("HOLDFAST_TOKEN", raising=False)
    return Tokens(engine).ensure_own()


def _shown(stranger: Service) -> list[str]:
    return [each.headers["authorization"] for each in stranger.heard]


def test_a_link_into_the_server_of_a_store_is_made_in_the_store_itself(
    typed: Typed, engine: Engine, own: str, url: str
) -> None:
    with service(LINK) as server, announce_server(url, server.url):
        link = typed.ok("open", "--print").strip()
        assert link.startswith(f"{server.url}/enter?code=")
        entered = BrowserLinks(engine).use_link(link.partition("=")[2])
        assert server.heard == []
    assert entered is not None
    who = BrowserLinks(engine).find_access(entered.secret)
    assert (who, who and who.role) == (engine.access.find(own), "admin")


def test_without_a_server_of_the_store_nobody_is_asked(typed: Typed, own: str) -> None:
    said = typed.refused(5, "open", "--print")
    assert "no server of this store runs on this machine" in said
    assert "`holdfast up` starts one" in said
    assert own not in said


def test_a_store_that_was_typed_is_not_shown_to_the_server_of_the_environment(
    typed: Typed, own: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with service(LINK) as server:
        monkeypatch.setenv("HOLDFAST_SERVER", server.url)
        typed.refused(5, "open", "--print", "--db", url)
        assert "--server" not in typed.refused(2, "worker", "nowhere:hf", "--db", url)
        assert server.heard == []
        # The store's own that is named is asked, with the token of the store that is here.
        with announce_server(url, server.url):
            assert typed.ok("open", "--print").strip() == f"{server.url}/enter?code=x"
            named = server.url.replace("127.0.0.1", "localhost")
            assert typed.ok("open", "--server", named, "--db", url).strip().endswith("?code=x")
        assert _shown(server) == [f"Bearer {own}"] * 2


@pytest.mark.parametrize("served", ["http://127.0.0.1:1", None])
def test_a_server_of_this_machine_that_is_not_the_stores_is_shown_no_token(
    typed: Typed, own: str, url: str, monkeypatch: pytest.MonkeyPatch, served: str | None
) -> None:
    with ExitStack() as stack:
        stranger = stack.enter_context(service(LINK))
        if served is not None:
            stack.enter_context(announce_server(url, served))
        said = typed.refused(2, "open", "--server", stranger.url)
        monkeypatch.setenv("HOLDFAST_SERVER", stranger.url)
        said += typed.refused(2, "guard", "t_1", "--token", "1.x")
        said += typed.refused(2, "work", "claim")
        assert said.count(f"that for {stranger.url} is missing; set HOLDFAST_TOKEN") == 3
        assert (stranger.heard, own in said) == ([], False)


@pytest.mark.parametrize(
    "named", ["http://elsewhere.invalid:{}", "https://127.0.0.1:{}", "http://[::1]:{}"]
)
def test_an_address_that_is_but_like_that_of_the_stores_server_is_shown_no_token(
    typed: Typed, own: str, url: str, named: str
) -> None:
    with service(LINK) as server, announce_server(url, server.url):
        other = named.format(server.url.rpartition(":")[2])
        said = typed.refused(2, "open", "--server", other)
        assert server.heard == []
    assert (f"that for {other} is missing" in said, own in said) == (True, False)


def test_another_address_of_this_machine_with_the_same_port_is_shown_no_token(
    typed: Typed, own: str, url: str
) -> None:
    with service(LINK) as stranger:
        port = stranger.url.rpartition(":")[2]
        with announce_server(url, f"http://[::1]:{port}"):
            said = typed.refused(2, "open", "--server", stranger.url)
            # By its name the machine is asked where the store's server listens, and nowhere else.
            said += typed.refused(5, "open", "--server", f"http://localhost:{port}")
        assert (stranger.heard, own in said) == ([], False)


def test_a_worker_for_a_server_shows_it_no_token_of_the_store(
    typed: Typed, own: str, url: str
) -> None:
    admin = Reply(body=b'{"role": "admin"}')
    with service(admin) as server, announce_server(url, server.url), logs_as_before():
        said = typed.refused(2, "worker", "--server", server.url, "--allow-any")
        assert server.heard == []
    assert f"that for {server.url} is missing; set HOLDFAST_TOKEN" in said
    assert "`holdfast token create NAME --role worker`" in said
    assert own not in said


def test_a_program_in_a_servers_place_is_told_by_what_it_says(
    typed: Typed, own: str, url: str
) -> None:
    nothing = Reply(status=404, body=b"<p>nothing here</p>")
    with service(nothing) as server, announce_server(url, server.url):
        said = typed.refused(5, "open", "--server", server.url)
    assert own not in said
    assert "404 '<p>nothing here</p>'" in said
