"""The commands that presets make."""

from __future__ import annotations

import pytest

from holdfast.presets.catalogue import PRESETS
from holdfast.presets.preset import ACCESS, RunOptions
from holdfast.settings import AgentUse

EXPECTED = {
    "claude": "claude -p --output-format stream-json --verbose --permission-mode acceptEdits "
    "--model M --max-turns 4 --max-budget-usd 1.5 --resume S",
    "codex": "codex exec --json --skip-git-repo-check -s workspace-write -m M resume S -",
    "gemini": "gemini -o stream-json --skip-trust --approval-mode auto_edit -m M -r S",
    "copilot": "copilot --output-format json --no-ask-user --allow-tool=write --model M --resume=S "
    "-p DO",
    "opencode": "opencode run --format json -m M -s S",
    "qwen": "qwen -o stream-json --approval-mode auto-edit -m M --max-session-turns 4 --resume S",
    "aider": "aider --yes-always --no-check-update --no-show-release-notes "
    "--no-show-model-warnings --no-pretty --no-stream --analytics-disable --no-gitignore "
    "--no-auto-commits --no-dirty-commits --no-suggest-shell-commands --input-history-file "
    "/dev/null --chat-history-file /dev/null --model M --message DO",
}


@pytest.mark.parametrize("client", EXPECTED)
def test_the_command_of_a_preset_has_the_flags_that_were_tried(client: str) -> None:
    use = AgentUse(preset=client, model="M", turns=4, usd=1.5)
    made = PRESETS[client].make_command(use, "DO", RunOptions(session="S", usd=2.0))
    assert " ".join(made) == EXPECTED[client]


@pytest.mark.parametrize("client", PRESETS)
def test_a_prompt_is_an_argument_only_where_the_client_does_not_read_its_input(client: str) -> None:
    preset = PRESETS[client]
    command = preset.make_command(AgentUse(preset=client, access="read"), "--yolo")
    assert ("\n--yolo" in command) == preset.takes_prompt
    assert "--yolo" not in command


@pytest.mark.parametrize("client", PRESETS)
def test_more_access_makes_another_command(client: str) -> None:
    preset = PRESETS[client]
    assert list(preset.access) == [each for each in ACCESS if each in preset.access]
    made = [
        (preset.make_command(AgentUse(preset=client, access=name), "DO"), given.variables)
        for name, given in preset.access.items()
    ]
    assert all(one != other for n, one in enumerate(made) for other in made[n + 1 :])


def test_only_cursor_is_untried() -> None:
    assert [each.name for each in PRESETS.values() if each.untried] == ["cursor"]
