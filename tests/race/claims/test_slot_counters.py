"""A counter is locked only by who changes it."""

from __future__ import annotations

import pytest

from holdfast.model.workflow.graph import Concurrency
from tests.race.explorer import staged
from tests.race.racers import COMMIT


@pytest.mark.parametrize("limit", [1, 2])
def test_a_new_task_of_a_key_waits_for_its_counter_only_to_change_the_limit(
    postgres_store_url: str, limit: int
) -> None:
    with staged(postgres_store_url) as stage:
        world = stage.world()
        known = world.concurrency(1)
        world.task("one", concurrency=known)
        claimed = stage.first.start_up_to(COMMIT, [world.claim_by_id("one", "anna")])
        changed = Concurrency(key=known.key, limit=limit)
        new = stage.second.start([world.create("two", concurrency=changed)])
        assert stage.second.go_as_far_as_possible(new) == (limit != known.limit)
        assert claimed.finish() != [[]]
        assert new.result() != [[]]
