"""Public names: the whole public API, which `holdfast` imports at the first use of a name."""

from holdfast.api.handle import Handle, RunHandle
from holdfast.api.holdfast import Holdfast
from holdfast.api.options import escalate, goto
from holdfast.api.plan import Plan
from holdfast.api.signature import needs
from holdfast.api.task import TaskFunction
from holdfast.api.workflow import WorkflowBuilder, WorkflowFile
from holdfast.api.workflow_body import Loop
from holdfast.errors import (
    HoldfastError,
    InvalidDefinition,
    InvalidInput,
    InvalidWorkflowFile,
    KeyConflict,
    Mistake,
    NotFound,
    ShuttingDown,
    StoreBusy,
    StoreError,
    StoreGone,
    StoreUnreachable,
    TaskFailed,
    UnknownOutcome,
)
from holdfast.model.hook import Ended
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.retry import RetryPolicy
from holdfast.model.run import NewRun
from holdfast.model.schedule import NewSchedule, Schedule
from holdfast.model.status import RunStatus, Status
from holdfast.model.task import NewTask, Renewal
from holdfast.model.verdict import Verdict
from holdfast.model.workflow.graph import Concurrency
from holdfast.settings import AgentCommand, AgentUse, OwnPreset, Settings
from holdfast.worker.attempt.attempt_lease import AttemptEnded
from holdfast.worker.attempt.retry_rules import Permanent, RetryAfter
from holdfast.worker.attempt.step_context import AsyncContext, Context
from holdfast.worker.pool.lifecycle import Worker

__all__ = [
    "AgentCommand",
    "AgentUse",
    "AsyncContext",
    "AttemptEnded",
    "Concurrency",
    "Context",
    "Ended",
    "Handle",
    "Holdfast",
    "HoldfastError",
    "InvalidDefinition",
    "InvalidInput",
    "InvalidWorkflowFile",
    "KeyConflict",
    "Loop",
    "Mistake",
    "NewRun",
    "NewSchedule",
    "NewTask",
    "NotFound",
    "OwnPreset",
    "Permanent",
    "Plan",
    "Refusal",
    "Renewal",
    "RetryAfter",
    "RetryPolicy",
    "RunHandle",
    "RunStatus",
    "Schedule",
    "Settings",
    "ShuttingDown",
    "Status",
    "StoreBusy",
    "StoreError",
    "StoreGone",
    "StoreUnreachable",
    "TaskFailed",
    "TaskFunction",
    "TransitionResult",
    "UnknownOutcome",
    "Verdict",
    "Worker",
    "WorkflowBuilder",
    "WorkflowFile",
    "escalate",
    "goto",
    "needs",
]
