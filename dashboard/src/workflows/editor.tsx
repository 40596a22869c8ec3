/** A definition is typed or pasted, checked by the server while it is typed, and added. */

import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";

import { ApiError, sendDefinition } from "../api/client";
import { placeMistakes } from "../model/mistakes";
import { plural } from "../model/words";
import { describeRefusal, useActions } from "../parts/actions";
import { Glyph } from "../parts/marks";
import { Command } from "../parts/pieces";

const WAIT = 300;
const SAMPLE = `name: hello
input: {name: string}
steps:
  - {id: greet, run: [echo, "Hello {{ input.name }}"]}
`;

interface Mistake {
  line: number;
  column: number;
  message: string;
  hint?: string;
}

interface Checked {
  ok: boolean;
  mistakes: Mistake[];
  name?: string;
}

export function Editor(): ReactNode {
  const { tell } = useActions();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const [checked, setChecked] = useState<Checked>();
  const [refusal, setRefusal] = useState("");
  useEffect(() => {
    setChecked(undefined);
    setRefusal("");
    if (!text.trim()) return undefined;
    let left = false;
    const timer = setTimeout(() => {
      sendDefinition<Checked>("/workflows/validate", text).then(
        (told) => left || setChecked(told),
        (error: unknown) => left || setRefusal(describeRefusal(error)),
      );
    }, WAIT);
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [text]);
  const add = async () => {
    if (!checked?.ok) return;
    try {
      const told = await sendDefinition<{ name: string; created?: boolean }>("/workflows", text);
      await queries.invalidateQueries({ queryKey: ["workflows"] });
      tell(told.created === false ? `${told.name} is known already, just like this` : `${told.name} is added`);
      await navigate({ to: "/workflows/$name", params: { name: told.name } });
    } catch (error) {
      setRefusal(error instanceof ApiError ? error.message : describeRefusal(error));
    }
  };
  const mistakes = checked?.mistakes ?? [];
  return (
    <section className="panel">
      <header>
        <h2>Add a workflow, or a new version of one</h2>
        <span className="grow" />
        {mistakes.length ? (
          <span className="st st-failed small">
            <Glyph name="failed" />
            {plural(mistakes.length, "mistake")}, not added
          </span>
        ) : checked?.ok ? (
          <span className="st st-done small">
            <Glyph name="done" />
            {checked.name} is valid
          </span>
        ) : null}
      </header>
      <div className="body stack" style={{ gap: 12 }}>
        <textarea
          className="area mono"
          rows={Math.min(24, Math.max(6, text.split("\n").length + 1))}
          aria-label="Definition"
          spellCheck={false}
          value={text}
          placeholder={SAMPLE}
          onChange={(event) => setText(event.target.value)}
        />
        {refusal ? (
          <p className="mistake" role="alert">
            <Glyph name="failed" />
            <span>{refusal}</span>
          </p>
        ) : null}
        {mistakes.length ? (
          <div className="file" tabIndex={0} role="region" aria-label="Mistakes">
            {placeMistakes(text, mistakes).map((line) => (
              <div key={line.number}>
                <div className={`d${line.mistakes.length ? " bad" : ""}`}>
                  <i>{line.number}</i>
                  <span>{line.text}</span>
                </div>
                {line.mistakes.map((mistake) => (
                  <div key={`${mistake.column} ${mistake.message}`} className="say">
                    {mistake.message}
                    {mistake.hint ? <span className="quiet">; {mistake.hint}</span> : null}
                  </div>
                ))}
              </div>
            ))}
          </div>
        ) : null}
        <div className="line">
          <span className="grow">
            <Command bare text="holdfast workflow add FILE" />
          </span>
          <button type="button" className="btn primary" aria-disabled={!checked?.ok} onClick={() => void add()}>
            Add
          </button>
        </div>
      </div>
    </section>
  );
}
