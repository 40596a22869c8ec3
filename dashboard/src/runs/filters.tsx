/** The filters of the runs, as chips: what is chosen is in the URL. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";

import { type RunFilters, workflowsQuery } from "../api/queries";
import { Icon } from "../parts/marks";
import { Menu } from "../parts/menu";

const STATUSES = ["running", "completed", "failed", "cancelled"];
/** Filters whose value is typed, with what is typed as an example. */
const TYPED = {
  label: "customer=7",
  step: "build",
  agent: "reviewer",
  key: "monday",
  error: "a text of its error",
} as const;
type Typed = keyof typeof TYPED;
const SINCE = ["1h", "24h", "7d", "30d"];

export type RunSearch = RunFilters & { q?: string };

/** What the URL holds, as the API takes it. */
export function readFilters(search: RunSearch): RunFilters {
  const { q: _q, ...filters } = search;
  return Object.fromEntries(Object.entries(filters).filter(([, value]) => value)) as RunFilters;
}

/** The same as the body of a change of all that fit. */
export function writeBulkFilters(filters: RunFilters): Record<string, unknown> {
  const { label, ...rest } = filters;
  if (!label && !Object.keys(rest).length) return { all: true };
  if (!label) return rest;
  const at = label.indexOf("=");
  return { ...rest, labels: { [label.slice(0, at)]: label.slice(at + 1) } };
}

export function FilterChips(props: { search: RunSearch; set: (change: Partial<RunSearch>) => void }): ReactNode {
  const { search, set } = props;
  const workflows = useQuery(workflowsQuery).data ?? [];
  const [typing, setTyping] = useState<Typed>();
  return (
    <>
      <Choice name="status" value={search.status} options={STATUSES} set={(status) => set({ status })} />
      <Choice
        name="workflow"
        value={search.workflow}
        options={workflows.map((each) => each.name)}
        set={(workflow) => set({ workflow })}
      />
      {search.since ? (
        <Choice name="since" value={search.since} options={SINCE} set={(since) => set({ since })} />
      ) : null}
      {(Object.keys(TYPED) as Typed[]).map((name) =>
        search[name] ? (
          <Chosen key={name} name={name} value={search[name]} remove={() => set({ [name]: undefined })} />
        ) : null,
      )}
      {typing ? (
        <form
          className="chip"
          aria-label={`Filter by ${typing}`}
          onSubmit={(event) => {
            event.preventDefault();
            const typed = new FormData(event.currentTarget).get("value");
            if (typeof typed === "string" && typed.trim()) set({ [typing]: typed.trim() });
            setTyping(undefined);
          }}
        >
          {typing}
          <input
            name="value"
            aria-label={typing}
            placeholder={TYPED[typing]}
            autoFocus
            onBlur={(event) => {
              if (event.currentTarget.value.trim()) event.currentTarget.form?.requestSubmit();
            }}
          />
        </form>
      ) : null}
      <Menu
        className="chip add"
        yieldsFocus
        trigger={
          <>
            <Icon name="plus" />
            Filter
          </>
        }
        entries={[
          ...(Object.keys(TYPED) as Typed[]).map((name) => ({
            label: name,
            // The menu gives the focus back first.
            act: () => setTimeout(() => setTyping(name)),
          })),
          ...SINCE.map((since) => ({ label: `since ${since} ago`, act: () => set({ since }) })),
        ]}
      />
    </>
  );
}

function Chosen(props: { name: string; value: string; remove: () => void }): ReactNode {
  const { name, value, remove } = props;
  return (
    <button type="button" className="chip" aria-pressed="true" title={`Leave out ${name}`} onClick={remove}>
      {name} <b>{value}</b>
      <Icon name="x" />
    </button>
  );
}

function Choice(props: {
  name: string;
  value: string | undefined;
  options: string[];
  set: (value: string | undefined) => void;
}): ReactNode {
  const { name, value, options, set } = props;
  if (value !== undefined) return <Chosen name={name} value={value} remove={() => set(undefined)} />;
  return (
    <Menu
      className="chip"
      trigger={
        <>
          {name} <b>any</b>
          <Icon name="down" />
        </>
      }
      entries={options.map((option) => ({ label: option, act: () => set(option) }))}
    />
  );
}
