/** The keyboard: single letters, where no field has the focus, and `g` with a letter to go somewhere. */

import { useEffect, useRef } from "react";

export type Keys = Record<string, (event: KeyboardEvent) => void>;

const OFF = "holdfast-letters-off";

export function lettersAreOff(): boolean {
  return localStorage.getItem(OFF) === "1";
}

export function switchLetters(off: boolean): void {
  localStorage.setItem(OFF, off ? "1" : "0");
}

const NO_TEXT = "[type=range], [type=checkbox]";

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches(`input:not(${NO_TEXT}), textarea, select, [contenteditable]`);
}

/** A slider has the arrows for itself. */
function isTaken(event: KeyboardEvent): boolean {
  return isTyping(event.target) || (event.key.startsWith("Arrow") && (event.target as HTMLElement).matches(NO_TEXT));
}

/** Names a key as the tables here do: `Mod+k`, `g i`, `j`, `Escape`. */
function nameKey(event: KeyboardEvent, before: string): string[] {
  const mod = event.metaKey || event.ctrlKey ? "Mod+" : "";
  const alt = event.altKey ? "Alt+" : "";
  const key = event.key.length === 1 ? event.key : event.key;
  return before === "g" && !mod && !alt ? [`g ${key}`] : [`${mod}${alt}${key}`];
}

let previous = "";
let previousAt = 0;

/** Keys of a page; a later component's come first, and an event is handled once. */
export function useKeys(keys: Keys, active = true): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    if (!active) return undefined;
    const hear = (event: KeyboardEvent) => {
      if (event.defaultPrevented) return;
      const recent = Date.now() - previousAt < 1_500 ? previous : "";
      for (const name of nameKey(event, recent)) {
        const act = latest.current[name];
        if (!act) continue;
        const plain = !name.startsWith("Mod+");
        if (plain && (isTaken(event) || (lettersAreOff() && name.length < 4))) continue;
        if (document.querySelector("[role=dialog]") && name !== "Escape" && plain) continue;
        event.preventDefault();
        act(event);
        return;
      }
    };
    addEventListener("keydown", hear);
    return () => removeEventListener("keydown", hear);
  }, [active]);
}

addEventListener(
  "keydown",
  (event) => {
    queueMicrotask(() => {
      previous = isTyping(event.target) ? "" : event.key;
      previousAt = Date.now();
    });
  },
  true,
);
