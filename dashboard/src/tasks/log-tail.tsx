/** The last lines of the log of the newest attempt. */

import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { LONG_LINE, parseLine } from "../model/log";
import type { Task } from "../model/types";
import { plural } from "../model/words";
import { useLog } from "./use-log";

const LINES = 6;

export function LogTail({ task }: { task: Task }): ReactNode {
  const log = useLog(task.id, task.attempt, task.status === "running");
  if (log.error || (!log.loading && !log.lines.length)) return null;
  const first = Math.max(0, log.lines.length - LINES);
  return (
    <section>
      <header>
        <h2 className="sub">Log</h2>
        <span className="grow" />
        <Link className="link small" to="/tasks/$task" params={{ task: task.id }} search={{ tab: "log" }}>
          {plural(log.lines.length, "line")}
        </Link>
      </header>
      <div className="log small">
        <pre tabIndex={0} aria-label="End of the log">
          {log.lines.slice(first).map((line, at) => (
            <div key={first + at} className="l">
              <a>{first + at + 1}</a>
              <span>
                {parseLine(line.slice(0, LONG_LINE)).map((piece, index) => (
                  <span key={index} className={piece.className}>
                    {piece.text}
                  </span>
                ))}
              </span>
            </div>
          ))}
        </pre>
      </div>
    </section>
  );
}
