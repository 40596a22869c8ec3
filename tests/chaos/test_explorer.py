"""The explorer can fail: a driver that commits half-way is seen at once."""

from __future__ import annotations

import pytest

from tests.chaos.explorer import HalfWritten, Plan, prepared
from tests.chaos.plans import new_work, user_requests, worker_reports


@pytest.mark.parametrize(
    "plan",
    [
        worker_reports.complete_whose_successor_is_claimed,
        user_requests.cancel_a_run_with_running_tasks_and_keys,
        new_work.start_runs_of_one_key,
    ],
)
def test_a_transaction_that_is_committed_half_way_is_noticed(store_url: str, plan: Plan) -> None:
    with prepared(store_url, plan, leaks=True) as explorer, pytest.raises(HalfWritten):
        explorer.kill_at_every_statement()
