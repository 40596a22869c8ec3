"""Advice of answers and explanations, as data: the words around it are in `advice/golden`."""

from __future__ import annotations

from holdfast.engine.explain.explanation import Explanation
from holdfast.engine.explain.why_run import RunExplanation
from holdfast.model.advice import Advice, advice_of
from holdfast.model.result import TransitionResult


def advised(answer: TransitionResult) -> list[Advice]:
    """What the detail of an answer advises to do."""
    return list(advice_of(answer.detail))


def fixes_of(told: Explanation | RunExplanation) -> list[Advice]:
    """What an explanation advises to do, each thing once."""
    if isinstance(told, RunExplanation):
        texts = [told.fix, *(fix for each in told.tasks for fix in each.own_fixes)]
    else:
        texts = [*(clause.fix for clause in told.clauses), *told.taking_fixes]
    return list(dict.fromkeys(advice for text in texts for advice in advice_of(text)))
