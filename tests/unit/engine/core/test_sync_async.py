"""What `help` and an editor are told of a bound operation or look."""

from __future__ import annotations

import inspect
import pydoc
from concurrent.futures import Future

import pytest

from holdfast.engine.core.sync_async import operation, reading


class Desk:
    @operation
    def send(self, letter: str, *, express: bool = False) -> Future[int]:
        """Send a letter."""
        sent: Future[int] = Future()
        sent.set_result(len(letter) + express)
        return sent

    @reading
    def count(self, since: int = 0) -> int:
        """Count the letters."""
        return since


def test_a_bound_operation_looks_like_its_method() -> None:
    send = Desk().send
    assert (send.__name__, send.__doc__) == ("send", "Send a letter.")
    assert str(inspect.signature(send)) == "(letter: 'str', *, express: 'bool' = False) -> 'int'"


def test_a_bound_look_looks_like_its_method() -> None:
    count = Desk().count
    assert (count.__name__, count.__doc__) == ("count", "Count the letters.")
    assert str(inspect.signature(count)) == "(since: 'int' = 0) -> 'int'"
    assert count(7) == 7


def test_help_tells_the_name_the_parameters_and_the_purpose() -> None:
    told = pydoc.plain(pydoc.render_doc(Desk().send))
    assert "Desk.send(letter, *, express=False)\n    Send a letter." in told


@pytest.mark.parametrize("name", ["send", "count"])
def test_a_call_that_nobody_awaits_is_told_what_to_write(name: str) -> None:
    desk = Desk()
    arguments = {"send": ("letter",), "count": ()}[name]
    told = rf"\.{name}\.aio\(…\); write `await ….{name}.aio\(…\)`, or .* was never awaited"
    made = [getattr(desk, name).aio(*arguments)]
    with pytest.warns(RuntimeWarning, match=told):
        made.clear()
