"""What a worker elsewhere lets a server have it run, call, set and read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from holdfast.errors import InvalidInput
from holdfast.model.workflow.declarations import HttpCall, StepWork
from holdfast.settings import AgentUse
from holdfast.worker.attempt.execution import StepFailed
from holdfast.worker.remote.allowlist import Allowlist
from holdfast.worker.secrets.secrets import Secrets
from holdfast.worker.steps.permission import NotAllowed, PermittedWork, permit_work

URLS = ("https://api.example", "https://other.example/v1/", "http://h.example/public")
ALLOWED = Allowlist(names=(*URLS, "echo"), variables=["MINE"])
ECHO = shutil.which("echo")


def permitted(work: StepWork, allowed: Allowlist = ALLOWED, prompt: str = "") -> PermittedWork:
    environment = allowed.readable_environment(
        {"MINE": "mine-alone", "HOME": "/home", "KEY": "of-the-worker"}
    )
    return permit_work(work, allowed, Secrets("http://server", environment), prompt)


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example/x?y=1",
        "https://API.example:443/x",
        "https://other.example/v1/x",
        "https://other.example/v1/a%2Fb",
        "http://h.example/public",
        "http://h.example/public/x?next=/../admin",
        "http://h.example/public/x/../y",
        "http://h.example/publi%63/x",
        "http://h.example:80/public/",
    ],
)
def test_an_address_below_one_that_is_allowed_may_be_called(url: str) -> None:
    assert permitted(StepWork(http=HttpCall(url=url))).http is not None


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.evil.test/x",
        "https://api.example@evil.test/x",
        "https://evil.test@api.example/x",
        "https://api.example\\@evil.test/x",
        "https://api.example:444/x",
        "http://api.example/x",
        "https://other.example/v2/x",
        "https://other.example/v1",
        "https://other.example/v1%2Fx",
        "http://h.example/publicity",
        "http://h.example/public/../admin",
        "http://h.example/public/%2e%2e/admin",
        "http://h.example/public/%2E./admin",
        "http://h.example/public/%252e%252e/admin",
        "http://h.example/public/%25252e%25252e%25252fadmin",
        "http://h.example/public/..%2fadmin",
        "http://h.example/public/a%2fb/%2e%2e/%2e%2e/admin",
        "http://h.example/public/..%5cadmin",
        "http://h.example/public\\..\\admin",
        "http://h.example/public/..;/admin",
        "http://h.example/public/%c0%ae%c0%ae/admin",
        f"http://h.example/public/%{'25' * 1_000}41",
        "http://h.example/public/%EF%BC%8E%EF%BC%8E/admin",
        "http://h.example/public/%2e%2e%00/admin",
        "http://h.example/public/..%3f/x",
        "http://h.example/public/%2e%2e%253Fx",
        "http://h.example/public/..%23",
        "http://h.example/public/%u002e%U002E/admin",
        "http://h.example/public/%25u002e%25u002e/admin",
        "http://h.example/%70ublicity",
        "http://h.example//public/x",
        "http://h.example/PUBLIC/x",
        "ftp://h.example/public/x",
        "http:/public/x",
        "http://h.example:x/public",
        "/public/x",
    ],
)
def test_an_address_that_leads_elsewhere_in_any_reading_may_not(url: str) -> None:
    with pytest.raises(NotAllowed, match="left to others"):
        permitted(StepWork(http=HttpCall(url=url)))


def test_the_address_that_is_called_is_the_one_that_was_checked() -> None:
    call = permitted(StepWork(http=HttpCall(url="http://H.example:80/public/a/../b?c#d"))).http
    assert call is not None
    assert call.url == "http://h.example/public/b?c#d"


def test_an_address_is_checked_with_what_is_filled_in_last() -> None:
    work = StepWork(
        http=HttpCall(url="http://h.example/public/x"),
        later={"http.url": ("http://h.example/", "prompt", "")},
    )
    assert permitted(work, prompt="public/y").http is not None
    with pytest.raises(NotAllowed):
        permitted(work, prompt="admin")


@pytest.mark.parametrize(
    "name",
    [
        "hOST",
        "X-Original-URL",
        "x-rewrite-url",
        "Content-Length",
        "TRANSFER-ENCODING",
        "Connection",
    ],
)
def test_a_header_by_which_a_server_reads_another_request_is_refused(name: str) -> None:
    call = HttpCall(url="http://h.example/public/x", headers={name: "9"})
    with pytest.raises(NotAllowed, match=name):
        permitted(StepWork(http=call))
    assert permitted(StepWork(http=call), Allowlist(anything=True)).http == call


@pytest.mark.parametrize("text", ["http://a/x?y", "http://a/x#y", "http://b@a/", "ftp://a/", "://"])
def test_a_text_that_cannot_be_the_beginning_of_an_address_is_refused_at_the_start(
    text: str,
) -> None:
    with pytest.raises(InvalidInput, match="allow: "):
        Allowlist(names=[text])


def test_a_command_is_the_file_that_was_found_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = tmp_path / "one" / "tool", tmp_path / "other" / "tool"
    for each in (one, other):
        each.parent.mkdir()
        each.write_text("#!/bin/sh\n")
        each.chmod(0o755)
    monkeypatch.chdir(tmp_path / "one")
    monkeypatch.setenv("PATH", str(one.parent))
    allowed = Allowlist(names=["tool", "./tool", "absent"])
    monkeypatch.chdir(tmp_path / "other")
    monkeypatch.setenv("PATH", str(other.parent))
    assert allowed.missing == ["absent"]
    for name in ("tool", "./tool", str(one)):
        command = permitted(StepWork(command=(name, "x")), allowed).command
        assert (Path(command[0]).samefile(one), command[1:]) == (True, ("x",))
    for name in ("absent", str(other), f"{one.parent}/../one/tool", "Tool", "tool "):
        with pytest.raises(NotAllowed):
            permitted(StepWork(command=(name,)), allowed)


def test_a_command_runs_in_an_allowed_folder_or_below_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, beside = tmp_path / "work" / "inner", tmp_path / "work-beside"
    for each in (inside, beside):
        each.mkdir(parents=True)
    (tmp_path / "work" / "out").symlink_to(beside)
    (tmp_path / "link").symlink_to(inside)
    monkeypatch.chdir(tmp_path)
    allowed = Allowlist(names=["echo"], folders=["work", "absent"])
    monkeypatch.chdir(beside)
    assert allowed.missing_folders == ["absent"]
    for cwd, found in {
        str(tmp_path / "work"): inside.parent,
        f"{beside}/../work/inner/": inside,
        str(tmp_path / "link"): inside,
        "../work/not-there": inside.parent / "not-there",
    }.items():
        made = permitted(StepWork(command=("echo",), cwd=cwd), allowed)
        assert made.cwd == str(found.resolve())
    outside = ("", ".", "/", str(beside), str(tmp_path), f"{inside}/../../x", "../work/out")
    for cwd in (*outside, f"{tmp_path}/work/out/x"):
        with pytest.raises(NotAllowed, match="--allow-cwd "):
            permitted(StepWork(command=("echo",), cwd=cwd), allowed)
    assert permitted(StepWork(command=("echo",)), allowed).cwd is None
    anywhere = Allowlist(names=["echo"], anything=True)
    assert permitted(StepWork(command=("echo",), cwd="/"), anywhere).cwd == "/"


def test_a_command_is_checked_with_what_is_filled_in_last() -> None:
    work = StepWork(command=("echo", "-c", "x"), later={"command.0": ("/bin/sh",)})
    with pytest.raises(NotAllowed, match="--allow /bin/sh"):
        permitted(work)
    by_prompt = StepWork(command=("echo",), later={"command.0": ("", "prompt", "")})
    assert permitted(by_prompt, prompt="echo").command == (ECHO,)
    with pytest.raises(NotAllowed):
        permitted(by_prompt, prompt="/bin/sh")


def test_a_prompt_that_stands_in_a_command_ten_thousand_times_is_not_filled_in() -> None:
    work = StepWork(command=("echo", ""), later={"command.1": ("", "prompt") * 10_000})
    with pytest.raises(StepFailed, match="longer than"):
        permitted(work, prompt="x" * 2**20)


def test_work_that_was_not_checked_cannot_be_made_to_look_so() -> None:
    with pytest.raises(TypeError):
        PermittedWork(StepWork(command=("sh",)), object())
    made = permitted(StepWork(command=("echo",), env={"MINE": "x"}))
    with pytest.raises(AttributeError):
        made.command = ("sh",)
    with pytest.raises(TypeError):
        made.env["BASH_ENV"] = "x"  # type: ignore[index]


@pytest.mark.parametrize("name", ["BASH_ENV", "PATH", "LD_PRELOAD", "HOLDFAST_HOME", "mine"])
def test_a_step_sets_no_variable_that_the_worker_did_not_name(name: str) -> None:
    with pytest.raises(NotAllowed, match=f"--allow-env {name}"):
        permitted(StepWork(command=("echo",), env={name: "x"}))


@pytest.mark.parametrize("text", ["env.HOME", "secret.KEY", "env.HOLDFAST_TOKEN"])
def test_a_text_names_no_variable_that_the_worker_did_not_name(text: str) -> None:
    work = StepWork(command=("echo", ""), later={"command.1": ("", text, "")})
    with pytest.raises(NotAllowed, match=f"--allow-env {text.partition('.')[2]}"):
        permitted(work)


def test_a_variable_that_the_worker_named_is_set_and_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "mine-alone")
    later = {"command.1": ("<", "env.MINE", ">"), "env.MINE": ("", "secret.MINE", "")}
    made = permitted(StepWork(command=("echo", ""), env={"MINE": ""}, later=later))
    assert made.command == (ECHO, "<mine-alone>")
    assert made.env == {"MINE": "mine-alone"}


def test_the_file_of_secrets_is_there_to_be_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secrets"
    file.write_text("KEPT=of-the-file\n")
    file.chmod(0o600)
    environment = ALLOWED.readable_environment(
        {"HOLDFAST_SECRETS": str(file), "KEY": "of-the-worker"}
    )
    monkeypatch.setenv("KEY", "of-the-worker")
    work = StepWork(
        command=("echo",), env={"MINE": ""}, later={"env.MINE": ("", "secret.KEPT", "")}
    )
    made = permit_work(work, ALLOWED, Secrets("http://server", environment))
    assert made.env == {"MINE": "of-the-file"}


def test_a_server_takes_no_variable_from_commands_by_calling_it_a_secret() -> None:
    assert ALLOWED.secrets(frozenset({"PATH", "MINE"})) == {"MINE"}
    secrets = Secrets("http://server", ALLOWED.readable_environment({"PATH": "/usr/bin:/bin"}))
    secrets.expect_secrets(["PATH"])
    assert secrets.redaction.clean(b"/usr/bin:/bin") == b"/usr/bin:/bin"


def test_a_worker_that_allows_anything_allows_every_command_address_and_variable() -> None:
    allowed = Allowlist(anything=True)
    work = StepWork(command=("sh",), env={"BASH_ENV": "x"}, http=HttpCall(url="http://a/../b"))
    assert permitted(work, allowed).command == ("sh",)
    allowed.check_variable("HOME")


LENDING = Allowlist(names=["claude=edit", "codex=full"])


@pytest.mark.parametrize(
    ("preset", "access"), [("claude", "read"), ("claude", "edit"), ("codex", "full")]
)
def test_a_preset_is_lent_up_to_its_access(preset: str, access: str) -> None:
    use = AgentUse(preset=preset, access=access)
    assert permitted(StepWork(use=use), LENDING).use == use


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (AgentUse(preset="claude", access="full"), "up to access edit, and the step asks for"),
        (AgentUse(preset="gemini", access="read"), "not among those that this worker lends"),
        (AgentUse(preset="claude", access="root"), "asks for 'root'"),
        (AgentUse(preset="claude", flags=("--yolo",)), "flags of its own"),
        (AgentUse(preset="claude", mcp="servers.json"), "mcp of its own"),
    ],
)
def test_a_preset_that_is_not_lent_so_is_left_to_others(use: AgentUse, said: str) -> None:
    with pytest.raises(NotAllowed, match=said):
        permitted(StepWork(use=use), LENDING)
    assert permitted(StepWork(use=use), Allowlist(anything=True)).use == use


def test_an_allowed_command_of_the_name_of_a_preset_lends_no_preset() -> None:
    with pytest.raises(NotAllowed, match="`--allow claude=read`"):
        permitted(
            StepWork(use=AgentUse(preset="claude", access="read")), Allowlist(names=["claude"])
        )


@pytest.mark.parametrize("name", ["cloude=edit", "claude=root", "claude="])
def test_a_preset_that_cannot_be_lent_is_refused_at_the_start(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name}: "):
        Allowlist(names=[name])
