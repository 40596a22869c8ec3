"""Tells a forked child that a database connection is not its own."""

from __future__ import annotations

import os

from holdfast.errors import StoreError


class HomeProcess:
    def __init__(self) -> None:
        self._id = os.getpid()

    def here(self) -> bool:
        return os.getpid() == self._id

    def check(self) -> None:
        if not self.here():
            raise StoreError(
                "this process was forked from the one that opened the database, and a connection "
                "cannot be shared across a fork; open the database again in the child"
            )
