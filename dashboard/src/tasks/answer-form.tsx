/** What a person is asked: approve or reject with a reason, or answer a question. */

import { type ReactNode, useState } from "react";

import type { Task } from "../model/types";
import { describeValue } from "../model/words";
import type { TaskAction } from "./actions";

export function AnswerForm({ task, actions }: { task: Task; actions: TaskAction[] }): ReactNode {
  const [text, setText] = useState("");
  const asked = actions.filter((action) => ["approve", "reject", "answer"].includes(action.name));
  if (!asked.length) return null;
  const isQuestion = asked.some((action) => action.name === "answer");
  return (
    <section className="asked">
      <h2 className="sub">{isQuestion ? "It asks you" : "It waits for you"}</h2>
      {isQuestion ? <p>{describeValue(task.question)}</p> : <p>{task.title}</p>}
      <textarea
        className="area"
        rows={2}
        value={text}
        aria-label={isQuestion ? "Answer" : "Reason, or feedback for the agent"}
        placeholder={isQuestion ? "Answer" : "Reason, or feedback for the agent"}
        onChange={(event) => setText(event.target.value)}
      />
      <div className="line wrap">
        {asked.toReversed().map((action) => (
          <button
            key={action.name}
            type="button"
            className={`btn${action.primary ? " primary" : ""}${action.danger ? " danger" : ""}`}
            title={`${action.does} ${action.command}`}
            onClick={() => {
              action.act(text.trim() || undefined);
              if (action.name !== "reject") setText("");
            }}
          >
            {action.label}
          </button>
        ))}
      </div>
      <p className="small quiet">{asked.map((action) => `${action.label.replace("…", "")}: ${action.does}`).join(" ")}</p>
    </section>
  );
}
