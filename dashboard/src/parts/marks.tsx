/** Icons and marks, drawn from the symbols of the page. */

import type { ReactNode } from "react";

import type { Mark, MarkName } from "../model/marks";

export function Icon({ name }: { name: string }): ReactNode {
  return (
    <svg className="i" aria-hidden="true">
      <use href={`#i-${name}`} />
    </svg>
  );
}

/** A mark without its word has a name for those who do not see it. */
export function Glyph({ name, label }: { name: MarkName; label?: string }): ReactNode {
  return (
    <svg className={`g g-${name}`} {...(label ? { role: "img", "aria-label": label } : { "aria-hidden": true })}>
      {label ? <title>{label}</title> : null}
      <use href={`#g-${name}`} />
    </svg>
  );
}

export function Status({ mark, pill = false }: { mark: Mark; pill?: boolean }): ReactNode {
  return (
    <span className={`st st-${mark.name === "open" ? "running" : mark.name}${pill ? " pill" : ""}`}>
      <Glyph name={mark.name} />
      {mark.word}
    </span>
  );
}
