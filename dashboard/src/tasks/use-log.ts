/** The log of an attempt, read on while the attempt runs. */

import { useEffect, useRef, useState } from "react";

import { fetchLog } from "../api/queries";
import { splitLines } from "../model/log";

export interface LogState {
  lines: string[];
  loading: boolean;
  error: unknown;
  bytes: number;
}

const EMPTY: LogState = { lines: [], loading: true, error: undefined, bytes: 0 };
const EVERY = 700;

export function useLog(task: string, attempt: number, running: boolean): LogState {
  const [state, setState] = useState<LogState>(EMPTY);
  const live = useRef(running);
  live.current = running;
  useEffect(() => {
    let stopped = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let start = 0;
    let text = "";
    setState(EMPTY);
    const read = async () => {
      const wasRunning = live.current;
      try {
        const told = await fetchLog(task, attempt, start);
        if (stopped) return;
        if (told.next > start) {
          text += told.text;
          start = told.next;
        }
        setState((before) =>
          before.loading || before.bytes !== start || before.error
            ? { lines: splitLines(text), loading: false, error: undefined, bytes: start }
            : before,
        );
      } catch (error) {
        if (stopped) return;
        setState((before) => ({ ...before, loading: false, error }));
      }
      // What it wrote last may come after its end.
      if (!stopped && (wasRunning || live.current)) timer = setTimeout(() => void read(), EVERY);
    };
    void read();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [task, attempt]);
  return state;
}
