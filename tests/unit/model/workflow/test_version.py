"""The version of a workflow is the hash of one text, which later releases must not change."""

from __future__ import annotations

from tests.contract.task_states import CHAIN, FORK


def test_a_graph_without_what_files_bring_has_the_version_it_always_had() -> None:
    assert CHAIN.version == "fc69d09cef75babe7c3b01943f5ba66b"
    assert FORK.version == "fa30adcaea52e8421cdb3a40274f56f5"
