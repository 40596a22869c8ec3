"""The settings of a project: each mistake with its place, and what holds without them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.cli.commands.init import SETTINGS
from holdfast.definition.project_file import PROJECT, read_project_text
from holdfast.definition.project_file import SETTINGS as KEYS
from holdfast.errors import InvalidInput, InvalidProjectFile
from holdfast.service.project.project import SETTINGS_FILE, find_project, find_store_location
from holdfast.settings import DAY, AgentCommand, KeepTimes, ProjectSettings

WHOLE = """\
database: data/jobs.db
concurrency: {functions: 7, agents: 3}
least_disk: 500MB
grace: 25s
connections: 20
keep: {worktrees: 1d, logs: 2d, runs: 1h}
"""


def read(text: str) -> ProjectSettings:
    return read_project_text(text, folder=Path("/p"))


def test_every_setting_of_a_project_is_read() -> None:
    assert read(WHOLE) == ProjectSettings(
        folder=Path("/p"),
        database="data/jobs.db",
        functions=7,
        agents=3,
        least_disk=500_000_000,
        grace=25,
        connections=20,
        keep=KeepTimes(worktrees=DAY, logs=2 * DAY, runs=3_600),
    )
    assert read("") == read("# nothing") == ProjectSettings(folder=Path("/p"))


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        ("¦databse: x", "holdfast.yaml has no key 'databse'"),
        ("database: ¦5", "database: must be text, not a number"),
        ("least_disk: ¦lots", "least_disk: 'lots' is not a size; write '2GB'"),
        ("grace: ¦soon", "grace: 'soon' is not a duration"),
        ("grace: ¦-1", "grace: -1 is no time that steps can be given"),
        ("connections: ¦3", "connections: must be a whole number of at least 4, not 3"),
        ("connections: ¦many", "connections: must be a whole number of at least 4, not 'many'"),
        ("connections: ¦true", "connections: must be a whole number of at least 4, not True"),
        ("concurrency: ¦4", "concurrency must be a mapping, not a number"),
        ("concurrency: {agents: ¦0}", "agents: must be a whole number from 1"),
        ("keep: {logs: ¦soon}", "logs: 'soon' is not a duration"),
        ("agents: ¦[a]", "agents must be a mapping of names, not a list"),
        ("agents: {dev: ¦{timeout: 1m}}", "agent 'dev' has no command"),
        ("agents: {dev: {command: ¦./dev.sh}}", "command: must be a list of the command"),
        ("agents: {dev: {command: [a], ¦use: claude}}", "uses a preset and has a command"),
        ("agents: {dev: {use: ¦cloude}}", "no preset is 'cloude'"),
        ("agents: {dev: {command: [a], ¦model: m}}", "'model' is for an agent with a preset"),
        ("presets: {¦claude: {command: [a], access: {edit: []}}}", "a preset 'claude' already"),
        ("presets: {mine: ¦{access: {edit: []}}}", "preset has no 'command'"),
        ("presets: {mine: {command: [a], access: ¦{}}}", "preset 'mine' has no access"),
        ("presets: {mine: {command: [a], access: {¦rw: []}}}", "access has no key 'rw'"),
        (
            "presets: {mine: {command: [a], access: {edit: []}, model: ¦[-m]}}",
            "model: no flag has {}",
        ),
        (
            "presets: {mine: {command: [a], access: {edit: []}, stream: ¦jsonl}}",
            "stream: no preset is 'jsonl'",
        ),
        (
            "presets: {mine: {command: [a], access: {read: []}}}\nagents: {dev: {use: ¦mine}}",
            "the preset 'mine' has no access edit, which holds unless said",
        ),
        (
            "agents: {dev: {use: codex, ¦usd: 1}}",
            "usd: the preset 'codex' has none, as Codex takes",
        ),
        (
            "agents: {dev: {command: [a], ¦tags: [gpu]}}",
            "'tags' is not there yet: for now each task",
        ),
        ("agents: {dev: {¦external: true}}", "leave out an agent whose tasks others pull"),
        ("agents: {dev: {command: [a], ¦retries: 3}}", "agent has no key 'retries'"),
        ("agents: {¦a.b: {command: [a]}}", "agent: 'a.b' is no name"),
        (
            "agents: {dev: {command: [a, '{{ ¦input.x }}']}}",
            "agent 'dev': command: input is not known there; one of prompt, feedback, attempt, env",
        ),
        ("agents: {dev: {command: [a, '{{ ¦env }}']}}", "write {{ env.NAME }}, not env"),
        ("agents: {dev: {command: [a], cwd: '{{ ¦prompt }}'}}", "prompt is not known there"),
        ("agents: {dev: {command: [a], env: {B: ¦'{{ b'}}}", "is no variable"),
        ("keep: {¦log: 3d}", "keep has no key 'log'"),
        ("¦[1]", "settings are a mapping, not a list"),
        ("least_disk: 1\n¦least_disk: 2", "the key 'least_disk' is here a second time"),
        ("database: ¦{", ""),
    ],
)
def test_a_mistake_is_told_with_its_place(marked: str, message: str) -> None:
    before, _, after = marked.partition("¦")
    with pytest.raises(InvalidProjectFile) as refused:
        read(before + after)
    found = refused.value.found[0]
    assert message in found.message
    if message:
        line = before.count("\n") + 1
        assert (found.line, found.column) == (line, len(before) - before.rfind("\n"))


def test_the_command_of_an_agent_starts_from_the_folder_of_the_file() -> None:
    said = """
agents:
  dev: {command: [./dev.sh, "{{ prompt }}"], env: {KEY: "{{ secret.KEY }}"}, timeout: 1h}
  critic: {command: [claude, -p], idle_timeout: 5m, cwd: repo}
"""
    assert read(said).commands == {
        "dev": AgentCommand(
            command=("/p/dev.sh", "{{ prompt }}"), env={"KEY": "{{ secret.KEY }}"}, timeout=3_600
        ),
        "critic": AgentCommand(command=("claude", "-p"), cwd="/p/repo", idle_timeout=300),
    }


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(InvalidProjectFile) as refused:
        read("least_disk: x\nkeep: {logs: y}\nz: 1\n")
    assert len(refused.value.found) == 3


def test_the_file_that_init_writes_says_what_holds_without_it_too() -> None:
    text = SETTINGS.format(agents="")
    assert read(text) == read("")
    said = "\n".join(line.removeprefix("# ") for line in text.splitlines()[3:])
    assert read(said) == ProjectSettings(
        folder=Path("/p"), database="postgresql://localhost/jobs", functions=32, grace=25
    )


def test_the_page_lists_every_key() -> None:
    listed = {each.name.partition(".")[0] for each in KEYS}
    assert listed == {key.name for key in PROJECT.keys}


def test_the_file_that_the_guide_shows_can_be_read() -> None:
    page = Path(__file__).parents[3] / "docs" / "how-to" / "command-line.md"
    (shown,) = re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    said = read(shown)
    assert (said.functions, said.agents, said.keep.logs) == (8, 3, 7 * DAY)


def test_the_nearest_file_holds_and_the_environment_wins_over_it(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert find_project(below, {}).folder is None
    (tmp_path / SETTINGS_FILE).write_text(WHOLE)
    found = find_project(below, {})
    assert (found.folder, found.agents) == (tmp_path, 3)
    told = find_project(
        below,
        {"HOLDFAST_CONCURRENCY": "9", "HOLDFAST_LEAST_DISK": "1GB", "HOLDFAST_CONNECTIONS": "4"}
        | {"HOLDFAST_GRACE": "0s"},
    )
    assert told.grace == 0
    assert (told.functions, told.agents, told.least_disk, told.connections) == (9, 9, 10**9, 4)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HOLDFAST_CONCURRENCY", "0"),
        ("HOLDFAST_LEAST_DISK", "much"),
        ("HOLDFAST_GRACE", "soon"),
        ("HOLDFAST_CONNECTIONS", "3"),
        ("HOLDFAST_CONNECTIONS", "-8"),
        ("HOLDFAST_CONNECTIONS", "8.5"),
        ("HOLDFAST_CONNECTIONS", "9" * 5_000),
    ],
)
def test_a_variable_of_the_environment_that_cannot_be_read_is_refused_by_name(
    tmp_path: Path, variable: str, value: str
) -> None:
    with pytest.raises(InvalidInput, match=variable):
        find_project(tmp_path, {variable: value})


def test_the_store_of_a_project_is_found_from_its_folder(tmp_path: Path) -> None:
    below = tmp_path / "a"
    below.mkdir()
    (tmp_path / SETTINGS_FILE).write_text(WHOLE)

    def url(db: str | None = None, **environment: str) -> str:
        return find_store_location(db=db, environment=environment, here=below).url

    assert url() == f"sqlite:///{tmp_path}/data/jobs.db"
    assert url(HOLDFAST_DB="sqlite:///e.db") == "sqlite:///e.db"
    assert url("typed.db", HOLDFAST_DB="sqlite:///e.db").endswith("/typed.db")
    (tmp_path / SETTINGS_FILE).write_text("database: postgresql://localhost/jobs\n")
    assert url() == "postgresql://localhost/jobs"
    (tmp_path / SETTINGS_FILE).write_text("# nothing\n")
    found = find_store_location(db=None, environment={}, here=below)
    assert (found.home, found.url) == (
        tmp_path / ".holdfast",
        f"sqlite:///{tmp_path}/.holdfast/holdfast.db",
    )
