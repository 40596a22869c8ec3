"""Agent session: the runs of a preset's program in one attempt, and what its stream has said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.model.task import Assignment
from holdfast.presets.agent_report import AgentReport, AgentUsage, UsageLimit
from holdfast.presets.preset import Preset, RunOptions
from holdfast.settings import AgentUse
from holdfast.worker.steps.command_environment import CommandFiles

# A limit whose end nobody told is tried again after this time, and then after twice as long.
FIRST_WAIT, LONGEST_WAIT = timedelta(minutes=5), timedelta(hours=1)
# A limit that lifts in a moment, or has lifted by the machine's clock, would be met at once again.
SHORTEST_WAIT = timedelta(seconds=10)
FARTHEST = timedelta(days=7) - timedelta(minutes=1)


class AgentSession:
    """The runs of one attempt; they go on in one conversation where the program can."""

    def __init__(self, preset: Preset, use: AgentUse, assignment: Assignment) -> None:
        self.preset = preset
        self._use = use
        self._assignment = assignment
        self._reader = preset.reader()
        self._session: str | None = None
        # What the sessions have used whose totals go on, by session, and what all others have.
        self._totals: dict[str | None, AgentUsage] = {}
        self._used = AgentUsage()

    @property
    def report(self) -> AgentReport:
        """What the program has said in its present run."""
        return self._reader.report

    @property
    def goes_on(self) -> bool:
        """Whether the next run goes on in the conversation of the last one."""
        return self._session is not None and self.preset.session is not None

    def begin_run(
        self, prompt: str, files: CommandFiles, outputs: Mapping[str, Any] | None
    ) -> tuple[str, ...]:
        """The arguments of the next run."""
        self._reader = self.preset.reader()
        options = RunOptions(
            session=self._session,
            schema=self._write_schema(files, outputs),
            usd=self._assignment.usd_per_attempt,
        )
        return self.preset.make_command(self._use, prompt, options)

    def _write_schema(self, files: CommandFiles, outputs: Mapping[str, Any] | None) -> str | None:
        if not self._use.schema or outputs is None:
            return None
        text = json.dumps(outputs, ensure_ascii=False)
        if self.preset.schema is not None:
            return text
        files.schema.write(text.encode())
        return str(files.schema)

    def make_environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        access = self.preset.access[self._use.access]
        return {**self.preset.variables, **inherited, **access.variables}

    def on_output(self, clean: bytes) -> None:
        self._reader.feed(clean)

    def end_run(self) -> AgentReport:
        """Read the rest of the stream, and count what the run has used."""
        self._reader.end()
        report = self.report
        if report.session is not None:
            self._session = report.session
        if report.usage.empty:
            return report
        if self.preset.totals_go_on:
            self._totals[report.session] = report.usage
        else:
            self._used.add(report.usage)
        return report

    @property
    def usage(self) -> dict[str, Any] | None:
        """What the attempt has used so far, and its session, as its record tells them."""
        total = AgentUsage()
        for each in (self._used, *self._totals.values()):
            total.add(each)
        told: dict[str, Any] = {}
        if not total.empty:
            told = {
                "input_tokens": total.input_tokens,
                "cached_tokens": total.cached_tokens,
                "output_tokens": total.output_tokens,
            }
        if total.usd is not None:
            told["usd"] = round(total.usd, 6)
        if self._session is not None:
            told["session"] = self._session
        return {"preset": self.preset.name, **told} if told else None

    def describe_error(self, said: str, complaint: str) -> str:
        """Why the run went wrong, and what to do about that."""
        title, told = self.preset.title, self.report.error
        message = f"{title}: {told}" if told else f"{said}: {complaint}" if complaint else said
        fix = self.preset.find_advice(f"{told or ''} {complaint}")
        if not fix and self.report.login and self.preset.login:
            fix = f"log in with `{self.preset.login}` as the user of this worker, then retry"
        return f"{message}; {fix}" if fix else message

    def describe_denials(self) -> str:
        denied = ", ".join(str(each) for each in self.report.denials)
        more = [each for each in self.preset.access if each != self._use.access]
        wider = more[-1] if more and self._use.access != "full" else None
        ways = [f"`access: {wider}`"] if wider else []
        ways.append("`flags:` that allow it")
        return (
            f"{self.preset.title} was not allowed to use {denied}, and left that out; give agent "
            f"{self._assignment.task.agent!r} {' or '.join(ways)}, or a prompt that needs less"
        )


def find_limit_end(limit: UsageLimit, now: datetime, met_before: int) -> datetime:
    """When to try again after a usage limit that was met so often before."""
    at = now
    if limit.at is not None:
        # A time without a zone is that of this machine.
        at = limit.at.astimezone(UTC)
    elif limit.seconds is not None:
        at = now + timedelta(seconds=min(limit.seconds, FARTHEST.total_seconds()))
    if at <= now:
        at = now + min(FIRST_WAIT * 2 ** min(met_before, 10), LONGEST_WAIT)
    return min(max(at, now + SHORTEST_WAIT), now + FARTHEST)
