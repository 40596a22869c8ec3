"""What was said of work so far, as those who do it again are told."""

from __future__ import annotations

from holdfast import errors


def in_words(feedback: object) -> object:
    """What was said; the error of a step that went back, in words as a verifier's are."""
    match feedback:
        case {"type": str(), "message": str(), "traceback": list()}:
            return errors.in_words(feedback)
        case _:
            return feedback
