/** The list of keys. */

import * as Dialog from "@radix-ui/react-dialog";
import { type ReactNode, useState } from "react";

import { lettersAreOff, switchLetters } from "./keyboard";

const KEYS: [string, string][] = [
  ["⌘K, Ctrl K", "find or do"],
  ["g i, g r, g q", "inbox, runs, queue"],
  ["g p, g w", "planning, workflows"],
  ["j, k", "next, previous"],
  ["Enter", "open"],
  ["/", "find on this page"],
  ["a, r", "approve, reject"],
  ["e", "answer, edit"],
  ["t", "retry"],
  ["c", "cancel (it is always asked)"],
  ["p", "pause or resume a run"],
  [".", "pause live, go live"],
  [", ;", "the event before, the event after"],
  ["x", "select"],
  ["y", "copy the link"],
  ["Esc", "close, clear, back to now"],
  ["n, Alt ↑ ↓", "a plan: add a part, move it"],
  ["s", "start a run"],
];

export function KeysHelp({ close }: { close: () => void }): ReactNode {
  const [off, setOff] = useState(lettersAreOff);
  return (
    <Dialog.Root open onOpenChange={(open) => (open ? undefined : close())}>
      <Dialog.Portal>
        <Dialog.Overlay className="scrim" />
        <Dialog.Content className="dialog floating" aria-describedby={undefined}>
          <Dialog.Title className="dialog-title">Keys</Dialog.Title>
          <dl className="keys">
            {KEYS.map(([keys, does]) => (
              <div key={keys} style={{ display: "contents" }}>
                <dt>
                  <kbd>{keys}</kbd>
                </dt>
                <dd>{does}</dd>
              </div>
            ))}
          </dl>
          <label className="line small">
            <input
              type="checkbox"
              className="check"
              checked={off}
              onChange={(event) => {
                switchLetters(event.target.checked);
                setOff(event.target.checked);
              }}
            />
            Turn single letters off
          </label>
          <div className="line">
            <span className="grow" />
            <Dialog.Close className="btn">Close</Dialog.Close>
          </div>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
