"""The way into a browser: a link that a server makes, good once."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from holdfast.cli.options import Json
from holdfast.cli.registry import command
from holdfast.cli.session import place
from holdfast.cli.terminal import is_terminal, say, say_json
from holdfast.errors import InvalidInput, StoreUnreachable

SERVER = "http://127.0.0.1:8765"


@command("open", example="holdfast open")
def open_browser(
    server: Annotated[
        str | None, typer.Option(help="The server; HOLDFAST_SERVER, or the one on this machine.")
    ] = None,
    show: Annotated[
        bool, typer.Option("--print", help="Print the link, and start no browser.")
    ] = False,
    json: Json = False,
) -> None:
    """Open Holdfast in a browser, by a link that is good once and for ten minutes."""
    from holdfast.worker.remote.client import Client

    url = server or os.environ.get("HOLDFAST_SERVER") or SERVER
    client = Client(url, _token())
    try:
        made = client.post("/links", {})
    except StoreUnreachable as error:
        raise StoreUnreachable(f"no server answers at {url}; `holdfast up` starts one") from error
    finally:
        client.close()
    link = client.url + made["path"]
    if json:
        say_json({"url": link, "expires_at": made["expires_at"]})
    elif show or not is_terminal() or not _start(link):
        say(link)


def _token() -> str:
    from holdfast.service.tokens import read_token

    token = os.environ.get("HOLDFAST_TOKEN") or read_token(place().url)
    if token is None:
        reason = "is missing; `holdfast up` makes the one of this project, or set HOLDFAST_TOKEN"
        raise InvalidInput("token", reason)
    return token


def _start(link: str) -> bool:
    import webbrowser

    return webbrowser.open(link)
