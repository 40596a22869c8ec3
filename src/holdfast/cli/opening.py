"""The way into a browser: a link that a server makes, good once."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.options import Json
from holdfast.cli.registry import command
from holdfast.cli.session import place
from holdfast.cli.terminal import is_terminal, say, say_json
from holdfast.errors import StoreUnreachable

HERE = "http://127.0.0.1:8765"


@command("open", example="holdfast open")
def open_browser(
    server: Annotated[
        str | None,
        typer.Option(help="The URL of the server; that of this store.", envvar="HOLDFAST_SERVER"),
    ] = None,
    show: Annotated[
        bool, typer.Option("--print", help="Print the link, and start no browser.")
    ] = False,
    json: Json = False,
) -> None:
    """Open Holdfast in a browser, by a link that is good once and for ten minutes."""
    from holdfast.cli.remote import client_of
    from holdfast.service.whereabouts import find_server

    found = None if server else find_server(place().url)
    url = server or found or HERE
    with client_of(url, own=found is not None) as client:
        try:
            made = client.post("/links", {})
        except StoreUnreachable as error:
            said = (
                f"no server answers at {url}; `holdfast up` starts one, and "
                "`holdfast open --server URL` asks one that is elsewhere"
            )
            raise StoreUnreachable(said) from error
    link = client.url + made["path"]
    if json:
        say_json({"url": link, "expires_at": made["expires_at"]})
    elif show or not is_terminal() or not _start(link):
        say(link)


def _start(link: str) -> bool:
    import webbrowser

    return webbrowser.open(link)
