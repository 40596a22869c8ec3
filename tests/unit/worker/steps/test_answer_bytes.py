"""Answers that are packed, and what is unpacked of them."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import httpx
import pytest

from holdfast.worker.steps.answer_bytes import AnswerBytes

TEXT = b'{"assignments": []}'


@pytest.mark.parametrize(
    ("coding", "sent"),
    [
        ("", TEXT),
        ("identity", TEXT),
        ("aws-chunked", TEXT),
        ("gzip", gzip.compress(TEXT, mtime=0)),
        ("x-gzip", gzip.compress(TEXT, mtime=0)),
        ("Deflate", zlib.compress(TEXT)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_answer_is_read_however_it_is_packed_and_cut(coding: str, sent: bytes) -> None:
    received = AnswerBytes(httpx.Headers({"Content-Encoding": coding}), len(TEXT))
    assert all(received.add(sent[at : at + 3]) for at in range(0, len(sent), 3))
    assert bytes(received.content) == TEXT


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_no_more_is_unpacked_than_is_read(coding: str) -> None:
    large = bytes(50_000_000)
    sent = gzip.compress(large) if coding else large
    del large
    received = AnswerBytes({"content-encoding": coding}, 1_000)
    tracemalloc.start()
    assert not received.add(sent)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 100_000
    assert len(received.content) == 1_001


@pytest.mark.parametrize("coding", ["gzip, gzip", "gzip,deflate", "x-gzip, identity, gzip"])
def test_an_answer_that_is_packed_again_and_again_is_not_read(coding: str) -> None:
    with pytest.raises(httpx.DecodingError, match="more than once"):
        AnswerBytes({"content-encoding": coding}, 1_000)


def test_an_answer_that_is_not_packed_as_it_says_is_not_read() -> None:
    with pytest.raises(httpx.DecodingError):
        AnswerBytes({"content-encoding": "gzip"}, 1_000).add(TEXT)
