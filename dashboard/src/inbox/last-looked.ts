/** When this browser last looked: the newest event that was seen while its page was shown. */

import { useState, useSyncExternalStore } from "react";

const KEY = "holdfast-last-looked";

export function readLastLooked(): string | undefined {
  return localStorage.getItem(KEY) ?? undefined;
}

/** The time as it was when this page was opened, and the way to set it to now. */
export function useLastLooked(): [string | undefined, () => void] {
  const [since, setSince] = useState(readLastLooked);
  return [
    since,
    () => {
      const now = new Date().toISOString();
      localStorage.setItem(KEY, now);
      setSince(now);
    },
  ];
}

const dismissed = new Set<string>(JSON.parse(localStorage.getItem("holdfast-dismissed") ?? "[]") as string[]);
const listeners = new Set<() => void>();
let version = 0;

/** Failures that somebody has read here are no news. */
export function useDismissed(): { has: (id: string) => boolean; dismiss: (id: string) => void } {
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => version,
  );
  return {
    has: (id) => dismissed.has(id),
    dismiss: (id) => {
      dismissed.add(id);
      localStorage.setItem("holdfast-dismissed", JSON.stringify([...dismissed].slice(-500)));
      version += 1;
      for (const listener of listeners) listener();
    },
  };
}
