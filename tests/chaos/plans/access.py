"""Groups that grant and revoke tokens of the server, and claims that are asked for again."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.core.operation import Claim, Operation
from holdfast.engine.surroundings.access import GrantAccess, RevokeAccess
from holdfast.engine.surroundings.browser_sessions import EnterByLink, LeaveBrowser, MakeLink
from holdfast.model.token import digest_secret
from tests.chaos.plans.registry import group_of
from tests.race.worlds import World

SECRET = "hf_" + "a" * 40


@group_of(GrantAccess, RevokeAccess, Claim)
def tokens_come_and_go_while_a_request_is_served(world: World) -> Sequence[Operation]:
    assert world.engine.access.grant("goes", SECRET, role="viewer") is not None
    world.task("ready")
    return [
        GrantAccess(name="comes", digest="d", role="worker", agents='["a"]', ttl=1_000_000),
        RevokeAccess(name="goes"),
        Claim(
            worker="w", agents=(world.agent,), tags="[]", count=1, lease=30_000_000, request="again"
        ),
    ]


@group_of(MakeLink, EnterByLink, LeaveBrowser)
def browsers_come_and_go(world: World) -> Sequence[Operation]:
    engine = world.engine
    assert engine.access.grant("ada", SECRET, role="viewer") is not None
    for code in ("comes", "goes"):
        assert engine.browsers.link("ada", code) is not None
    assert engine.browsers.enter("goes", "gone") is not None
    return [
        MakeLink(digest="d", name="ada", ttl=1_000_000),
        EnterByLink(digest=digest_secret("comes"), session="e", ttl=1_000_000),
        LeaveBrowser(digest=digest_secret("gone")),
    ]
