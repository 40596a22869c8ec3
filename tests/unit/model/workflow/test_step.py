"""Which steps of a body give what the body gives."""

from __future__ import annotations

import pytest

from holdfast.model.workflow.step import Step, output_steps

IMPLEMENT = Step(id="implement")
LINT = Step(id="lint", needs=("implement",))


def verify(*needs: str) -> Step:
    return Step(id="verify", needs=needs, verifies="implement")


@pytest.mark.parametrize(
    ("steps", "giving"),
    [
        ((IMPLEMENT, LINT), {"lint"}),
        ((IMPLEMENT, verify("implement")), {"implement"}),
        ((IMPLEMENT, LINT, verify("lint")), {"lint"}),
        ((IMPLEMENT, verify("implement"), Step(id="commit", needs=("verify",))), {"commit"}),
        ((IMPLEMENT, LINT, verify("lint"), Step(id="commit", needs=("verify",))), {"commit"}),
        ((IMPLEMENT, LINT, verify("lint"), Step(id="commit", needs=("implement",))), {"commit"}),
        ((IMPLEMENT, Step(id="docs"), verify("docs")), {"implement", "docs"}),
        (
            (
                IMPLEMENT,
                verify("implement"),
                Step(id="second", needs=("verify",), verifies="verify"),
                Step(id="commit", needs=("second",)),
            ),
            {"commit"},
        ),
    ],
)
def test_a_body_gives_what_its_last_steps_gave_verifiers_aside(
    steps: tuple[Step, ...], giving: set[str]
) -> None:
    assert output_steps(steps) == giving
