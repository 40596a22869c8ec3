"""Where the steps of a worker are carried out that are no functions of its program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from holdfast.errors import StoreError
from holdfast.model.workflow.declarations import Work
from holdfast.worker.asked import Asked
from holdfast.worker.attempt_addresses import AttemptAddresses
from holdfast.worker.execution import GivenBack, StepFailed
from holdfast.worker.office import Office
from holdfast.worker.permission import NotAllowed, Permission, PermittedWork, permit
from holdfast.worker.secrets import Secrets
from holdfast.worker.state import State


@dataclass(frozen=True, kw_only=True)
class Post:
    engine: Office
    state: State
    secrets: Secrets
    asked: Asked
    addresses: AttemptAddresses
    permission: Permission = Permission()  # noqa: RUF009 - it holds nothing

    def permit(self, work: Work, prompt: str = "") -> PermittedWork:
        """What is executed of a step in one turn; one that is not allowed goes to others."""
        try:
            return permit(work, self.permission, self.secrets, prompt)
        except NotAllowed as refused:
            raise GivenBack(str(refused)) from refused


@contextmanager
def own_reads() -> Iterator[None]:
    """What Holdfast itself cannot read for a step, or remember of it, is no failure of the step."""
    try:
        yield
    except StoreError as error:
        raise GivenBack(str(error)) from error


class InvalidOutput(StepFailed):
    """It gave something else than its step declares to give."""
