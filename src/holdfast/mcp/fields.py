"""What the fields of tools are, told once for all the tools that have them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

View = dict[str, Any]

TaskId = Annotated[str, Field(description="The id of a task (t_…), or a step of a run, r_…:step")]
RunId = Annotated[str, Field(description="The id of a run (r_…), or @last for the newest")]
# Of these two a call names one.
ThisTask = Annotated[str | None, Field(description="The task (t_…, or r_…:step); else give run_id")]
ThisRun = Annotated[str | None, Field(description="The run (r_…, or @last); else give task_id")]
Agent = Annotated[
    str | None, Field(description="The role that works on it, as `developer`; else `default`")
]
Payload = Annotated[
    Any, Field(description="What whoever works on it is to know: any JSON, as {'prompt': '…'}")
]
Limit = Annotated[int, Field(ge=1, le=1_000, description="How many at most")]
After = Annotated[str | None, Field(description="The `next` of the page before")]

Held = Annotated[str, Field(description="The id of the task that claim gave")]
Token = Annotated[str, Field(description="The token that claim gave with it")]
Lease = Annotated[
    float, Field(gt=0, le=86_400, description="For how many seconds nobody else gets the task")
]
