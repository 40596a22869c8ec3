/** Activity by hour, as small bars: what was done, and what failed on top of it. */

import type { ReactNode } from "react";

import { describeClock } from "../model/words";

export interface HourBar {
  hour: string;
  done: number;
  failed: number;
  /** What is said on hover, beside the two numbers. */
  more?: string;
}

export function Hours({ bars, label, done }: { bars: HourBar[]; label: string; done: string }): ReactNode {
  const most = Math.max(1, ...bars.map((bar) => bar.done + bar.failed));
  const first = bars[0];
  return (
    <div className="stack">
      <div className="spark" role="img" aria-label={label}>
        {bars.map((bar) => (
          <i
            key={bar.hour}
            title={`${describeClock(bar.hour)} · ${bar.done} ${done} · ${bar.failed} failed${bar.more ? ` · ${bar.more}` : ""}`}
          >
            <b style={{ height: `${(100 * bar.done) / most}%` }} />
            <u style={{ height: `${(100 * bar.failed) / most}%` }} />
          </i>
        ))}
      </div>
      <div className="line small quiet spark-axis">
        <span>{first ? describeClock(first.hour) : ""}</span>
        <span>{label}</span>
        <span>now</span>
      </div>
    </div>
  );
}
