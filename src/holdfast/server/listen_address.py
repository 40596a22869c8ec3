"""Where a server listens: on this machine, unless somebody says that others may reach it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from holdfast.errors import InvalidInput


@dataclass(frozen=True, kw_only=True)
class ListenAddress:
    """Where to listen; beyond this machine only where that was said."""

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
