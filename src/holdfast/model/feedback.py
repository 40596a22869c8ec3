"""What was said of work so far, as those who do it again are told."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast import errors


def nearest(said: Iterable[str | None]) -> str | None:
    """The first of what was kept as JSON that says something: null says nothing."""
    return next((each for each in said if each is not None and each != "null"), None)


def in_words(feedback: object) -> object:
    """What was said; the error of a step that went back, in words as a verifier's are."""
    match feedback:
        case {"type": str(), "message": str(), "traceback": list()}:
            return errors.in_words(feedback)
        case _:
            return feedback
