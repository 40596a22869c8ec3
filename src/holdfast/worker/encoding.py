"""How what an effect gave is remembered: in JSON, by the type it has."""

from __future__ import annotations

from pydantic import TypeAdapter

from holdfast.errors import InvalidInput

_AS_IT_IS = frozenset({type(None), bool, int, float, str})

PLAIN = "text, numbers, lists, dicts, a dataclass or a pydantic model"


class InvalidEffect(InvalidInput):
    """What an effect gave cannot be remembered; as it was done, it is not tried again."""

    def __init__(self, name: str, reason: str, give: str = PLAIN) -> None:
        advice = f"it was done, so it is not tried again: have it give {give}"
        super().__init__(f"effect {name!r}", f"{reason}; {advice}")


def encode_effect(name: str, value: object) -> object:
    """The JSON form of what an effect gave; raises `InvalidEffect` where it has none."""
    if type(value) in _AS_IT_IS:
        return value
    try:
        # By its own type: what a function promises to give, nobody has checked here.
        return TypeAdapter(type(value)).dump_python(value, mode="json", warnings="none")
    except Exception as error:
        kind = type(value).__name__
        raise InvalidEffect(name, f"it gave a {kind}, which is not JSON: {error}") from error
