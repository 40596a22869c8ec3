"""What an attempt tells the store is sent again while that is away, and no longer."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from holdfast.errors import InvalidInput, ShuttingDown, StoreBusy, StoreUnreachable, UnknownOutcome
from holdfast.worker.attempt.attempt_lease import AttemptEnded, send_until_over


class Post:
    """Sends, and keeps the reply to each for the test to give."""

    def __init__(self) -> None:
        self.replies: list[Future[str]] = []
        self.closed = False
        self.over = False
        self.kept = send_until_over(self.send, lambda: self.over)

    def send(self) -> Future[str]:
        if self.closed:
            raise ShuttingDown("closed")
        self.replies.append(Future())
        return self.replies[-1]


@pytest.mark.parametrize("away", [StoreBusy, StoreUnreachable, UnknownOutcome])
def test_a_call_to_the_store_is_sent_again_until_the_store_answers(away: type[Exception]) -> None:
    post = Post()
    for _ in range(3):
        post.replies[-1].set_exception(away("away"))
        assert not post.kept.done()
    post.replies[-1].set_result("written")
    assert post.kept.result(0) == "written"
    assert len(post.replies) == 4


def test_a_call_that_the_store_refuses_is_not_sent_again() -> None:
    post = Post()
    post.replies[-1].set_exception(InvalidInput("value", "is too long"))
    assert isinstance(post.kept.exception(0), InvalidInput)


def test_an_attempt_that_is_over_sends_nothing_more_and_has_not_failed() -> None:
    post = Post()
    post.over = True
    post.replies[-1].set_exception(busy := StoreBusy("locked"))
    ended = post.kept.exception(0)
    assert isinstance(ended, AttemptEnded)
    assert ended.__cause__ is busy
    assert len(post.replies) == 1


def test_a_call_that_cannot_be_sent_again_says_what_the_store_said() -> None:
    post = Post()
    post.closed = True
    post.replies[-1].set_exception(busy := StoreBusy("locked"))
    assert post.kept.exception(0) is busy
