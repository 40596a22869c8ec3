"""Messages as front ends show them."""

from __future__ import annotations

from dataclasses import replace

from holdfast.model.token import make_token
from holdfast.service.admin.bus import view_message
from tests.contract.bus.worlds import message


def test_a_token_is_hidden_in_whatever_text_of_a_message_it_stands() -> None:
    token = make_token(b"store", "t_1", 12)
    payload = {"text": f'{{"token": "{token}"}}', "more": [[token, "1.5", 7]]}
    shown = view_message(replace(message("m1"), payload=payload))["payload"]
    assert shown == {"text": '{"token": "***"}', "more": [["***", "1.5", 7]]}
