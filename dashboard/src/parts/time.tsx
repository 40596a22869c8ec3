/** Moments and durations in words, with the exact moment on hover. */

import type { ReactNode } from "react";

import { useNow } from "../api/live";
import { describeAge, describeClock, describeDuration, describeExactly, describeUntil } from "../model/words";

export function Clock({ at }: { at: string }): ReactNode {
  return (
    <time dateTime={at} title={describeExactly(at)}>
      {describeClock(at)}
    </time>
  );
}

export function Age({ since }: { since: string }): ReactNode {
  const now = useNow();
  return (
    <time dateTime={since} title={describeExactly(since)}>
      {describeAge(now - Date.parse(since))}
    </time>
  );
}

export function Until({ at }: { at: string }): ReactNode {
  const now = useNow();
  return (
    <time dateTime={at} title={describeExactly(at)}>
      {describeUntil(at, now)}
    </time>
  );
}

export function Took({ from, to }: { from: string; to?: string | undefined }): ReactNode {
  const now = useNow(1_000, to === undefined);
  const end = to === undefined ? now : Date.parse(to);
  return <span title={`since ${describeExactly(from)}`}>{describeDuration(end - Date.parse(from))}</span>;
}
