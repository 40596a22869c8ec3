"""How Redis is reached: one client, its errors told as Holdfast's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.errors import BusUnreachable, HoldfastError, InvalidInput

_TIMEOUT = 10.0


def connect(url: str) -> Any:  # noqa: ANN401 - the client's own types are those of coroutines too
    try:
        import redis  # noqa: PLC0415 - only who uses Redis has it
    except ImportError as error:
        message = "Redis needs its client: type pip install '.[redis]' in a clone of Holdfast"
        raise HoldfastError(message) from error
    try:
        return redis.Redis.from_url(
            url,
            decode_responses=True,
            # Whatever anybody wrote there can be read, and refused by its place.
            encoding_errors="surrogateescape",
            socket_timeout=_TIMEOUT,
            health_check_interval=15,
        )
    except ValueError as error:
        # Its own message may quote the URL, and with it a password.
        reason = "is no URL of a Redis; write redis://HOST:PORT/0, rediss://… or unix://…"
        raise InvalidInput("bus", reason) from error


@contextmanager
def translate_redis_errors() -> Iterator[None]:
    """Say in words of our own that Redis is away, or that it refuses: it is full, or not for us."""
    import redis  # noqa: PLC0415 - only who uses Redis has it

    try:
        yield
    except (redis.ConnectionError, redis.TimeoutError, redis.exceptions.ReadOnlyError) as error:
        said = str(error).rstrip(".")
        raise BusUnreachable(
            f"Redis does not answer: {said}; is the server running, and is the URL right?"
        ) from error
    except redis.RedisError as error:
        raise BusUnreachable(f"Redis refuses: {error}") from error
