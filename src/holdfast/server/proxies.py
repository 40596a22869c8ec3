"""Proxies: addresses that may say where a call comes from; there are none unless configured."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from starlette.types import Scope

from holdfast.errors import InvalidInput

FORWARDED_FOR, FORWARDED_PROTO = b"x-forwarded-for", b"x-forwarded-proto"
SCHEMES = frozenset({"http", "https"})

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Proxies:
    """`X-Forwarded-For` and `X-Forwarded-Proto` count from these addresses alone."""

    networks: tuple[Network, ...] = ()

    @classmethod
    def read(cls, given: Sequence[str]) -> Self:
        """Addresses and networks, as a person writes them."""
        words = [word for each in given for word in each.replace(",", " ").split()]
        return cls(tuple(map(_parse_network, words)))

    def __contains__(self, address: Address) -> bool:
        return any(address in each for each in self.networks)

    def is_proxy(self, text: str) -> bool:
        """Whether an address, as it is written, is that of a proxy."""
        address = _parse_address(text)
        return address is not None and address in self

    def set_client_address(self, scope: Scope) -> None:
        """Set the address and the scheme with which a call came to the first of the proxies.

        The address is the last in `X-Forwarded-For` that is not of a proxy: each proxy adds the
        address of its client, and a client may make up all that stands before.
        """
        client = scope.get("client")
        peer = None if client is None else _parse_address(client[0])
        if client is None or peer is None:
            return
        found = peer
        if peer in self:
            found = self._find_client(peer, _read_header_values(scope, FORWARDED_FOR))
            told = _read_header_values(scope, FORWARDED_PROTO)[-1:]
            if told and told[0].lower() in SCHEMES:
                scope["scheme"] = told[0].lower()
        scope["client"] = (str(found), client[1])

    def _find_client(self, peer: Address, forwarded: list[str]) -> Address:
        found = peer
        for each in reversed(forwarded):
            before = _parse_address(each)
            if before is None or found not in self:
                break
            found = before
        return found


def _read_header_values(scope: Scope, name: bytes) -> list[str]:
    """The values in all headers of a name, in their order."""
    said = [value.decode("latin-1") for each, value in scope["headers"] if each == name]
    return [each.strip() for each in ",".join(said).split(",") if each.strip()]


def _parse_address(text: str) -> Address | None:
    """An address with or without a port; IPv4 inside IPv6 becomes IPv4."""
    host = text
    if text.startswith("["):
        host = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        host = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _parse_network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        reason = "is neither an address nor a network; give the proxy's, as 10.0.0.7 or 10.0.0.0/24"
        raise InvalidInput("proxy", f"{ascii(text)[:60]} {reason}") from None
