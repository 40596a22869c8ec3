/** Saved views: filters of the runs that this browser keeps under a name. */

import { useSyncExternalStore } from "react";

const KEY = "holdfast-views";

export interface SavedView {
  name: string;
  search: Record<string, string>;
}

const listeners = new Set<() => void>();
let kept: SavedView[] = read();

function read(): SavedView[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? (found as SavedView[]) : [];
  } catch {
    return [];
  }
}

function write(views: SavedView[]): void {
  kept = views;
  localStorage.setItem(KEY, JSON.stringify(views));
  for (const listener of listeners) listener();
}

export function saveView(view: SavedView): void {
  write([...kept.filter((each) => each.name !== view.name), view]);
}

export function removeView(name: string): void {
  write(kept.filter((each) => each.name !== name));
}

export function useViews(): SavedView[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => kept,
  );
}
