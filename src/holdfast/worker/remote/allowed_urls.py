"""Allowed URLs: which URLs lie below an allowed one, in every way that a server may read them."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import unquote

import httpx

from holdfast.errors import InvalidInput

MOST_DECODINGS = 5
PORTS = {"http": 80, "https": 443}
_SEPARATORS = re.compile(r"[/\\]")
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
# Some old servers read this escape too.
_UNICODE_ESCAPE = re.compile("%[uU][0-9A-Fa-f]{4}")
# Some servers cut a decoded part of a path at one of these.
_PART_ENDS = re.compile("[;?#]")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")


class AmbiguousUrl(ValueError):
    """The URL may be read in different ways by different servers."""


class AllowedUrl:
    """An allowed URL: a scheme, a host, a port, and the beginning of a path."""

    def __init__(self, text: str) -> None:
        try:
            url = parse_url(text)
            self._readings = [_split_path(each) for each in _readings(url)]
        except ValueError as error:
            raise InvalidInput("allow", f"{text!r} is no beginning of a URL: {error}") from error
        if url.query or url.fragment:
            reason = f"{text!r} goes beyond a path; leave out what follows the ? or the #"
            raise InvalidInput("allow", reason)
        self._origin = _origin(url)
        # A URL that ends in a slash is a folder, and allows what is below it.
        self._is_folder = url.path.endswith("/")

    def allows(self, url: httpx.URL) -> bool:
        """Whether a URL is this one or lies below it, in every way that its path can be read."""
        if _origin(url) != self._origin:
            return False
        last = len(self._readings) - 1
        return all(
            self._is_below(_split_path(each), self._readings[min(number, last)])
            for number, each in enumerate(_readings(url))
        )

    def _is_below(self, given: list[str], leading: list[str]) -> bool:
        own = leading[:-1] if self._is_folder else leading
        return given[: len(own)] == own and (not self._is_folder or len(given) > len(own))


def parse_url(text: str) -> httpx.URL:
    """A URL as it is sent: its dots are resolved, and no reading leads up; raises ValueError."""
    try:
        url = httpx.URL(text)
        again = httpx.URL(str(url))
    except (httpx.InvalidURL, TypeError) as error:
        raise AmbiguousUrl(str(error)) from error
    if url.scheme not in PORTS or not url.host:
        raise AmbiguousUrl("it begins with http:// or https:// and a host")
    if url.userinfo or (again.raw_path, _origin(again)) != (url.raw_path, _origin(url)):
        raise AmbiguousUrl("it may not hold a name and a password before its host")
    for reading in _readings(url):
        _refuse_ways_up(reading)
    return url


def _origin(url: httpx.URL) -> tuple[str, bytes, int]:
    return url.scheme, url.raw_host.lower(), url.port or PORTS.get(url.scheme, 0)


def _readings(url: httpx.URL) -> list[str]:
    """The path of a URL as it stands, and as servers see it that decode it once or more often."""
    path = url.raw_path.partition(b"?")[0].decode("ascii")
    found = [_ESCAPE.sub(_normalize_escape, path)]
    while (decoded := _decode(found[-1])) != found[-1]:
        found.append(decoded)
        if len(found) > MOST_DECODINGS:
            raise AmbiguousUrl("its path is encoded again and again")
    return found


def _decode(path: str) -> str:
    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError as error:
        raise AmbiguousUrl("its path holds what is not UTF-8") from error


def _normalize_escape(escape: re.Match[str]) -> str:
    """An escape in its normal form: the character if it needs no escape, else in capitals."""
    character = chr(int(escape[0][1:], 16))
    return character if _UNRESERVED.fullmatch(character) else escape[0].upper()


def _refuse_ways_up(path: str) -> None:
    if not path.isprintable():
        raise AmbiguousUrl("its path holds control characters")
    if _UNICODE_ESCAPE.search(path):
        raise AmbiguousUrl("its path holds escapes that not every server reads alike, as %u002e")
    for part in _SEPARATORS.split(unicodedata.normalize("NFKC", path)):
        # Some servers strip blanks at the end of a part.
        if _PART_ENDS.split(part, maxsplit=1)[0].strip() == "..":
            raise AmbiguousUrl("its path leads up, by two dots")


def _split_path(path: str) -> list[str]:
    return _SEPARATORS.split(path)[1:]
