"""Secrets in all their spellings, cut anywhere, and what is left of them: nothing."""

from __future__ import annotations

import base64
import json
import os
import shlex
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.worker.secrets.redaction import SHORTEST_SECRET, Redaction, RedactionStream

SECRET = 's3cr/t "quöted"+pass\'word'
LONG = "-----BEGIN KEY-----\n" + "\n".join(f"{n:02d}abcdefghijklmnop" * 3 for n in range(40))
REDACTION = Redaction({"API": SECRET, "KEY": LONG})

SPELLINGS = {
    "as it is": SECRET.encode(),
    "as JSON": json.dumps(SECRET)[1:-1].encode(),
    "as JSON that is not ASCII": json.dumps(SECRET, ensure_ascii=False)[1:-1].encode(),
    "as JSON in JSON": json.dumps(json.dumps(SECRET))[3:-3].encode(),
    "in a URL": quote(SECRET, safe="").encode(),
    "in a path": quote(SECRET).encode(),
    "in a form": quote_plus(SECRET).encode(),
    "in a shell": shlex.quote(SECRET)[1:-1].encode(),
    "by repr": repr(SECRET)[1:-1].encode(),
    "in hexadecimal": SECRET.encode().hex().encode(),
    "one of its lines": LONG.splitlines()[7].encode(),
    "a long one": LONG.encode(),
}


def pieces(data: bytes, cuts: list[int], redaction: Redaction = REDACTION) -> bytes:
    """What a stream gives of data that is cut in some places."""
    stream, places = (
        RedactionStream(lambda: redaction),
        [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)],
    )
    fed = [stream.feed(data[start:end]) for start, end in pairwise(places)]
    return b"".join([*fed, stream.flush()])


CUTS = st.lists(st.integers(min_value=0, max_value=10_000), max_size=12)


@given(spelling=st.sampled_from(sorted(SPELLINGS)), cuts=CUTS)
def test_a_secret_is_found_in_every_spelling_wherever_it_is_cut(
    spelling: str, cuts: list[int]
) -> None:
    secret = SPELLINGS[spelling]
    mark = b"[secret KEY]" if secret.decode() in LONG else b"[secret API]"
    assert pieces(b"before " + secret + b" after " + secret, cuts) == (
        b"before " + mark + b" after " + mark
    )


@dataclass(frozen=True, kw_only=True)
class Written:
    """A secret among other bytes, as a program may encode it."""

    secret: str
    before: bytes
    after: bytes
    urlsafe: bool
    padded: bool

    @property
    def encoded(self) -> bytes:
        data = self.before + self.secret.encode() + self.after
        text = base64.urlsafe_b64encode(data) if self.urlsafe else base64.b64encode(data)
        return text if self.padded else text.rstrip(b"=")

    @property
    def kept(self) -> bytes:
        """What may be left of it: the letters that hold no bit of the secret."""
        end = len(self.before) + len(self.secret.encode())
        after = self.encoded[-(-end * 8 // 6) :] if self.after else b""
        return self.encoded[: len(self.before) * 8 // 6] + b"[secret API]" + after


LETTERS = st.characters(codec="utf-8", exclude_characters="\r\n")
WRITTEN = st.builds(
    Written,
    secret=st.text(LETTERS, min_size=8, max_size=20),
    before=st.binary(max_size=5),
    after=st.binary(max_size=5),
    urlsafe=st.booleans(),
    padded=st.booleans(),
)


@given(written=WRITTEN, cuts=CUTS, width=st.integers(16, 90))
def test_a_secret_in_base64_leaves_not_one_bit_wherever_it_stands_in_whatever_lines(
    written: Written, cuts: list[int], width: int
) -> None:
    redaction, text = Redaction({"API": written.secret}), written.encoded
    lines = b"\n".join(text[n : n + width] for n in range(0, len(text), width))
    for each in (text, lines):
        assert pieces(each, cuts, redaction).replace(b"\n", b"") == written.kept


@given(data=st.binary(max_size=400), cuts=CUTS)
def test_a_text_that_holds_no_secret_is_left_as_it_is(data: bytes, cuts: list[int]) -> None:
    assert pieces(data, cuts) == data
    most = SECRET.encode()[:-1]
    assert pieces(most + b"\0" + data, cuts) == most + b"\0" + data


def test_only_bytes_that_may_begin_a_secret_are_held_back() -> None:
    stream = RedactionStream(lambda: REDACTION)
    assert stream.feed(b"password: s3c") == b"password: "
    assert stream.feed(b"ret.\n") == b"s3cret.\n"
    assert stream.flush() == b""
    assert stream.feed(SECRET.encode() + b"\n") == b"[secret API]\n"


def test_two_secrets_of_which_one_begins_the_other_are_both_removed_whole() -> None:
    redaction = Redaction({"SHORT": "abcdefgh", "LONG": "abcdefghijkl"})
    stream = RedactionStream(lambda: redaction)
    assert stream.feed(b"abcdefgh") + stream.feed(b"ijkl.") == b"[secret LONG]."
    assert stream.feed(b"abcdefgh") + stream.feed(b"-") == b"[secret SHORT]-"


def test_a_value_is_cleaned_in_its_texts_its_keys_and_its_numbers() -> None:
    redaction = Redaction({"PIN": "12345678", "WORD": "password-1"})
    assert redaction.value(
        {"password-1": [12345678, 1.5, True, None, "the password-1"], "n": (8,)}
    ) == {"[secret WORD]": ["[secret PIN]", 1.5, True, None, "the [secret WORD]"], "n": [8]}


def test_without_secrets_everything_passes_untouched() -> None:
    redaction = Redaction({})
    value = {"a": object()}
    assert redaction.value(value) is value
    assert redaction.split(b"abc") == (b"abc", b"")
    assert redaction.text("\ud800") == "\ud800"


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("PIN", "1" * (SHORTEST_SECRET - 1), "must have 8 to be kept out of logs"),
        ("a b", "12345678", "is no name"),
    ],
)
def test_a_secret_that_cannot_be_kept_is_refused_without_being_shown(
    name: str, value: str, reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason) as refused:
        Redaction({name: value})
    assert value not in str(refused.value)


@pytest.mark.parametrize("errors", ["surrogateescape", "surrogatepass"])
def test_a_secret_that_is_no_utf_8_is_found_in_bytes_and_in_what_was_read_of_them(
    errors: str,
) -> None:
    secret = os.fsdecode(b"p\xe4sswort-in-latin-1")
    redaction = Redaction({"API": secret})
    data = secret.encode("utf-8", errors)
    read = data.decode("utf-8", "replace").encode()
    for each in (data, data.hex().encode(), base64.b64encode(data), repr(data).encode()):
        assert b"[secret API]" in redaction.clean(each)
    if errors == "surrogateescape":
        assert redaction.clean(read) == b"[secret API]"
