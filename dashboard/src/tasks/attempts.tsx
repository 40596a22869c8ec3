/** The attempts of a task, newest first. */

import type { ReactNode } from "react";

import { useNow } from "../api/live";
import { markOutcome } from "../model/marks";
import type { Attempt, Task } from "../model/types";
import { describeClockWithSeconds, describeDuration, describeFailure, describeMoney } from "../model/words";
import { Glyph } from "../parts/marks";

export function Attempts(props: {
  attempts: Attempt[];
  task: Task;
  chosen?: number | undefined;
  choose?: (attempt: number) => void;
}): ReactNode {
  const { attempts, chosen, choose } = props;
  const now = useNow(1_000, attempts.some((attempt) => attempt.ended_at === undefined));
  return (
    <div className="attempts">
      {attempts.toReversed().map((attempt) => {
        const mark = markOutcome(attempt.outcome);
        const end = attempt.ended_at ? Date.parse(attempt.ended_at) : now;
        const cost = attempt.usage?.usd === undefined ? "" : ` · ${describeMoney(attempt.usage.usd)}`;
        const reason = describeFailure(attempt.error);
        const when = attempt.ended_at
          ? `${describeClockWithSeconds(attempt.claimed_at)} to ${describeClockWithSeconds(attempt.ended_at)}`
          : `from ${describeClockWithSeconds(attempt.claimed_at)}`;
        return (
          <button
            key={attempt.attempt}
            type="button"
            className="att"
            aria-current={chosen === attempt.attempt || undefined}
            onClick={() => choose?.(attempt.attempt)}
            title={reason || when}
          >
            <Glyph name={mark.name} />
            <span>{attempt.attempt}</span>
            <span>{mark.word}</span>
            <span className="quiet small">
              {describeDuration(end - Date.parse(attempt.claimed_at))}
              {cost}
            </span>
            <span className="b">
              {attempt.owner} · {reason || when}
            </span>
          </button>
        );
      })}
    </div>
  );
}
