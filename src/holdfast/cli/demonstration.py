"""What `holdfast demo` runs: a feature built story by story, in a store that is thrown away."""

from __future__ import annotations

import logging
import tempfile
import time
from pathlib import Path
from typing import Any

from holdfast.api.holdfast import Holdfast
from holdfast.api.signature import needs
from holdfast.api.workflow import WorkflowBuilder
from holdfast.cli.advice import NEEDS_PERSON
from holdfast.cli.live import watch
from holdfast.cli.session import serving
from holdfast.cli.terminal import paint, say
from holdfast.model.verdict import Verdict
from holdfast.service.place import Place
from holdfast.worker.context import Context

PACE = 0.4


def demonstrate() -> int:
    # What fails on purpose is seen in the tree.
    logging.getLogger("holdfast").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        url = f"sqlite:///{folder}/demo.db"
        place = Place(url=url, home=Path(folder), settled=True)
        with Holdfast(url, backoff=0.5) as hf:
            feature = define(hf)
            with serving(place, hf.engine) as service, hf.worker():
                run = service.commands.start(feature.request(task="Add SSO"))
                code = watch(service, run["id"])
                if code == NEEDS_PERSON:
                    say(paint("A person is asked; here the demonstration says yes.", "bold"))
                    seen = service.queries.latest_events(1)[-1]["seq"]
                    service.commands.approve(service.commands.asked_of_person(run["id"]))
                    code = watch(service, run["id"], after=seen)
                diagnosis = service.doctor()
    checks = len(diagnosis["checks"])
    say(f"The doctor's {checks} checks find {'nothing' if diagnosis['ok'] else 'something'}.")
    return code


def define(hf: Holdfast) -> WorkflowBuilder:
    feature = hf.workflow("feature")

    @feature.step
    def plan(task: str) -> list[dict[str, Any]]:
        time.sleep(PACE)
        return [{"title": f"{task}: {part}"} for part in ("login form", "callback", "logout")]

    build = feature.loop("build", over=needs(plan))

    @build.step
    def implement(ctx: Context, item: dict[str, Any]) -> str:
        ctx.progress(f"editing {item['title']}")
        time.sleep(PACE)
        return str(item["title"])

    @build.step(verifies=implement)
    def verify(item: dict[str, Any], attempt: int) -> Verdict:
        time.sleep(PACE / 2)
        if attempt == 1 and "callback" in item["title"]:
            return Verdict.reject("the signature is not checked")
        return Verdict.accept()

    @feature.step
    def test(attempt: int) -> str:
        time.sleep(PACE)
        if attempt == 1:
            message = "the network was away"
            raise ConnectionError(message)
        return "48 passed"

    feature.approval("approve", "Merge it?")

    @feature.step
    def merge() -> str:
        return "merged"

    return feature
