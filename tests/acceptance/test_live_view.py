"""The live view of a run on small terminals, as a person sees it: row by row."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path

from tests.acceptance.terminals import Screen, Terminal, holdfast, terminal

STORIES = """
name: feature
agents:
  developer: {command: [sh, developer.sh], env: {TITLE: "{{ item.title }}"}}
  verifier: {command: [sh, verifier.sh], env: {TITLE: "{{ item.title }}"}}
steps:
  - id: plan
    run: [sh, plan.sh]
    outputs: {stories: [{title: string}]}
  - id: build
    for_each: "{{ steps.plan.stories }}"
    parallel: 8
    title: "{{ item.title }}"
    steps:
      - {id: implement, agent: developer, prompt: "{{ feedback }}"}
      - {id: verify, agent: verifier, verifies: implement, prompt: "Look"}
  - {id: test, run: [echo, '{"passed": 48}'], outputs: {passed: integer}}
"""
PLAN = """
printf '{"stories": ['
for n in 1 2 3 4 5 6 7 8 9 10; do
  printf '{"title": "Story %s of people of other companies"},' $n
done
echo '{"title": "Logout"}]}'
"""
# Blue text, as agents write it. The first round waits for `go`, the second for `again`.
DEVELOPER = """
printf '\\033[34mediting\\033[0m the %s\\n' "$TITLE"
[ -n "$HOLDFAST_PROMPT" ] && wait=again || wait=go
until [ -e $wait ]; do sleep 0.05; done
"""
VERIFIER = """
case "$TITLE" in
  Logout) if [ -e rejected ]; then echo '{"verdict": "accept"}'
          else touch rejected; echo '{"verdict": "reject", "feedback": "it has no test"}'; fi;;
  *) echo '{"verdict": "accept"}';;
esac
"""
FILES = {
    "feature.yaml": STORIES,
    "plan.sh": PLAN,
    "developer.sh": DEVELOPER,
    "verifier.sh": VERIFIER,
    "holdfast.yaml": "concurrency: {agents: 8}\n",
}
RUN = ("run", "feature.yaml", "--key", "k", "--wait")


def look_until(screen: Terminal, size: tuple[int, int], shows: Callable[[str], bool]) -> Screen:
    """Read until what a person sees is as wanted."""
    screen.read_until(lambda: shows("\n".join(screen.look(*size).rows)))
    return screen.look(*size)


def test_a_small_terminal_shows_every_running_story_and_the_result(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    standard, narrow = (80, 24), (40, 12)
    with terminal(tmp_path, *RUN, size=standard) as screen:
        seen = look_until(screen, standard, lambda text: text.count("└ editing the Story") == 8)
        steps = [row for row in seen.rows if "→ implement" in row]
        assert [int(row.split()[1]) for row in steps] == [*range(1, 9)]
        lines = [row for row in seen.rows if "└ editing" in row]
        assert all(re.search(r"s ago$", row) for row in lines)
        assert any(re.fullmatch(r"  ○ 3 waiting", row) for row in seen.rows), seen.rows
        assert seen.wrapped == []
        screen.child.send_signal(signal.SIGINT)
        screen.until("End it: holdfast cancel r_")
        left = screen.look(*standard)
        (tmp_path / "go").touch()
        assert screen.ends() == 130
    told = "\n".join([*left.gone, *left.rows])
    assert told.count("→ implement") == told.count("└ editing the Story") == 8, told
    assert told.index("○ 3 waiting") < told.index("was left as it is. Come back: holdfast show r_")
    with terminal(tmp_path, *RUN, size=narrow) as screen:
        sent_back = re.compile(r"^    ● implement .*round 2: .it.*…$", re.MULTILINE)
        seen = look_until(
            screen,
            narrow,
            lambda text: bool(sent_back.search(text)) and "  ✓ 9 done" in text.splitlines(),
        )
        assert seen.wrapped == []
        (tmp_path / "again").touch()
        assert screen.ends() == 0
    *_, ended, _, output, _, following, _, _ = screen.text.split("\n")
    assert re.fullmatch(r"completed after .*s", ended)
    assert output == '  "passed": 48'
    assert following.startswith("next:  holdfast show r_")
    assert holdfast(tmp_path, *following.split()[2:]).returncode == 0
