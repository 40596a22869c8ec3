"""Mistakes in a workflow file: each is told with its place, and what was probably meant."""

from __future__ import annotations

import pytest

from holdfast.definition.key_names import KEY_NAMES
from holdfast.definition.keys import SECTIONS
from holdfast.errors import InvalidWorkflowFile
from holdfast.model.workflow.template import MAX_VARIABLES, ROOTS
from tests.unit.definition.workflow_files import FEATURE, mistakes, read

ONE = "name: w\nagents: {dev: {command: [dev]}}\nsteps:\n"


@pytest.mark.parametrize(
    ("marked", "message", "hint"),
    [
        ("  - {id: a, ¦rnu: [x]}", "step has no key 'rnu'", "did you mean 'run'?"),
        ("  - {id: a, run: [x], needs: [¦b]}", "'a' needs 'b', which is not a step", ""),
        (
            "  - {id: first, run: [x]}\n  - {id: b, run: [x], needs: [¦frist]}",
            "needs 'frist'",
            "did you mean 'first'?",
        ),
        ("  - {id: a, run: [x], needs: ¦[b]}\n  - {id: b, run: [x]}", "cycle: a → b → a", ""),
        (
            (
                "  - {id: a, run: [x], needs: [a]}\n  - {id: b, run: [x], needs: ¦[c]}\n"
                "  - {id: c, run: [x], needs: [b]}\n  - {id: d, run: [x], needs: [e, no]}\n"
                "  - {id: e, run: [x], needs: [d]}"
            ),
            "cycle: b → c → b",
            "",
        ),
        (
            (
                "  - {id: d, run: [x], needs: ¦[e, no]}\n  - {id: e, run: [x], needs: [d]}\n"
                "  - {id: b, run: [x], needs: [c]}\n  - {id: c, run: [x], needs: [b]}"
            ),
            "cycle: d → e → d",
            "",
        ),
        (
            (
                "  - {id: a, run: [x], needs: [no]}\n"
                "  - {id: b, run: [x], needs: [], on_failure: {goto: ¦c}}\n  - {id: c, run: [x]}"
            ),
            "'b' goes back to 'c', which it does not need",
            "",
        ),
        (
            "  - {id: a, run: [x]}\n  - {id: b, approval: ok, on_failure: ¦skip}",
            "a rejected approval fails, or goes back",
            "",
        ),
        (
            "  - {id: a, run: [x]}\n  - {id: b, approval: ok, on_failure: {goto: ¦c}}",
            "'b' goes to 'c', which is no step beside it",
            "",
        ),
        ("  - {id: a, http: ¦web}", "'web' is no URL", "write https://"),
        ("  - {id: a, http: {url: ¦'ftp://x', mehtod: PUT}}", "is no URL", "write https://"),
        ("  - {id: a, run: [x]\n  ¦- {id: b}", "did not find", "which begins at 4:5"),
        ("  - id: a\n¦\trun: [x]", "a tab, where YAML takes spaces", "indent by spaces"),
        ("  - {id: a, agent: ¦dve}", "'dve' is not one of the agents", "mean 'dev'?"),
        ("  - {id: a, run: ¦npm test}", "run: must be a list", "write [npm, test]"),
        (
            "  - id: a\n    run: ¦|\n      npm ci\n      npm test",
            "run: must be a list",
            'write [sh, -c, "npm ci && npm test"]',
        ),
        ("  - {id: a, run: ¦'echo \"a b\" 1.0'}", "must be a list", 'write [echo, "a b", "1.0"]'),
        (
            "  - {id: a, run: ¦'grep {{ input.x }} * | wc'}",
            "must be a list",
            """write [sh, -c, 'grep "$INPUT_X" * | wc'] and env: {INPUT_X: "{{ input.x }}"}""",
        ),
        (
            "  - id: a\n    run: ¦|\n      if x\n      then y\n      fi",
            "must be a list",
            "put it into a file",
        ),
        ("  - {id: a, run: [ls, ¦~/x]}", "no shell reads", 'write "{{ env.HOME }}/x"'),
        ("  - {id: a, run: [ls, ¦$PLACE]}", "'$PLACE' stays as it is", '"{{ env.PLACE }}"'),
        ("  - {id: a, run: [sh, ./x.sh, ¦'${A}/b']}", "'${A}/b' stays", 'write "{{ env.A }}/b"'),
        ("  - {id: a, run: [cat, ¦$HOLDFAST_INPUT]}", "no shell reads", "write [sh, -c, 'command"),
        (
            "  - {id: a, run: [x, ¦'--for=${{ input.y }}']}",
            "has a $ before its variable",
            'write "--for={{ input.y }}"',
        ),
        ("  - {id: a, for_each: ¦{{ input.l }}}", "needs quotes", 'for_each: "{{ input.l }}"'),
        ("  - {id: a, run: [x, ¦{{ input.y }}]}", "needs quotes", 'it: "{{ input.y }}"'),
        ("  - id: a\n    title: Fix¦: it", "mapping values are not", 'title: "Fix: it"'),
        ("  - {id: a, title: Fix¦: it, run: [x]}", "did not find", 'title: "Fix: it"'),
        ('  - id: a\n    title: "a" ¦b\n    run: [x]', "expected key", "title: '\"a\" b'"),
        ("  - id: a\n    title: ¦*it\n", "named &it", 'title: "*it"'),
        ("  - id: a\n    title: ¦!it x\n", "tags such as !it", "leave the tag out"),
        ("  - {id: a, run: [x], ¦if: y}", "no key 'if'", "mean 'when'? it takes one variable"),
        ("  - {id: a, run: [x], ¦depends_on: [b]}", "no key 'depends_on'", "mean 'needs'?"),
        ("  - {id: a, run: [x], ¦dependsOn: [b]}", "no key 'dependsOn'", "mean 'needs'?"),
        (
            "  - {id: a, run: [x], ¦retries: 2}",
            "no key 'retries'",
            "mean 'max_attempts'? it counts the first attempt too",
        ),
        ("  - {¦name: a, run: [x]}", "no key 'name'", "mean 'id'?"),
        ("  - {id: a, ¦name: b, run: [x]}", "no key 'name'", "mean 'title'?"),
        ("  - ¦{id: a}", "says nothing to do", "give it agent and prompt"),
        ("  - {id: a, run: [x], ¦http: y}", "one of 'run' and 'http'", ""),
        ("  - {id: a, agent: dev, ¦run: [x]}", "one of 'agent' and 'run'", ""),
        ("  - {id: a, run: [x]}\n  - {id: ¦a, run: [x]}", "'a' is defined 2 times", ""),
        ("  - {id: a, run: [x], timeout: ¦5 minutes}", "is not a duration", ""),
        ("  - {id: a, run: [x], timeout: ¦-5}", "must be between 0 seconds", ""),
        ("  - {id: a, run: [x], max_attempts: ¦0}", "from 1 to 1000000", ""),
        ("  - {id: a, run: [x], on_failure: ¦sikp}", "one of fail", "mean 'skip'?"),
        ("  - {id: a, run: [x], verifies: ¦a}", "'a' verifies 'a'", ""),
        ("  - {id: a, run: [x], ¦max_rounds: 2}", "those of a verifier", "goto"),
        ("  - {id: a, for_each: ¦item.x, steps: []}", "item.x stands in no loop", ""),
        ("  - {id: a, for_each: input.l, ¦prompt: x}", "a loop has no 'prompt'", ""),
        ("  - {id: a, approval: 'y?', ¦timeout: 5m}", "an approval has no 'timeout'", ""),
        ("  - {id: a, run: [x], ¦input: {b: 1}}", "a step that does work has no 'input'", ""),
        ("  - {id: a, run: ['{{ ¦imput.x }}']}", "begins with none of input", ""),
        ("  - {id: a, run: ['¦{{ x y }}']}", "'{{ x y }}' is no variable", ""),
        (
            "  - {id: a, run: [x], env: {¦A=B: x}}",
            "env: 'A=B' is no name of a variable",
            "letters, digits and _",
        ),
        ("  - {id: a, run: [x], env: {¦HOLDFAST_TOKEN: x}}", "no name of a variable", ""),
        (
            """  - {id: a, run: [x], outputs: {n: int, l: [string]}}
  - {id: b, run: ['{{ ¦steps.a.n.x }}']}""",
            "steps.a.n.x: there is no 'x'; there is nothing",
            "",
        ),
        (
            """  - {id: a, run: [x], outputs: {n: int, l: [string]}}
  - {id: b, run: ['{{ steps.a.l.0 }} {{ ¦steps.a.l.first }}']}""",
            "there is no 'first'",
            "",
        ),
        ("  - {id: a, run: ['{{ ¦item }}']}", "item stands in no loop", ""),
        ("  - {id: a, run: ['{{ ¦subject }}']}", "subject is what a step verifies", ""),
        ("  - {id: a, run: ['{{ ¦steps.b }}']}", "'b' is no step it can see", ""),
        ("  - {id: a, run: ['{{ ¦steps.a }}']}", "'a' is not done before", ""),
        ("  - {id: a, run: ['{{ ¦run.od }}']}", "there is no 'od'", ""),
        ("  - {id: a, run: ['{{ ¦env.HOME }}']}", "env.HOME is not allowed", "env: [HOME]"),
        ("  - {id: a, run: ['{{ ¦secret.X }}']}", "a secret goes into `env:`", ""),
        ("  - {id: a, run: [x], cwd: '{{ ¦secret.X }}'}", "a secret goes into `env:`", ""),
        ("  - {id: a, http: 'http://h/', ¦cwd: /tmp}", "without a command has no 'cwd'", ""),
        ("  - {id: a, run: [x], ¦working-directory: /tmp}", "no key", "did you mean 'cwd'?"),
        ("  - {id: a, run: [x], prompt: '{{ ¦prompt }}'}", "prompt is not known there", ""),
        ("  - {id: a, run: ['{{ ¦feedback.x }}']}", "feedback has no parts", ""),
        (
            """  - {id: a, run: [x], outputs: {story: string}}
  - {id: b, run: [y, '{{ ¦steps.a.stories }}']}""",
            "there is no 'stories'",
            "did you mean 'story'?",
        ),
        (
            """  - {id: a, run: [x], outputs: {n: int}}
  - {id: b, for_each: ¦steps.a.n, steps: [{id: c, run: [x]}]}""",
            "steps.a.n is no list",
            "",
        ),
        ("  - {id: a, run: [x], outputs: {n: ¦intt}}", "'intt' is no type", "mean 'int'?"),
        ("  - {id: a, run: [x], outputs: {n: ¦5}}", "cannot be a number", "write string"),
        (
            "  - {id: a, run: [x], outputs: {n: {type: int, default: ¦x}}}",
            "the default must be a whole number, not text",
            "",
        ),
        (
            "  - {id: a, run: [x], outputs: {n: {type: string, ¦pattern: x}}}",
            "'pattern' is not checked here",
            "",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(marked: str, message: str, hint: str) -> None:
    before = f"{ONE}{marked}".partition("¦")[0]
    told = mistakes(f"{ONE}{marked}\n".replace("¦", ""))
    near = [each for each in told if message in each[2]]
    assert near, told
    assert near[0][:2] == (before.count("\n") + 1, len(before) - before.rfind("\n")), near
    assert hint in near[0][3]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("steps: [{id: a, run: [x]}]\n", (1, 1), "workflow has no 'name'"),
        ("name: w\n", (1, 1), "workflow has no 'steps'"),
        ("name: w\nsteps: []\n", (1, 1), "has no steps"),
        ("name: w\nsteps: {}\n", (2, 8), "steps must be a list, not a mapping"),
        ("name: w\nsteps: [a]\n", (2, 9), "step must be a mapping, not text"),
        ("name: w\nagents: {a: {}}\nsteps: [{id: a, agent: a}]\n", (2, 13), "has no command"),
        ("name: w\nagents: {a: {use: me}}\nsteps: [{id: a, agent: a}]\n", (2, 19), "no preset is"),
        (
            "name: w\nagents: {a: {use: aider, access: full}}\nsteps: [{id: a, agent: a}]\n",
            (2, 34),
            "agent 'a': access: the preset 'aider' has no access full",
        ),
        (
            "name: w\nagents: {a: {use: codex, turns: 3}}\nsteps: [{id: a, agent: a}]\n",
            (2, 26),
            "agent 'a': turns: the preset 'codex' has none, as Codex takes no limit of turns",
        ),
        (
            "name: w\nagents: {a: {use: codex, access: ro}}\nsteps: [{id: a, agent: a}]\n",
            (2, 34),
            "access: must be one of read, edit, full",
        ),
        (
            "name: w\nagents: {a: {use: codex, command: [x]}}\nsteps: [{id: a, agent: a}]\n",
            (2, 14),
            "uses a preset and has a command",
        ),
        (
            "name: w\nagents: {a: {external: true, turns: 3}}\nsteps: [{id: a, agent: a}]\n",
            (2, 30),
            "'turns' is for an agent with a preset",
        ),
        (
            "name: w\nagents: {a: {use: codex}}\nsteps: [{id: a, agent: a, run: [x]}]\n",
            (3, 27),
            "a step has one of 'agent' and 'run'",
        ),
        (
            "name: w\nconcurrency: 'k:{{ steps.a }}'\nsteps: [{id: a, run: [x]}]\n",
            (2, 20),
            "steps is not known there; one of input is",
        ),
        (
            "name: w\nlabels: {a: '{{ steps.a }}'}\nsteps: [{id: a, run: [x]}]\n",
            (2, 17),
            "steps is not known there; one of input is",
        ),
        (
            "name: w\ninput: {b: int}\nlabels: {a: '{{ input.c }}'}\nsteps: [{id: a, run: [x]}]\n",
            (3, 17),
            "there is no 'c'",
        ),
        ("name: w\nlabels: {'a b': c}\nsteps: [{id: a, run: [x]}]\n", (2, 10), "is no name"),
        ("name: w\nlabels: [a]\nsteps: [{id: a, run: [x]}]\n", (2, 9), "must be a mapping"),
        ("name: w\nname: v\nsteps: [{id: a, run: [x]}]\n", (2, 1), "'name' is here a second time"),
        ("name: w\ninput: [a]\nsteps: [{id: a, run: [x]}]\n", (2, 8), "mapping of names to types"),
        ("name: w\nenv: {A: b}\nsteps: [{id: a, run: [x]}]\n", (2, 6), "not a mapping"),
        ("name: 12\nsteps: [{id: a, run: [x]}]\n", (1, 7), "must be text, not a number"),
        ("name: w\n  steps: [x\n", (2, 8), "mapping values are not allowed"),
    ],
)
def test_a_mistake_of_the_whole_file_is_told_with_its_place(
    text: str, place: tuple[int, int], message: str
) -> None:
    told = mistakes(text)
    assert any(each[:2] == place and message in each[2] for each in told), told


def test_values_of_variables_at_the_top_are_told_where_they_go() -> None:
    ((*_, hint),) = mistakes("name: w\nenv: {A: b}\nsteps: [{id: a, run: [x]}]\n")
    assert hint == "here stand names alone; a step or an agent sets values: env: {NAME: value}"


def test_a_name_that_another_tool_gives_to_a_key_is_no_key_here() -> None:
    for section in SECTIONS:
        for key, names in KEY_NAMES.get(section.name, {}).items():
            assert section.known[key].supported
            assert not section.known.keys() & set(names.split()), (section.name, key)


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    text = (
        FEATURE.replace("input.task", "input.tsk")
        .replace("agent: developer", "agent: develper")
        .replace("goto: build", "goto: bild")
        .replace("item.acceptance", "item.accept")
        .replace("usd: 5", "usd: -5")
    )
    told = mistakes(text)
    assert [line for line, *_ in told] == [6, 14, 20, 22, 23]
    assert [hint for *_, hint in told] == [
        "",
        "did you mean 'task'?",
        "did you mean 'developer'?",
        "did you mean 'acceptance'?",
        "did you mean 'build'?",
    ]


def test_every_mistake_of_one_text_is_told_at_its_place() -> None:
    text = "{{ item.x }} {{ item }} v{{ x y }} {{ imput.a }} {{ imput.b }} {{ feedback }} {{ input"
    line = f"  - {{id: a, run: ['{text}']}}"
    found = mistakes(f"{ONE}{line}\n")
    assert [(line[column - 1 :].partition(" ")[0], hint) for _, column, _, hint in found] == [
        ("item.x", ""),
        ("item", ""),
        ("{{", ""),
        ("imput.a", "did you mean 'input'?"),
        ("imput.b", "did you mean 'input'?"),
        ("{{", ""),
    ]
    assert [message.split(": ")[-1].split(";")[0] for *_, message, _ in found] == [
        "item.x stands in no loop",
        "item stands in no loop",
        "'{{ x y }}' is no variable",
        *(f"'imput.{name}' begins with none of {', '.join(ROOTS)}" for name in "ab"),
        "'{{ input…' is no variable",
    ]


def test_a_text_of_too_many_variables_is_told_as_that() -> None:
    text = " {{ input.x }}" * (MAX_VARIABLES + 1)
    ((_, _, message, _),) = mistakes(f"{ONE}  - {{id: a, run: ['{text}']}}\n")
    assert message == f"step 'a': command.0: has more than {MAX_VARIABLES} variables"


def test_a_mistake_of_one_of_two_steps_of_one_name_is_told_where_it_was_made() -> None:
    found = mistakes(
        f"{ONE}  - {{id: a, for_each: input.l, steps: []}}\n"
        "  - {id: b, run: [x, '{{ nope }}']}\n"
        "  - {id: a, run: [x]}\n"
        "  - {id: b, run: [x], priority: 1073741824}\n"
        "  - {id: b, run: [x]}\n"
    )
    assert [(line, message.partition(" of ")[0]) for line, _, message, _ in found] == [
        (4, "step 'a' is a loop without steps"),
        (5, "step 'b': command.1: 'nope' begins with none"),
        (6, "step 'a' is defined 2 times"),
        (7, "priority: must be a whole number from -1073741823 to 1073741823"),
        (8, "step 'b' is defined 3 times"),
    ]


def test_a_mistake_shows_the_line_itself_with_a_caret_under_it() -> None:
    with pytest.raises(InvalidWorkflowFile) as refused:
        read(f"{ONE}  - {{id: a, run: [x], needs: [b]}}\n")
    assert str(refused.value) == (
        "flow.yaml:4:31: step 'a' needs 'b', which is not a step\n"
        "      - {id: a, run: [x], needs: [b]}\n"
        "                                  ^"
    )


def test_a_line_that_would_move_the_cursor_is_shown_without_that() -> None:
    with pytest.raises(InvalidWorkflowFile) as refused:
        read('{"name": "w", "steps": [{"id": "\\u001b[2J", "\x9b": 1}]}', "w.json")
    assert not {"\x1b", "\x9b"} & set(str(refused.value))


def test_a_word_in_a_text_of_several_lines_is_pointed_at() -> None:
    prompt = "|\n      Do this,\n      {{ run.x }} now\n"
    ((line, column, *_),) = mistakes(f"{ONE}  - id: a\n    agent: dev\n    prompt: {prompt}")
    assert (line, column) == (8, 10)


@pytest.mark.parametrize(
    "command",
    [
        """[sh, -c, 'cp ~/x "$Y"']""",
        "[sh, -c, $X]",
        "[env, A=1, /bin/bash, -lc, $X, bash, $1]",
        "[awk, $NF, file]",
        "[sed, s/a$/b/, $]",
        "[grep, 'a~/b$']",
        "[ssh, host, ls, ~/x, $HOME]",
        "[sudo, jq, $ENV]",
    ],
)
def test_an_argument_that_somebody_reads_is_no_mistake(command: str) -> None:
    (step,) = read(f"name: w\nsteps:\n  - {{id: a, run: {command}}}\n").steps
    assert step.work is not None
