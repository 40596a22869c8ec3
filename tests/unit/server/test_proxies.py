"""Whose word counts on where a call comes from."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import InvalidInput
from holdfast.server.proxies import Proxies

OURS = ("10.0.0.7", "10.1.0.0/24,2001:db8::/32")


def _placed(peer: str, *forwarded: str, proto: str = "", given: tuple[str, ...] = OURS) -> str:
    headers = [(b"x-forwarded-for", each.encode()) for each in forwarded]
    headers += [(b"x-forwarded-proto", proto.encode())] if proto else []
    scope: dict[str, Any] = {"client": (peer, 4711), "scheme": "http", "headers": headers}
    Proxies.read(given).set_client_address(scope)
    assert scope["client"][1] == 4711
    return f"{scope['scheme']} {scope['client'][0]}"


@pytest.mark.parametrize("peer", ["127.0.0.1", "10.0.0.8", "::1", "192.0.2.1"])
def test_a_peer_that_is_no_configured_proxy_is_not_believed(peer: str) -> None:
    for given in ((), OURS):
        assert _placed(peer, "8.8.8.8", proto="https", given=given) == f"http {peer}"


@pytest.mark.parametrize(
    ("forwarded", "found"),
    [
        (("8.8.8.8",), "8.8.8.8"),
        (("1.1.1.1, 8.8.8.8",), "8.8.8.8"),
        (("1.1.1.1", "8.8.8.8"), "8.8.8.8"),
        (("1.1.1.1", "8.8.8.8, 10.1.0.9", "10.0.0.7"), "8.8.8.8"),
        (("10.1.0.1, 10.1.0.2",), "10.1.0.1"),
        (("8.8.8.8:5123",), "8.8.8.8"),
        (("[2606:4700::1]:443",), "2606:4700::1"),
        (("2606:4700::1",), "2606:4700::1"),
        (("8.8.8.8, 2001:db8::1",), "8.8.8.8"),
        (("::ffff:8.8.8.8",), "8.8.8.8"),
        (("8.8.8.8, unknown",), "10.0.0.7"),
        (("8.8.8.8, unknown, 10.1.0.1",), "10.1.0.1"),
        (("", " , "), "10.0.0.7"),
        ((), "10.0.0.7"),
    ],
)
def test_the_last_address_told_by_a_proxy_that_is_no_proxy_itself_counts(
    forwarded: tuple[str, ...], found: str
) -> None:
    assert _placed("10.0.0.7", *forwarded) == f"http {found}"
    assert _placed("::ffff:10.0.0.7", *forwarded) == f"http {found}"


def test_a_proxy_tells_the_scheme_with_which_it_was_asked() -> None:
    for said, scheme in (("https", "https"), ("http, HTTPS", "https"), ("javascript", "http")):
        assert _placed("10.0.0.7", "8.8.8.8", proto=said) == f"{scheme} 8.8.8.8"


def test_a_proxy_named_by_no_address_is_refused_with_what_to_give() -> None:
    for wrong in ("proxy.example.com", "10.0.0.0/33", "10.0.0.7:80"):
        with pytest.raises(InvalidInput, match=r"neither an address nor a network; give the"):
            Proxies.read([wrong])
    assert Proxies.read([""]) == Proxies()
