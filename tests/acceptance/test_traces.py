"""Traces across processes, as a collector of OpenTelemetry gets them; and nothing where none is."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.acceptance.server.test_server import ended, serving
from tests.acceptance.terminals import PATIENCE, PROGRAM, environment
from tests.acceptance.worker.test_remote_worker import YAML, working
from tests.contract.http_service import Heard, Reply, service

TRACE, CALLER = "ab" * 16, "cd" * 8
FLOW = 'name: one\nsteps: [{id: a, run: [sh, -c, \'echo "{\\"at\\": \\"$TRACEPARENT\\"}"\']}]'


def spans(heard: Iterable[Heard]) -> dict[str, dict[str, Any]]:
    """By name, each with the process that sent it."""
    found: dict[str, dict[str, Any]] = {}
    for each in heard:
        for sent in ExportTraceServiceRequest.FromString(each.body).resource_spans:
            told = {pair.key: pair.value.string_value for pair in sent.resource.attributes}
            for span in (span for scope in sent.scope_spans for span in scope.spans):
                found[span.name] = {
                    "service": told["service.name"],
                    "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "about": {pair.key: pair.value for pair in span.attributes},
                }
    return found


def test_one_trace_leads_from_a_call_through_a_server_to_an_attempt_elsewhere(
    tmp_path: Path,
) -> None:
    (tmp_path / ".holdfast").mkdir()
    with service(Reply()) as collector:
        told = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        with serving(tmp_path, "serve", **told, OTEL_SERVICE_NAME="server") as (server, client):
            url = str(client.base_url).removesuffix("/api/v1/")
            assert client.post("/workflows", content=FLOW, headers=YAML).status_code == 201
            calling = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
            run = client.post("/runs", json={"workflow": "one"}, headers=calling).json()["id"]
            made = client.post("/tokens", json={"name": "there", "role": "worker"}).json()
            more = {"HOLDFAST_TOKEN": made["token"]}
            asked = ("--server", url, "--allow-any", "--log-json")
            with working(tmp_path, *asked, **told, **more) as worker:
                now = ended(client, run)
                worker.send_signal(signal.SIGTERM)
                assert worker.wait(PATIENCE) == 0
            server.send_signal(signal.SIGTERM)
            assert server.wait(PATIENCE) == 0
    for line in (tmp_path / "worker-said").read_text().splitlines():
        assert line.startswith(("{", "server ")), line
    found = spans(collector.heard)
    task = now["tasks"][0]["id"]
    chain = ["POST /api/v1/runs", "start one", "a", "attempt 1 of a"]
    report = f"POST /api/v1/claims/{task}/complete"
    assert {each["trace"] for each in found.values()} == {TRACE}
    assert [found[name]["parent"] for name in chain] == [
        CALLER,
        *(found[name]["id"] for name in chain[:-1]),
    ]
    services = [found[name]["service"] for name in (*chain, report)]
    assert services == ["server", "server", "holdfast", "holdfast", "server"]
    attempt = found["attempt 1 of a"]
    assert found[report]["parent"] == attempt["id"]
    assert now["output"] == {"at": f"00-{TRACE}-{attempt['id']}-01"}
    assert attempt["about"]["holdfast.run"].string_value == run
    assert attempt["about"]["holdfast.attempt"].int_value == 1


def test_opentelemetry_is_not_imported_where_nobody_asks_for_traces(tmp_path: Path) -> None:
    look = "; import atexit; atexit.register(lambda: print([m for m in sys.modules if NAME in m]))"
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            f"NAME = 'opentelemetry'; import sys{look}\n{PROGRAM}",
            "task",
            "add",
            "t",
        ],
        cwd=tmp_path,
        env=environment(HOLDFAST_DB=str(tmp_path / "x.db")),
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    assert told.stdout.splitlines()[-1] == "[]"
