"""Spellings of secrets by many encoders, each of which none survives, and texts that hold none."""

from __future__ import annotations

import base64
import codecs
import csv
import hashlib
import html
import io
import json
import shlex
import string
import time
from collections.abc import Callable
from html.entities import codepoint2name
from itertools import pairwise
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.worker.secrets.redaction import Redaction, RedactionStream

MARK = b"[secret API]"
# Bytes that no encoder of these tests writes.
BEFORE, AFTER = b"x \x01", b"\x02 y"

# What `printf %q`, `set -x` and ${name@Q} of bash 5.2 write, in UTF-8 and in the C locale.
BASH: dict[str, list[bytes]] = {
    "it's a <secret>": [rb"it\'s\ a\ \<secret\>", rb"it'\''s a <secret>"],
    'pa$$w"rd`x`\\y': [rb"pa\$\$w\"rd\`x\`\\y", b'pa$$w"rd`x`\\y'],
    "two lines\nof it": [rb"two lines\nof it", b"two lines\nof it"],
    "t\tab \x1b esc": [rb"t\tab \E esc", b"t\tab \x1b esc"],
    "ünï cödé!": [
        "ünï\\ cödé\\!".encode(),
        rb"\303\274n\303\257 c\303\266d\303\251!",
        "ünï cödé!".encode(),
    ],
    "{a,b}~*?[x]": [rb"\{a\,b\}~\*\?\[x\]"],
    "&lt;tag&gt; #1": [rb"\&lt\;tag\&gt\;\ #1"],
    "'quoted all'": [rb"\'quoted\ all\'", rb"'\''quoted all'\''"],
    "it tr@ils\\": [rb"it\ tr@ils\\", b"it tr@ils\\"],
}

LETTERS = st.one_of(
    st.sampled_from("aZ09 <>&\"'/\\%+=$`;#!?\n\tü€😀{}u0x"),
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")),
)
SECRETS = st.text(LETTERS, min_size=8, max_size=20)
CUTS = st.lists(st.integers(min_value=0, max_value=10_000), max_size=6)


def html_names(text: str) -> str:
    names = (codepoint2name.get(ord(each)) for each in text)
    return "".join(f"&{n};" if n else c for n, c in zip(names, text, strict=True))


def csv_field(text: str) -> str:
    file = io.StringIO()
    csv.writer(file, quoting=csv.QUOTE_ALL).writerow([text])
    return file.getvalue().removesuffix("\r\n")[1:-1]


def json_for_pages(text: str, *, upper: bool = False) -> str:
    written = json.dumps(text)[1:-1]
    for each in "<>&'":
        code = f"{ord(each):04X}" if upper else f"{ord(each):04x}"
        written = written.replace(each, f"\\u{code}")
    return written


def lower_percent(text: str) -> str:
    """Percent-encoding in small hexadecimal, and nothing else."""
    return "".join(
        each if each.isascii() and each.isalnum() else "".join(f"%{b:02x}" for b in each.encode())
        for each in text
    )


ENCODE_URI = "-_.!~*'();/?:@&=+$,#"

ENCODERS: dict[str, Callable[[str], str]] = {
    "nothing": str,
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON that is not ASCII": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "JSON with \\/": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "JSON for pages": json_for_pages,
    "JSON for pages, in capitals": lambda text: json_for_pages(text, upper=True),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text))[3:-3],
    "JSON in JSON in JSON": lambda text: json.dumps(json.dumps(json.dumps(text)))[7:-7],
    "JSON with all escaped": lambda text: "".join(
        f"\\u{int.from_bytes(text.encode('utf-16-be')[n : n + 2]):04X}"
        for n in range(0, len(text.encode("utf-16-be")), 2)
    ),
    "JSON in CSV": lambda text: csv_field(json.dumps(text)[1:-1]),
    "JSON in HTML": lambda text: html.escape(json.dumps(text)[1:-1]),
    "JSON in a URL": lambda text: quote(json.dumps(text)[1:-1], safe=""),
    "JSON for pages in a URL": lambda text: quote_plus(json_for_pages(text)),
    "HTML": html.escape,
    "HTML in HTML": lambda text: html.escape(html.escape(text)),
    "HTML in JSON": lambda text: json.dumps(html.escape(text))[1:-1],
    "HTML in JSON for pages": lambda text: json_for_pages(html.escape(text)),
    "HTML in a URL": lambda text: quote(html.escape(text), safe=""),
    "HTML with names": html_names,
    "HTML with numbers": lambda text: "".join(f"&#{ord(each)};" for each in text),
    "HTML with zeros": lambda text: "".join(f"&#{ord(each):07d};" for each in text),
    "HTML with hexadecimal": lambda text: "".join(f"&#x{ord(each):x};" for each in text),
    "HTML with big hexadecimal": lambda text: "".join(f"&#X{ord(each):06X};" for each in text),
    "XML that is ASCII": lambda text: (
        html.escape(text).encode("ascii", "xmlcharrefreplace").decode()
    ),
    "a URL": lambda text: quote(text, safe=""),
    "a path": quote,
    "a form": quote_plus,
    "encodeURI": lambda text: quote(text, safe=ENCODE_URI),
    "encodeURIComponent": lambda text: quote(text, safe="-_.!~*'()"),
    "a URL in small letters": lower_percent,
    "a URL in a URL": lambda text: quote(quote(text, safe=""), safe=""),
    "a URL with all escaped": lambda text: "".join(f"%{each:02X}" for each in text.encode()),
    "a shell": lambda text: shlex.quote(text).removeprefix("'").removesuffix("'"),
    "a shell in JSON": lambda text: json.dumps(
        shlex.quote(text).removeprefix("'").removesuffix("'")
    )[1:-1],
    "set -x": lambda text: text.replace("'", "'\\''"),
    "printf %q": lambda text: (
        "".join(each if each.isalnum() else f"\\{each}" for each in text if each != "\n")
        if "\n" not in text
        else codecs.encode(text, "unicode_escape").decode().replace("'", "\\'")
    ),
    "a shell in octal": lambda text: "".join(f"\\{each:03o}" for each in text.encode()),
    "SQL": lambda text: text.replace("'", "''"),
    "SQL with backslashes": lambda text: text.replace("\\", "\\\\").replace("'", "\\'"),
    "CSV": csv_field,
    "repr": lambda text: repr(text)[1:-1],
    "ascii": lambda text: ascii(text)[1:-1],
    "repr of bytes": lambda text: repr(text.encode())[2:-1],
    "lines of DOS": lambda text: text.replace("\n", "\r\n"),
    "hexadecimal": lambda text: text.encode().hex(),
    "big hexadecimal": lambda text: text.encode().hex().upper(),
}


def pieces(data: bytes, cuts: list[int], redaction: Redaction) -> bytes:
    stream = RedactionStream(lambda: redaction)
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    fed = [stream.feed(data[start:end]) for start, end in pairwise(places)]
    return b"".join([*fed, stream.flush()])


def is_clean(found: bytes, secret: str) -> bool:
    """Only the mark is left; beside it perhaps the other half of doubled quotes at the end."""
    doubled = len(secret) - len(secret.rstrip(secret[-1])) if secret[-1] in "'\"" else 0
    ends = [secret[-1] * count for count in range(doubled + 1)]
    return found in [BEFORE + MARK + each.encode() + AFTER for each in ends]


@given(secret=SECRETS, cuts=CUTS, encoder=st.sampled_from(sorted(ENCODERS)))
def test_no_encoder_brings_a_secret_past(secret: str, cuts: list[int], encoder: str) -> None:
    redaction = Redaction({"API": secret})
    data = BEFORE + ENCODERS[encoder](secret).encode() + AFTER
    assert is_clean(redaction.clean(data), secret)
    assert is_clean(pieces(data, cuts, redaction), secret)


@pytest.mark.parametrize("encoder", sorted(ENCODERS))
def test_a_mark_is_found_wherever_it_stands_in_a_secret(encoder: str) -> None:
    for each in string.punctuation:
        for secret in (
            f"{each}bcdefgh",
            f"abcd{each}fgh",
            f"abcdefg{each}",
            f"{each * 4}x{each * 4}",
        ):
            data = BEFORE + ENCODERS[encoder](secret).encode() + AFTER
            assert is_clean(Redaction({"API": secret}).clean(data), secret)


@pytest.mark.parametrize("encoder", sorted(ENCODERS))
def test_a_spelled_secret_is_found_wherever_it_is_cut_in_two(encoder: str) -> None:
    secret = "p<&\"/\\>%+ ü'w\n😀end"
    redaction = Redaction({"API": secret})
    data = BEFORE + ENCODERS[encoder](secret).encode() + AFTER
    assert {pieces(data, [cut], redaction) for cut in range(len(data))} == {BEFORE + MARK + AFTER}
    assert pieces(data, list(range(len(data))), redaction) == BEFORE + MARK + AFTER


@given(
    secret=SECRETS,
    cuts=CUTS,
    encoders=st.lists(st.sampled_from(["JSON", "HTML", "a URL", "ascii"]), min_size=20),
)
def test_a_secret_of_which_each_letter_is_spelled_by_another_encoder_is_found(
    secret: str, cuts: list[int], encoders: list[str]
) -> None:
    redaction = Redaction({"API": secret})
    letters = (ENCODERS[each](letter) for each, letter in zip(encoders, secret, strict=False))
    data = BEFORE + "".join(letters).encode() + AFTER
    assert is_clean(redaction.clean(data), secret)
    assert is_clean(pieces(data, cuts, redaction), secret)


@pytest.mark.parametrize("secret", BASH)
def test_a_secret_as_bash_writes_it_is_found(secret: str) -> None:
    redaction = Redaction({"API": secret})
    for written in BASH[secret]:
        data = BEFORE + written + AFTER
        assert {pieces(data, [cut], redaction) for cut in range(len(data))} == {
            BEFORE + MARK + AFTER
        }


@given(secret=SECRETS, cuts=CUTS, form=st.sampled_from(["utf-16", "utf-16-le", "utf-16-be"]))
def test_a_secret_in_utf_16_is_found(secret: str, cuts: list[int], form: str) -> None:
    written = BEFORE + codecs.encode(secret, form) + AFTER
    found = pieces(written, cuts, Redaction({"API": secret}))
    # A byte that all letters have in common may be left, once: of ASCII a zero.
    shared = codecs.encode(secret[0], "utf-16-be")[:1]
    bom = codecs.BOM_UTF16 if form == "utf-16" else b""
    ways = [(b"", b""), (shared, b""), (b"", shared)]
    assert found in [BEFORE + bom + one + MARK + other + AFTER for one, other in ways]


@given(
    secret=SECRETS,
    cuts=CUTS,
    form=st.sampled_from(["utf-8", "utf-16-le", "utf-16-be"]),
    before=st.binary(max_size=4),
    width=st.integers(16, 90),
)
def test_a_secret_in_base64_of_any_text_is_found(
    secret: str, cuts: list[int], form: str, before: bytes, width: int
) -> None:
    redaction = Redaction({"API": secret})
    data = before + codecs.encode(secret, form)
    written = json.dumps(secret).encode() if form == "utf-8" else data
    for each in (data, before + written):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(each)
            lines = b"\n".join(text[n : n + width] for n in range(0, len(text), width))
            for shown in (text, text.rstrip(b"="), lines):
                found = pieces(shown, cuts, redaction)
                assert MARK in found
                assert len(found.replace(MARK, b"")) <= len(base64.b64encode(before)) + 8


# None of them is, or spells, a letter of the secret.
SOUP_WORDS = rb"""
    \ \\ " ' ' & &amp; &lt; &#60; % %25 %3c \u003c \x3C \n $' '$'\n'' a + Z Zq9-Zq9- Zq9\u002d
    5a71392d5a71 WnE5LVpxO
""".split()
SOUP = st.lists(st.sampled_from([*SOUP_WORDS, b" ", b"\n", b"\r\n", b"\0"]), max_size=60).map(
    b"".join
)
WITHOUT = Redaction({"API": "Zq9-Zq9-<Z>"})


@given(data=SOUP, cuts=CUTS)
@example(data=b"Zq9-Zq9-&lt;Z&g", cuts=[3])
def test_a_text_without_the_secret_is_left_byte_for_byte(data: bytes, cuts: list[int]) -> None:
    assert WITHOUT.clean(data) == data
    assert pieces(data, cuts, WITHOUT) == data


@pytest.mark.parametrize(
    "secret", ["\\" * 12 + "x", "'\"" * 6 + "x", "&amp;" * 6 + "x", "%25" * 6 + "x", "a" * 40 + "b"]
)
def test_no_text_keeps_the_redaction_busy(secret: str) -> None:
    redaction = Redaction({"API": secret})
    floods = [b"\\", b"'", b'"', b"'\"", b"&amp;", b"&", b"%25", b"%", b"%5C", b"a", b"\\u005c"]
    began = time.process_time()
    for flood in floods:
        data = (flood * 3_000)[:6_000] + b"\1"
        assert redaction.clean(data) == data
    assert time.process_time() - began < 20


@pytest.mark.parametrize("secret", ["<<pass-word & more>>", "<-> & {é}"])
def test_a_secret_in_a_long_text_is_found_wherever_it_is_cut(secret: str) -> None:
    redaction = Redaction({"API": secret})
    filler = b"a line of a log; " * 500
    for spelled in (secret, html.escape(secret), "".join(f"\\u{ord(each):04x}" for each in secret)):
        data = filler + spelled.encode() + filler
        clean = filler + MARK + filler
        cuts = range(len(filler), len(filler) + len(spelled.encode()), 3)
        assert {pieces(data, [cut], redaction) for cut in cuts} == {clean}
        assert redaction.clean(data) == clean


def test_a_line_of_prose_that_is_over_waits_for_no_further_one() -> None:
    redaction = Redaction({f"KEY_{n}": hashlib.sha256(bytes([n])).hexdigest() for n in range(20)})
    for letter in string.ascii_letters + string.digits:
        line = f"it is running {letter}\n".encode()
        assert RedactionStream(lambda: redaction).feed(line) == line


@pytest.mark.parametrize("outer", ["JSON", "HTML", "a URL", "repr"])
@pytest.mark.parametrize("inner", ["shlex", "CSV", "SQL"])
def test_quotes_that_one_encoder_doubled_and_another_spelled_are_found(
    inner: str, outer: str
) -> None:
    secret = "a'b\"cd''e\"\"f"
    inside = {
        "shlex": shlex.quote(secret),
        "CSV": secret.replace('"', '""'),
        "SQL": secret.replace("'", "''"),
    }[inner]
    outside = {
        "JSON": json.dumps(inside),
        "HTML": html.escape(inside),
        "a URL": quote(inside),
        "repr": repr([inside]),
    }[outer]
    found = Redaction({"API": secret}).clean(outside.encode())
    assert b"[secret API]" in found
    assert b"cd" not in found


def test_quotes_that_a_shell_gathered_are_found() -> None:
    # As dash lists its variables.
    written = b"S='it'\"''\"'s all'\n"
    assert Redaction({"API": "it''s all"}).clean(written) == b"S='[secret API]'\n"
