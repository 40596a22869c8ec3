"""Steps of a file: their own values, the values of their agents, and the nodes of both."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.definition.agent_use import read_agent_use
from holdfast.definition.called_files import CalledFiles, UncallableWorkflow
from holdfast.definition.findings import Findings, UnreadableValue
from holdfast.definition.keys import AGENT, STEP, StepKind
from holdfast.definition.nodes import Fields, FileNode, Items, Scalar, describe_node
from holdfast.definition.values import read_name, read_section
from holdfast.model.retry import RetryPolicy
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.flaw import suggest
from holdfast.model.workflow.graph import Workflow
from holdfast.model.workflow.landing import add_landing
from holdfast.model.workflow.step import OnFailure, Step
from holdfast.settings import AGENT_IDLE_TIMEOUT, AGENT_TIMEOUT, AgentUse

_RETRY = ("max_attempts", "max_lost", "backoff", "backoff_max")
_FLOW_KEYS = ("when", "on_failure", "verifies", "max_rounds", "priority", "concurrency", "title")
_WORK_KEYS = ("run", "http", "workflow", "merge")
# The keys of a step that an agent or a command does, and that a merge therefore has not.
_UNMERGEABLE = ("agent", "prompt", "outputs", "env", "idle_timeout", "workspace")
_WORDS = {
    "work": "a step that does work",
    "loop": "a loop",
    "approval": "an approval",
    "workflow": "a step that calls a workflow",
}


@dataclass(kw_only=True)
class AgentSections:
    """The values and the nodes of the sections below `agents:`, by the names of the agents."""

    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    nodes: dict[str, Fields] = field(default_factory=dict)
    uses: dict[str, AgentUse] = field(default_factory=dict)

    @classmethod
    def read(cls, node: FileNode | None, findings: Findings) -> AgentSections:
        agents = cls()
        if node is None:
            return agents
        if not isinstance(node, Fields):
            findings.add(node.mark, f"agents must be a mapping of names, not {describe_node(node)}")
            return agents
        for name, mark, inner in node.items():
            try:
                read_name(Scalar(mark=mark, end=mark.line, value=name), findings)
            except UnreadableValue as error:
                findings.add(error.mark, f"agent: {error.message}", error.hint)
            agents.values[name] = read_section(AGENT, inner, findings)
            if isinstance(inner, Fields):
                agents.nodes[name] = inner
                agents._check(name, inner, findings)
        return agents

    def _check(self, name: str, node: Fields, findings: Findings) -> None:
        said = self.values[name]
        if (use := read_agent_use(name, said, node, findings)) is not None:
            self.uses[name] = use
        if "use" in said and ("command" in said or said.get("external")):
            other = "has a command" if "command" in said else "is external"
            message = f"agent {name!r} uses a preset and {other}; it can be one of them"
            findings.add(node.keys["use"], message)
        elif said.get("external") and "command" in said:
            message = f"agent {name!r} has a command and is external; it can be one of them"
            findings.add(node.keys["external"], message)
        elif not said.get("external") and not {"command", "use"} & node.nodes.keys():
            message = f"agent {name!r} has no command"
            hint = (
                "give it one, or a preset, as in `use: claude`, or `external: true` when somebody "
                "else pulls its tasks"
            )
            findings.add(node.mark, message, hint)


class StepReader:
    """Reads the steps of every body, and keeps the node of each step."""

    def __init__(
        self,
        agents: AgentSections,
        findings: Findings,
        called_files: CalledFiles | None = None,
        *,
        in_workspace: bool = False,
    ) -> None:
        self._in_workspace = in_workspace
        self._agents = agents
        self._findings = findings
        self._called_files = called_files
        self.called: dict[str, Workflow] = {}
        # By the identity of a step, because two steps may have one name by mistake.
        self._fields_by_step: dict[int, Fields] = {}

    def fields_of_step(self, step: Step) -> Fields:
        return self._fields_by_step[id(step)]

    def read(self, node: FileNode) -> tuple[Step, ...]:
        if not isinstance(node, Items):
            self._findings.add(node.mark, f"steps must be a list, not {describe_node(node)}")
            return ()
        steps: list[Step] = []
        for inner in node.nodes:
            before = steps[-1].id if steps else None
            step = self._read_step(inner, before)
            if step is not None and isinstance(inner, Fields):
                self._fields_by_step[id(step)] = inner
                steps.append(step)
        return tuple(steps)

    def _read_step(self, node: FileNode, before: str | None) -> Step | None:
        said = read_section(STEP, node, self._findings)
        if not isinstance(node, Fields) or "id" not in said:
            return None
        kind = _kind_of_step(node)
        self._check_keys(node, kind)
        needs = said.get("needs", () if before is None else (before,))
        course = {name: said[name] for name in _FLOW_KEYS if name in said}
        common = {"id": said["id"], "needs": needs, **course}
        match kind:
            case "loop":
                body = self.read(node.nodes["steps"]) if "steps" in node.nodes else ()
                more = {name: said[name] for name in ("for_each", "parallel") if name in said}
                loop = Step(**common, **more, steps=body)
                landed = add_landing(loop) if self._in_workspace else loop
                # A landing is written nowhere: whatever is wrong with it is so at its loop.
                for step in landed.steps[len(body) :]:
                    self._fields_by_step[id(step)] = node
                return landed
            case "approval":
                return Step(**common, approval=said.get("approval", "?"), work=StepWork())
            case "workflow":
                return Step(**common, work=self._read_call(node, said))
        return self._read_work(node, said, common)

    def _read_call(self, node: Fields, said: dict[str, Any]) -> StepWork:
        """The called workflow, in the version of the file beside this one, if there is one."""
        name = said.get("workflow", "?")
        try:
            found = None if self._called_files is None else self._called_files.find(name)
        except UncallableWorkflow as error:
            self._findings.add(node.nodes["workflow"].mark, str(error), error.hint)
            found = None
        if found is not None:
            self.called[name] = found
        return StepWork(
            workflow=name,
            version=None if found is None else found.version,
            input=said.get("input"),
            outputs=said.get("outputs"),
        )

    def _read_work(self, node: Fields, said: dict[str, Any], common: dict[str, Any]) -> Step:
        agent = self._agent_values(node.nodes.get("agent"), said.get("agent"))
        self._check_work_keys(node, agent)
        command = said.get("run", None if "run" in node.nodes else agent.get("command"))
        escalated = self._read_escalation(node, said)
        common |= {} if escalated is None else {"on_failure": escalated}
        name = said.get("agent", "default")
        use = self._agents.uses.get(name) if agent and command is None else None
        doing = _read_doing(agent, said | self._read_access(node, said), command, use)
        return Step(**common, agent=name, **doing)

    def _read_access(self, node: Fields, said: dict[str, Any]) -> dict[str, Any]:
        """The access of a step that works in the workspace of its workflow."""
        word = said.get("workspace")
        if "http" in node.nodes and word in {"edit", "read"}:
            hint = "leave it out, or write none"
            message = "a request works in no workspace"
            self._findings.add(node.keys["workspace"], message, hint)
        if word == "none" or "http" in node.nodes or "merge" in node.nodes:
            return {"access": None}
        usual = "edit" if "verifies" not in node.nodes else "read"
        return {"access": word or (usual if self._in_workspace else None)}

    def _read_escalation(self, node: Fields, said: dict[str, Any]) -> OnFailure | None:
        """The step as the agent does it to whom it is handed after a failure."""
        failing: OnFailure | None = said.get("on_failure")
        if failing is None or failing.escalation is None:
            return None
        other = failing.escalation
        section = node.nodes["on_failure"]
        named = section.nodes["escalate"] if isinstance(section, Fields) else section
        if "agent" not in said:
            hint = "give the step an agent and a prompt"
            message = "only a step with an agent can be handed to another"
            self._findings.add(section.mark, message, hint)
        agent = self._agent_values(named, other.agent)
        use = self._agents.uses.get(other.agent)
        told = said | self._read_access(node, said)
        doing = _read_doing(agent, told, agent.get("command"), use)
        return replace(failing, escalation=replace(other, **doing))

    def _agent_values(self, node: FileNode | None, name: str | None) -> dict[str, Any]:
        known = self._agents.values
        if node is None or name is None:
            return {}
        if name not in known:
            hint = f"add `{name}: {{external: true}}` to agents if others serve it"
            message = f"agent {name!r} is not one of the agents"
            self._findings.add(node.mark, message, lambda: suggest(name, known) or hint)
        return known.get(name, {})

    def _check_keys(self, node: Fields, kind: StepKind) -> None:
        known = STEP.known
        for name, mark, _ in node.items():
            if name in known and known[name].supported and kind not in known[name].step_kinds:
                self._findings.add(mark, f"{_WORDS[kind]} has no {name!r}")

    def _check_work_keys(self, node: Fields, agent: dict[str, Any]) -> None:
        """Refuse a step with more than one kind of work, or with none."""
        chosen = [name for name in _WORK_KEYS if name in node.nodes]
        does = bool({"command", "use"} & agent.keys())
        if does and chosen:
            chosen.insert(0, "agent")
        if len(chosen) > 1:
            mark = node.keys[chosen[1]]
            self._findings.add(mark, f"a step has one of {' and '.join(map(repr, chosen))}")
        elif not chosen and "agent" not in node.nodes:
            hint = "give it agent and prompt, run, http, workflow, merge, for_each or approval"
            self._findings.add(node.mark, "this step says nothing to do", hint)
        if "cwd" in node.nodes and "run" not in node.nodes and not does:
            self._findings.add(node.keys["cwd"], "a step without a command has no 'cwd'")
        if "max_rounds" in node.nodes and "verifies" not in node.nodes:
            hint = "of a detour: on_failure: {goto: step, max_rounds: 2}"
            self._findings.add(node.keys["max_rounds"], "max_rounds are those of a verifier", hint)
        for name in _UNMERGEABLE if "merge" in node.nodes else ():
            if name in node.nodes:
                self._findings.add(node.keys[name], f"a merge has no {name!r}")


def _read_doing(
    agent: dict[str, Any],
    said: dict[str, Any],
    command: tuple[str, ...] | None,
    use: AgentUse | None = None,
) -> dict[str, Any]:
    """The work of a step by one agent, with the limits and tags of both."""
    merged = agent | said
    runs_program = command is not None or use is not None
    retry = {name: merged[name] for name in _RETRY if name in merged}
    return {
        "work": StepWork(
            prompt=said.get("prompt"),
            command=command,
            use=use,
            http=said.get("http"),
            env=agent.get("env", {}) | said.get("env", {}),
            cwd=merged.get("cwd") if runs_program else None,
            outputs=said.get("outputs"),
            access=said["access"],
            merge=said.get("merge"),
            idle_timeout=merged.get("idle_timeout", AGENT_IDLE_TIMEOUT) if runs_program else None,
        ),
        "retry": RetryPolicy(**retry),
        "timeout": merged.get("timeout", AGENT_TIMEOUT),
        "tags": tuple(dict.fromkeys((*agent.get("tags", ()), *said.get("tags", ())))),
    }


def _kind_of_step(node: Fields) -> StepKind:
    if "for_each" in node.nodes or "steps" in node.nodes:
        return "loop"
    if "approval" in node.nodes:
        return "approval"
    return (
        "workflow"
        if "workflow" in node.nodes and not {"run", "http"} & node.nodes.keys()
        else "work"
    )
