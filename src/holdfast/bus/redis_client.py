"""The client for Redis, apart from the buses because leases use it too, and its errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.errors import BusUnreachable, HoldfastError, InvalidInput

_TIMEOUT = 10.0


def connect(url: str) -> Any:  # noqa: ANN401 - the client's own types are those of coroutines too
    try:
        import redis  # noqa: PLC0415 - installed only for Redis
    except ImportError as error:
        message = "Redis needs its client: type pip install '.[redis]' in a clone of Holdfast"
        raise HoldfastError(message) from error
    try:
        return redis.Redis.from_url(
            url,
            decode_responses=True,
            # Any bytes can be read, and a message that is no text is then refused by itself.
            encoding_errors="surrogateescape",
            socket_timeout=_TIMEOUT,
            health_check_interval=15,
        )
    except ValueError as error:
        # The client's own message may quote the URL, and with it a password.
        reason = "is no URL of a Redis; write redis://HOST:PORT/0, rediss://… or unix://…"
        raise InvalidInput("bus", reason) from error


@contextmanager
def translate_redis_errors() -> Iterator[None]:
    """Turn the client's errors into `BusUnreachable`: Redis is away, or refuses the command."""
    import redis  # noqa: PLC0415 - installed only for Redis

    try:
        yield
    except (redis.ConnectionError, redis.TimeoutError, redis.exceptions.ReadOnlyError) as error:
        said = str(error).rstrip(".")
        raise BusUnreachable(
            f"Redis does not answer: {said}; is the server running, and is the URL right?"
        ) from error
    except redis.RedisError as error:
        raise BusUnreachable(f"Redis refuses: {error}") from error
