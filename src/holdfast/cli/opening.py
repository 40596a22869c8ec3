"""The way into a browser: a link that is good once."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from holdfast.cli.options import Json
from holdfast.cli.registry import command
from holdfast.cli.session import chosen_server, opened, place, with_store
from holdfast.cli.terminal import is_terminal, say, say_json
from holdfast.errors import StoreUnreachable

ELSEWHERE = "`holdfast open --server URL` asks one that is elsewhere"


@command("open", example="holdfast open")
def open_browser(
    server: Annotated[
        str | None,
        typer.Option(help="The server's URL (default: $HOLDFAST_SERVER, or this store's server)."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--print", help="Print the link instead of starting a browser.")
    ] = False,
    json: Json = False,
) -> None:
    """Open Holdfast in a browser with a one-time link. It is valid for ten minutes."""
    named = chosen_server() if server is None else server
    url, made = _of_store() if named is None else _of_server(named)
    link = url + made["path"]
    if json:
        say_json({"url": link, "expires_at": made["expires_at"]})
    elif show or not is_terminal() or not _start(link):
        say(link)


def _of_store() -> tuple[str, dict[str, Any]]:
    """Where the store is served, and a link that is made in the store: no token leaves it."""
    from holdfast.service.project.server_address import find_server

    url = find_server(place().url)
    if url is None:
        raise StoreUnreachable(
            "no server of this store runs on this machine, as far as can be seen; "
            f"`{with_store('holdfast up')}` starts one, and {ELSEWHERE}"
        )
    with opened() as service:
        return url, service.tokens.link_own()


def _of_server(named: str) -> tuple[str, dict[str, Any]]:
    """A link of a server that was named, for whoever has a token for it."""
    from holdfast.cli.remote import client_of

    with client_of(named) as client:
        try:
            return client.url, client.post("/links", {}, path=str, expires_at=str)
        except StoreUnreachable as error:
            said = f"{error}; `holdfast up` starts a server, and {ELSEWHERE}"
            raise StoreUnreachable(said) from error


def _start(link: str) -> bool:
    import webbrowser

    return webbrowser.open(link)
