"""Connections are counted by address, and those of a configured proxy have no share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest

from holdfast.server.connection_limits import ConnectionLimits, Connections
from holdfast.server.proxies import Proxies

LIMITS = ConnectionLimits(connections=16, address_share=0.25)


@dataclass(eq=False)
class Caller:
    address: str
    cuts: list[bool] = field(default_factory=list)

    def is_known(self) -> bool:
        return False

    def check_deadline(self, now: float) -> None:
        raise AssertionError(now)

    def cut(self) -> None:
        self.cuts.append(True)


@pytest.mark.parametrize(
    "peer", ["10.0.0.7", "::ffff:10.0.0.7", "2001:db8::7"], ids=["IPv4", "mapped", "IPv6"]
)
@pytest.mark.parametrize(
    ("named", "refused"), [("10.0.0.7 2001:db8::7", None), ("10.0.0.8", "address")]
)
def test_only_a_configured_proxy_may_have_more_connections_than_one_address(
    peer: str, named: str, refused: str | None
) -> None:
    proxies = Proxies.read([named])
    connections = Connections(LIMITS, Counter(), proxies.is_proxy)
    address = connections.address_of((peer, 1))
    for _ in range(4):
        assert connections.admit(address) is None
        connections.add(Caller(address))
    assert connections.admit(address) == refused
