"""Command answers: how a prompt asks for them, how they are read, and what is wrong with them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.engine.input.validation import JSON_SCALAR_LIMIT
from holdfast.errors import InvalidInput
from holdfast.model.json_schema import find_misfits
from holdfast.model.text import encode_json, strip_terminal_codes

MOST_TRIES = 200
SHOWN = 20_000
MOST_TEXT = 32_768
CUT_TEXT = "[holdfast: what came before is in the log]"

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_PAIR = re.compile(r"^[ \t]*([A-Za-z][A-Za-z0-9_-]*):[ \t]+(.*)$", re.MULTILINE)
_BLANKS = " \t\r"

Schema = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class CommandAnswer:
    """An output, a question to a person, or the mistakes that the repair prompt names."""

    output: Any = None
    question: Any = None
    mistakes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class GivenAnswer:
    """The two places of an answer: the output file, or the end of what the command wrote."""

    file: bytes | None
    written: bytes

    @property
    def shown(self) -> str:
        """The end of the answer as it was given, for the repair prompt."""
        return (self.file or self.written).decode("utf-8", "replace").strip()[-SHOWN:]


class _NoJson(Exception):
    pass


def read_answer(
    answered: GivenAnswer, outputs: Schema | None, *, limit: int, asked: str | None = None
) -> CommandAnswer:
    """The answer to the prompt `asked`, checked against the declared outputs of the step."""
    if answered.file is not None and len(answered.file) > limit:
        reason = f"the file that HOLDFAST_OUTPUT names holds more than {limit} bytes"
        return CommandAnswer(mistakes=(reason,))
    try:
        found = _find_object(answered, outputs, _find_examples(asked, outputs))
    except _NoJson as error:
        return CommandAnswer(mistakes=(str(error),))
    if found is None:
        return _read_text_answer(answered, outputs, limit)
    if found.keys() == {"question"} and "question" not in _declared_properties(outputs):
        wrong = _find_storage_mistakes("the question", found["question"], JSON_SCALAR_LIMIT)
        return CommandAnswer(mistakes=wrong) if wrong else CommandAnswer(question=found["question"])
    if wrong := _find_storage_mistakes("the output", found, limit):
        return CommandAnswer(mistakes=wrong)
    mistakes = [] if outputs is None else find_misfits(outputs, found, "the output")
    return CommandAnswer(mistakes=tuple(mistakes)) if mistakes else CommandAnswer(output=found)


def _read_text_answer(answered: GivenAnswer, outputs: Schema | None, limit: int) -> CommandAnswer:
    """Plain text as an answer, where nothing is declared or a `text`."""
    plain = {"text": read_plain_text(answered.written, limit)}
    if outputs is None:
        return CommandAnswer(output=plain)
    if "text" in _declared_properties(outputs) and not find_misfits(outputs, plain, "the output"):
        return CommandAnswer(output=plain)
    form = _describe_verdict_form(outputs)
    missing = f"there is no JSON object in it, in a line of its own{form}"
    return CommandAnswer(mistakes=(missing,))


def read_plain_text(written: bytes, limit: int) -> str:
    """The text of an answer without JSON, as it would stand on a screen; of a long one the end."""
    plain = strip_terminal_codes(written.decode("utf-8", "replace"))
    # What a program has overwritten, such as a bar of its progress, is not on the screen.
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n")]
    text = _CONTROL.sub("", "\n".join(lines)).strip()
    # As JSON, a character may take eight bytes.
    most = min(MOST_TEXT, limit // 8)
    if len(text) <= most:
        return text
    return f"{CUT_TEXT}\n{text[len(CUT_TEXT) - most :]}"


def describe_contract(outputs: Schema, *, names_file: bool = True) -> str:
    """The text at the end of a prompt that describes the form of the answer."""
    shown = json.dumps(outputs, ensure_ascii=False)
    file = (
        ", or write that object to the file that the environment variable HOLDFAST_OUTPUT names"
        if names_file
        else ""
    )
    return (
        "End your answer with a JSON object in one line of its own, without anything after it"
        f"{file}. It has to fit this JSON Schema:\n\n{shown}\n\n"
        "If you cannot go on before a person has told you something, end it with this instead:\n\n"
        '{"question": "what you have to know"}\n'
    )


def _find_examples(asked: str | None, outputs: Schema | None) -> frozenset[str]:
    """The objects that `add_contract` has written into a prompt; a command may echo them."""
    if asked is None or outputs is None:
        return frozenset()
    lines = describe_contract(outputs).splitlines()
    return frozenset(line for line in lines if line.startswith("{"))


def add_contract(prompt: str, outputs: Schema | None, *, names_file: bool = True) -> str:
    """A prompt with the form of its answer at the end, if the step declares outputs.

    An agent that may write only in its folder is not told of the file for the answer.
    """
    if outputs is None:
        return prompt
    return f"{prompt.rstrip()}\n\n{describe_contract(outputs, names_file=names_file)}"


def make_repair_prompt(asked: str, answered: GivenAnswer, mistakes: tuple[str, ...]) -> str:
    """The prompt of the one repair: the first prompt, its answer, and the mistakes."""
    wrong = "\n".join(f"- {each}" for each in mistakes)
    return (
        f"{asked.rstrip()}\n\nYou have answered this before:\n\n{answered.shown}\n\n"
        f"That could not be read as it has to be:\n\n{wrong}\n\n"
        "The work itself is done. Give the same answer again in the form that was asked for.\n"
    )


def make_next_prompt(mistakes: tuple[str, ...], outputs: Schema | None) -> str:
    """The prompt of the one repair in the conversation that has given the answer."""
    wrong = "\n".join(f"- {each}" for each in mistakes)
    asked = (
        "Your answer could not be read as it has to be:\n\n"
        f"{wrong}\n\nThe work itself is done. Give the same answer again, in the right form."
    )
    return add_contract(asked, outputs, names_file=False)


def _find_storage_mistakes(name: str, value: object, limit: int) -> tuple[str, ...]:
    """The reason why a store cannot keep a value, if there is one."""
    try:
        encode_json(name, value, limit=limit)
    except InvalidInput as error:
        return (str(error),)
    return ()


def _describe_verdict_form(outputs: Schema | None) -> str:
    """The form of a verifier's answer, as part of a message; empty for other steps."""
    if "verdict" not in _declared_properties(outputs):
        return ""
    return ': a verifier gives {"verdict": "accept"} or {"verdict": "reject", "feedback": "…"}'


def _find_object(
    answered: GivenAnswer, outputs: Schema | None, examples: frozenset[str]
) -> dict[str, Any] | None:
    if answered.file is not None and answered.file.strip():
        try:
            given = answered.file.decode("utf-8-sig").strip()
            found = _DECODER.decode(given)
        except (ValueError, RecursionError) as error:
            raise _NoJson(f"the file that HOLDFAST_OUTPUT names is not JSON: {error}") from error
        if not isinstance(found, dict):
            raise _NoJson("the file that HOLDFAST_OUTPUT names holds no JSON object")
        if given in examples:
            raise _NoJson("the file that HOLDFAST_OUTPUT names holds an example of the prompt")
        return found
    text = answered.written.decode("utf-8", "replace")
    for tried, start in enumerate(_find_object_starts(text)):
        if tried == MOST_TRIES:
            break
        try:
            found, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and text[start:end] not in examples:
            return found
    return _read_pairs(text, _declared_properties(outputs)) or None


def _find_object_starts(text: str) -> Iterator[int]:
    """The offsets of lines that may begin a JSON object, the last one first."""
    offset = len(text)
    while (offset := text.rfind("{", 0, offset)) >= 0:
        if offset == 0 or text[offset - 1] == "\n":
            yield offset


def _read_pairs(text: str, declared: Mapping[str, Any]) -> dict[str, Any]:
    """The values of `KEY: value` lines whose keys are declared, in any case."""
    names = {name.lower().replace("-", "_"): name for name in declared}
    found: dict[str, Any] = {}
    for key, written in _PAIR.findall(text):
        value = written.rstrip(_BLANKS)
        plain = key.lower().replace("-", "_")
        if plain in names:
            found[names[plain]] = _parse_value(value, declared[names[plain]])
    return found


def _parse_value(value: str, schema: object) -> Any:  # noqa: ANN401 - JSON is any value
    if isinstance(schema, Mapping) and schema.get("type") == "string":
        return value
    try:
        return _DECODER.decode(value)
    except (ValueError, RecursionError):
        return value


def _declared_properties(outputs: Schema | None) -> Mapping[str, Any]:
    properties = (outputs or {}).get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
