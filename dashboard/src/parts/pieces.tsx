/** Small pieces that all pages are made of. */

import { type ReactNode, useEffect, useRef, useState } from "react";

import type { MarkName } from "../model/marks";
import type { Clause, Why } from "../model/types";
import { Glyph, Icon } from "./marks";

/** The command-line form of something, to copy. */
export function Command({ text, bare = false }: { text: string; bare?: boolean }): ReactNode {
  const [copied, setCopied] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = () => {
    void copyText(text);
    setCopied(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setCopied(false), 2_000);
  };
  return (
    <div className={`cmd${bare ? " bare" : ""}`}>
      <span title={text}>{text}</span>
      {copied ? <em className="copied">Copied</em> : null}
      <button type="button" aria-label="Copy the command" onClick={copy}>
        <Icon name="copy" />
      </button>
    </div>
  );
}

export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  // Without TLS a browser has no clipboard for pages of other machines.
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export function Banner(props: {
  kind?: "held" | "failed" | "info" | "plain" | "past";
  mark: MarkName;
  title: string;
  children?: ReactNode;
  command?: string | undefined;
  action?: ReactNode;
}): ReactNode {
  const { kind = "held", mark, title, children, command, action } = props;
  return (
    <div className={`banner ${kind}`} role={kind === "failed" ? "alert" : "status"}>
      <Glyph name={mark} />
      <p className="grow">
        <b className="medium">{title}</b> <span className="second">{children}</span>
      </p>
      {command ? <Command text={command} /> : null}
      {action}
    </div>
  );
}

export interface MeterPart {
  kind: "done" | "running" | "failed" | "held" | "ink";
  share: number;
}

export function Meter({ parts, label, width }: { parts: MeterPart[]; label: string; width?: number }): ReactNode {
  return (
    <span className="meter" role="img" aria-label={label} title={label} style={width ? { width } : { flex: 1 }}>
      {parts.map((part) => (
        <i key={part.kind} className={part.kind} style={{ width: `${100 * part.share}%` }} />
      ))}
    </span>
  );
}

export function Empty(props: { icon: string; title: string; children?: ReactNode }): ReactNode {
  return (
    <div className="empty">
      <Icon name={props.icon} />
      <h2>{props.title}</h2>
      {props.children}
    </div>
  );
}

/** Rows that keep their place; shown only where data is slow. */
export function Skeleton({ rows = 5 }: { rows?: number }): ReactNode {
  const [shown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), 200);
    return () => clearTimeout(timer);
  }, []);
  if (!shown) return null;
  return (
    <div className="body stack skeletons" aria-label="Loading">
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} className="skel" style={{ width: `${92 - ((row * 17) % 40)}%` }} />
      ))}
    </div>
  );
}

export function Problem({ error, retry }: { error: unknown; retry?: () => void }): ReactNode {
  const said = error instanceof Error ? error.message : String(error);
  return (
    <Banner
      kind="failed"
      mark="failed"
      title="This cannot be shown:"
      action={
        retry ? (
          <button type="button" className="btn" onClick={retry}>
            Try again
          </button>
        ) : null
      }
    >
      {said}.
    </Banner>
  );
}

/** One line for each condition: those that hold are quiet, the others say what is missing. */
export function Clauses({ clauses, hideQuiet = false }: { clauses: Clause[]; hideQuiet?: boolean }): ReactNode {
  const told = clauses.filter((clause) => !clause.ok || clause.detail);
  const quiet = hideQuiet ? [] : clauses.filter((clause) => clause.ok && !clause.detail);
  return (
    <>
      <ul className="why">
        {told.map((clause) => (
        <li key={clause.name} className={clause.ok ? "yes" : "no"}>
          <Glyph name={clause.ok ? "done" : "failed"} label={clause.ok ? "holds" : "does not hold"} />
          <span>{clause.name}</span>
          <span>
            {clause.detail || "no"}
            {clause.more?.map((line) => (
              <span key={line} className="quiet more-line">
                {line}
              </span>
            ))}
          </span>
        </li>
      ))}
      </ul>
      {quiet.length ? (
        <ul className="why ticks" aria-label="What holds">
          {quiet.map((clause) => (
            <li key={clause.name} className="yes">
              <Glyph name="done" label="holds" />
              {clause.name}
            </li>
          ))}
        </ul>
      ) : null}
    </>
  );
}

export function titleOfWhy({ status }: { status: string }): string {
  return status === "running" || status === "done" ? "Where it stands" : "Why it is not running";
}

export function Fixes({ why }: { why: Why }): ReactNode {
  if (!why.fixes.length && !why.looks.length) return null;
  return (
    <div className="stack">
      {why.fixes.length ? <span className="small quiet">What would change it</span> : null}
      {why.fixes.map((fix) => (
        <Command key={fix} text={fix} />
      ))}
      {why.looks.length ? <span className="small quiet">What tells more</span> : null}
      {why.looks.map((look) => (
        <Command key={look} text={look} />
      ))}
    </div>
  );
}

export function JsonView({ value, label }: { value: unknown; label: string }): ReactNode {
  if (value === undefined || value === null) return <p className="quiet small">There is none.</p>;
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return (
    <div className="log value">
      <pre tabIndex={0} aria-label={label}>
        {text}
      </pre>
    </div>
  );
}

export function Search(props: {
  value: string;
  onChange: (value: string) => void;
  label: string;
  placeholder?: string;
  width?: number;
  after?: ReactNode;
  onKeyDown?: (event: React.KeyboardEvent<HTMLInputElement>) => void;
}): ReactNode {
  return (
    <label className="field find" style={props.width ? { width: props.width, flex: "none" } : undefined}>
      <Icon name="search" />
      <input
        value={props.value}
        placeholder={props.placeholder ?? props.label}
        aria-label={props.label}
        onChange={(event) => props.onChange(event.target.value)}
        onKeyDown={props.onKeyDown}
        data-find
      />
      {props.after ?? <kbd className="hide-s">/</kbd>}
    </label>
  );
}
