"""Values that no operation accepts, and the check that nothing came of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from holdfast.settings import MEBIBYTE
from tests.contract.task_states import MISSING_RUN, MISSING_TASK

NOT_TEXT: tuple[Any, ...] = (None, 5, b"t_1", ["t_1"], {"a": 1}, object())
NOT_NUMBERS: tuple[Any, ...] = (None, "5", True, [1], float("nan"))
NOT_LISTS: tuple[Any, ...] = (None, 5, "text", {"a": 1}, object())
BAD_TEXT = ("a\x00b", "a\ud800b", "\udfff")
BAD_NAMES = ("", " ", ".hidden", "-x", "two words", "a\n", "ä", "x" * 201, *BAD_TEXT)
BAD_KEYS = ("", " ", " a", "a ", "a\tb", "a\n", "x" * 201, *BAD_TEXT)
BAD_IDS = (
    "",
    "t_",
    "t_1",
    MISSING_RUN,
    MISSING_TASK + "0",
    MISSING_TASK + "\n",
    "t_" + "u" * 20,
    "t_8" + "0" * 19,
    *BAD_TEXT,
)
# Texts that are no ids are keys.
KEYS_OF_NOTHING = ("x" * 22, MISSING_TASK.upper(), "'; DROP TABLE holdfast_task; --")
BAD_RUN_IDS = ("", "r_1", MISSING_TASK, *BAD_TEXT)


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def endless() -> object:
    value: list[object] = []
    value.append({"again": value})
    return value


NOT_JSON: tuple[Any, ...] = (
    object(),
    b"bytes",
    {1, 2},
    1j,
    float("nan"),
    float("inf"),
    {"a": [float("-inf")]},
    {1: "a"},
    {None: "a"},
    {"a": {(1, 2): "b"}},
    "a\x00b",
    {"a\x00b": 1},
    ["\ud800"],
    {"\udfff": 1},
    nested(101),
    endless(),
    10**5000,
    {"deep": {"deeper": object()}},
)
TOO_LARGE = "x" * (MEBIBYTE + 1)
BAD_MOMENTS: tuple[Any, ...] = (
    *(-1, 0, 2**53 + 1, 10**30, 1.5, True, float("nan")),
    *("tomorrow", "5", "99999999d", "9" * 400 + "s", timedelta(days=-90_000)),
    *(1_750_000_000, 1_750_000_000_000, 1_750_000_000.5),
    datetime(2026, 1, 2),  # noqa: DTZ001 - without a time zone it names no moment
    datetime(2300, 1, 2, tzinfo=UTC),
)
BAD_COUNTS: tuple[Any, ...] = (0, -1, 1001, 1.0, "1", True, None, 10**30)
BAD_LEASES: tuple[Any, ...] = (0, -1, -0.5, 0.000_000_1, 10**12, 10**400, "30", True, float("nan"))
BAD_RANKS: tuple[Any, ...] = (2**31, -(2**31), 10**30, 1.0, "1", True, None)

FIELDS: dict[str, tuple[object, ...]] = {
    "title": ("x" * 501, *BAD_TEXT, *NOT_TEXT),
    "step": (*BAD_NAMES, *NOT_TEXT[1:]),
    "agent": (*BAD_NAMES, *NOT_TEXT),
    "payload": (*NOT_JSON, TOO_LARGE, ["ä" * (MEBIBYTE // 2)]),
    "needs": (
        *NOT_LISTS,
        (MISSING_TASK,),
        *[(bad,) for bad in BAD_IDS],
        *[[bad] for bad in NOT_TEXT],
    ),
    "parent": (MISSING_TASK, *BAD_IDS, *NOT_TEXT[1:]),
    "scheduled_for": BAD_MOMENTS,
    "priority": BAD_RANKS,
    "position": tuple(each for each in BAD_RANKS if each is not None),
    "tags": (*NOT_LISTS, *[(bad,) for bad in BAD_NAMES], *[[bad] for bad in NOT_TEXT]),
    "key": (*BAD_KEYS, *NOT_TEXT[1:]),
    "retry": (None, 3, "3", {"max_attempts": 3}),
    "timeout": (-1, 0, 0.000_000_1, 10**12, "5", True, [5], float("nan"), float("inf")),
    "concurrency": ("repo", 5, {"key": "repo"}),
    "enqueue": (None, "yes", 1, 0, []),
}


class Refuse(Protocol):
    def __call__(
        self, field: str, call: Callable[..., object], *given: Any, **named: Any
    ) -> None: ...
