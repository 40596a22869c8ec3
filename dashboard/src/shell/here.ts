/** What can be done with the thing that a page shows, for the palette. */

import { useEffect, useSyncExternalStore } from "react";

export interface HereCommand {
  label: string;
  cli?: string;
  icon?: string;
  act: () => void;
}

export interface Here {
  title: string;
  commands: HereCommand[];
}

let here: Here | undefined;
const listeners = new Set<() => void>();

function set(next: Here | undefined): void {
  here = next;
  for (const listener of listeners) listener();
}

export function useOfferHere(title: string, commands: HereCommand[]): void {
  useEffect(() => {
    const own = { title, commands };
    set(own);
    return () => {
      if (here === own) set(undefined);
    };
  });
}

export function useHere(): Here | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => here,
  );
}
