"""What a keeper finds below a process."""

from __future__ import annotations

from holdfast.worker.steps.process_keeper import Process, find_descendants


def test_a_process_is_listed_before_the_children_it_waits_for() -> None:
    parents = {9: 1, 4: 9, 7: 4, 2: 7, 3: 7, 5: 1, 6: 2}
    processes: dict[int, Process] = {pid: (parent, 0, "0") for pid, parent in parents.items()}
    found = find_descendants(processes, {9})
    assert set(found) == {4, 7, 2, 3, 6}
    assert all(found.index(pid) > found.index(parents[pid]) for pid in found if pid != 4)
