"""Listen address: on this machine, unless other machines may reach it. A leaf without imports."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from holdfast.errors import InvalidInput


@dataclass(frozen=True, kw_only=True)
class ListenAddress:
    """A host and a port; an address that other machines reach has to be allowed by `public`."""

    host: str = "127.0.0.1"
    port: int = 8_765
    public: bool = False

    def check(self) -> None:
        if not self.public and not is_loopback(self.host):
            raise InvalidInput(
                "host",
                f"{self.host} can be reached from other machines; say --public if you want that, "
                "and put TLS in front of it",
            )


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
