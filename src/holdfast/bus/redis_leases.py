"""Named leases on Redis, for programs without a store."""

from __future__ import annotations

from pathlib import Path

from holdfast.bus.execution_buses.redis import PREFIX
from holdfast.bus.redis_client import connect, translate_redis_errors
from holdfast.engine.read.report_refusals import refuse
from holdfast.model.moment import to_datetime
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.retry import positive_microseconds
from holdfast.model.task import NamedLease
from holdfast.model.text import clean_key, clean_name, clean_text
from holdfast.randomness import Randomness, SystemRandomness

_SECRET = 16


class RedisLeases:
    """Leases that end by themselves, as in a store; a flush frees them, and fences still grow."""

    def __init__(
        self, url: str, *, prefix: str = PREFIX, randomness: Randomness | None = None
    ) -> None:
        self._prefix = clean_name("prefix", prefix)
        self._randomness = randomness or SystemRandomness()
        self._client = connect(url)
        script = Path(__file__).with_name("lease.lua").read_text(encoding="utf-8")
        self._script = self._client.register_script(script)

    def acquire(self, key: str, owner: str, *, ttl: float) -> NamedLease | None:
        """Take a lease that nobody holds; None if somebody holds it."""
        secret = self._randomness.token_bytes(_SECRET).hex()
        name = clean_name("owner", owner)
        given = self._run_script(key, "acquire", name, secret, positive_microseconds("ttl", ttl))
        if given is None:
            return None
        fence, expires_at = given
        return NamedLease(
            key=key,
            owner=name,
            fence=fence,
            token=f"{fence}.{secret}",
            expires_at=to_datetime(expires_at),
        )

    def renew(self, key: str, token: str, *, ttl: float) -> TransitionResult:
        """Keep a lease; refused once it has run out or changed hands."""
        return self._change_lease(key, "renew", token, positive_microseconds("ttl", ttl))

    def release(self, key: str, token: str) -> TransitionResult:
        """Release a lease; its token releases no lease of anybody else."""
        return self._change_lease(key, "release", token)

    def close(self) -> None:
        self._client.close()

    def _change_lease(self, key: str, verb: str, token: str, *more: int) -> TransitionResult:
        fence, _, secret = clean_text("token", token).partition(".")
        given = self._run_script(key, verb, fence, secret, *more)
        return TransitionResult(ok=True) if given else refuse(Refusal.STALE_TOKEN, None)

    def _run_script(self, key: str, *told: str | int) -> tuple[int, int] | None:
        name = f"{{{self._prefix}}}:lease:{clean_key('key', key)}"
        with translate_redis_errors():
            given = self._script(keys=[name], args=told)
        return None if given is None else (int(given[0]), int(given[1]))
