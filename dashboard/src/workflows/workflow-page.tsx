/** A workflow: its graph, its definition, its versions with their difference, and the form that starts it. */

import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";

import { ApiError, change } from "../api/client";
import { versionsQuery, workflowQuery } from "../api/queries";
import { buildGraph } from "../model/graph";
import { diffLines } from "../model/lines-diff";
import { type FormField, listFields, readInput, readLabels, writeCommand } from "../model/start-form";
import type { Run, Step, Workflow } from "../model/types";
import { plural } from "../model/words";
import { useActions } from "../parts/actions";
import { Glyph, Icon } from "../parts/marks";
import { Command, Problem, Skeleton } from "../parts/pieces";
import { Clock } from "../parts/time";
import { workflowRoute } from "../routes";
import { RunGraph } from "../runs/graph";
import { useKeys } from "../shell/keyboard";
import { useSession } from "../shell/session";
import { Top } from "../shell/top";

const CRUMBS = [{ label: "Workflows", to: "/workflows" }];

export function WorkflowPage(): ReactNode {
  const { name } = workflowRoute.useParams();
  const { version, against, start } = workflowRoute.useSearch();
  const navigate = useNavigate();
  const query = useQuery(workflowQuery(name, version));
  const versions = useQuery(versionsQuery(name)).data ?? [];
  const other = useQuery({ ...workflowQuery(name, against), enabled: against !== undefined }).data;
  const workflow = query.data;
  const { maySteer } = useSession();
  const graph = useMemo(() => buildGraph(workflow?.steps ?? [], [], new Set()), [workflow]);
  useKeys({ s: () => document.querySelector<HTMLElement>("#start textarea, #start input, #start button")?.focus() });
  if (!workflow) {
    return (
      <>
        <Top title={name} crumbs={CRUMBS} />
        <div className="page">{query.error ? <Problem error={query.error} /> : <Skeleton />}</div>
      </>
    );
  }
  const compare = (chosen: string) =>
    void navigate({
      to: "/workflows/$name",
      params: { name },
      search: { ...(version ? { version } : {}), ...(chosen === against ? {} : { against: chosen }) },
    });
  return (
    <>
      <Top
        title={name}
        crumbs={CRUMBS}
        after={
          <span className="mono quiet hide-s">
            {workflow.version.slice(0, 8)}
            {versions.length ? ` · ${plural(versions.length, "version")}` : ""}
          </span>
        }
      >
        {maySteer ? (
          <button
            type="button"
            className="btn primary"
            onClick={() => document.querySelector<HTMLElement>("#start textarea, #start input, #start button")?.focus()}
          >
            <Icon name="play" />
            Start…<kbd className="hide-s">S</kbd>
          </button>
        ) : null}
      </Top>
      <div className="page">
        <div className="cols">
          <div className="c8 full stack" style={{ gap: 16, alignContent: "start" }}>
            <section className="panel" style={{ overflow: "clip" }}>
              <header>
                <h2>Graph</h2>
                <span className="quiet hide-s">{describeSteps(workflow)}</span>
              </header>
              <RunGraph graph={graph} now={0} label="Graph of the workflow" />
            </section>
            {against !== undefined && other ? <Difference before={other} after={workflow} /> : null}
            <section className="panel">
              <header>
                <h2>Definition</h2>
                <span className="quiet small">as it is stored</span>
              </header>
              <div className="body">
                <div className="log value">
                  <pre tabIndex={0} aria-label="Definition">
                    {describeDefinition(workflow)}
                  </pre>
                </div>
              </div>
            </section>
          </div>
          <div className="c4 full stack" style={{ gap: 16, alignContent: "start" }}>
            {maySteer ? <StartForm key={workflow.version} workflow={workflow} focus={start === "1"} pinned={version} /> : null}
            {versions.length > 1 ? (
              <section className="panel">
                <header>
                  <h2>Versions</h2>
                  <span className="grow" />
                  <span className="small quiet">newest first</span>
                </header>
                <table className="table">
                  <tbody>
                    {versions.map(({ version: each, created_at }, at) => (
                      <tr key={each} aria-selected={each === workflow.version}>
                        <td>
                          <button
                            type="button"
                            className="mono link-quiet"
                            onClick={() =>
                              void navigate({ to: "/workflows/$name", params: { name }, search: at ? { version: each } : {} })
                            }
                          >
                            {each.slice(0, 12)}
                          </button>{" "}
                          {at === 0 ? <span className="quiet small">now</span> : null}
                        </td>
                        <td className="num small quiet">
                          <Clock at={created_at} />
                        </td>
                        <td className="num">
                          {each === workflow.version ? null : (
                            <button type="button" className="btn ghost" aria-pressed={each === against} onClick={() => compare(each)}>
                              Compare
                            </button>
                          )}
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </section>
            ) : null}
          </div>
        </div>
      </div>
    </>
  );
}

function listSteps(steps: Step[]): Step[] {
  return steps.flatMap((step) => [step, ...listSteps(step.steps ?? [])]);
}

function describeSteps(workflow: Workflow): string {
  const steps = listSteps(workflow.steps);
  const agents = new Set(steps.filter((step) => !step.steps?.length && step.approval === undefined).map((step) => step.agent));
  return `${plural(steps.length, "step")}, ${plural(agents.size, "agent")}`;
}

function describeDefinition(workflow: Workflow): string {
  const { version: _version, ...definition } = workflow;
  return JSON.stringify(definition, null, 2);
}

function Difference({ before, after }: { before: Workflow; after: Workflow }): ReactNode {
  const lines = useMemo(() => diffLines(describeDefinition(before), describeDefinition(after)), [before, after]);
  const near = useMemo(() => {
    const changed = lines.flatMap((line, at) => (line.kind === "same" ? [] : [at]));
    const kept = new Set(changed.flatMap((at) => [at - 3, at - 2, at - 1, at, at + 1, at + 2, at + 3]));
    return lines.map((line, at) => ({ ...line, at })).filter(({ at }) => kept.has(at));
  }, [lines]);
  return (
    <div className="diff">
      <header>
        <span className="cut">
          {before.version.slice(0, 8)} → {after.version.slice(0, 8)}
        </span>
        <span className="add-n">+{lines.filter((line) => line.kind === "add").length}</span>
        <span className="del-n">−{lines.filter((line) => line.kind === "del").length}</span>
      </header>
      <div className="rows" tabIndex={0} role="region" aria-label="Difference of the versions">
        {near.map((line, at) => (
          <div key={line.at}>
            {at > 0 && line.at > near[at - 1]!.at + 1 ? <div className="hunk">…</div> : null}
            <div className={`d${line.kind === "same" ? "" : ` ${line.kind}`}`}>
              <i>{line.before}</i>
              <i>{line.after}</i>
              <b>{line.kind === "add" ? "+" : line.kind === "del" ? "−" : ""}</b>
              <span>{line.text}</span>
            </div>
          </div>
        ))}
      </div>
    </div>
  );
}

function StartForm(props: { workflow: Workflow; focus: boolean; pinned: string | undefined }): ReactNode {
  const { workflow, focus, pinned } = props;
  const navigate = useNavigate();
  const { tell } = useActions();
  const fields = useMemo(() => listFields(workflow.declared?.input), [workflow]);
  const free = workflow.declared?.input === undefined;
  const [typed, setTyped] = useState<Record<string, string>>({});
  const [whole, setWhole] = useState("{}");
  const [key, setKey] = useState("");
  const [labels, setLabels] = useState("");
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<ApiError>();
  const input = free ? readWhole(whole) : readInput(fields, typed);
  const command = writeCommand(workflow.name, typeof input === "object" && input ? (input as Record<string, unknown>) : {}, key, readLabels(labels));
  const start = async () => {
    if (busy) return;
    setBusy(true);
    setRefusal(undefined);
    try {
      const run = await change<Run & { created?: boolean }>("/runs", {
        workflow: workflow.name,
        input,
        ...(key ? { key } : {}),
        ...(labels.trim() ? { labels: readLabels(labels) } : {}),
        ...(pinned ? { version: pinned } : {}),
      });
      tell(run.created === false ? "That run exists already: here it is" : "Started");
      await navigate({ to: "/runs/$run", params: { run: run.id } });
    } catch (error) {
      setRefusal(error instanceof ApiError ? error : new ApiError(0, "unreachable", "the server does not answer"));
      setBusy(false);
    }
  };
  const mistakes = refusal ? sayMistakes(refusal) : [];
  const ofField = (name: string) => mistakes.filter((each) => each.field === name);
  const others = mistakes.filter((each) => !fields.some((field) => field.name === each.field));
  return (
    <section className="panel" id="start">
      <header>
        <h2>Start a run</h2>
        <span className="grow" />
        <span className="quiet small">{free ? "it takes any input" : "from its input"}</span>
      </header>
      <form
        className="body form"
        onSubmit={(event) => {
          event.preventDefault();
          void start();
        }}
      >
        {free ? (
          <label>
            <span className="lab">
              input <span>JSON</span>
            </span>
            <textarea className="area mono" rows={4} value={whole} onChange={(event) => setWhole(event.target.value)} />
          </label>
        ) : null}
        {!free && !fields.length ? <p className="small quiet">It takes no input.</p> : null}
        {fields.map((field, at) => (
          <label key={field.name}>
            <span className="lab">
              {field.name} <span>{field.hint}</span>
            </span>
            {field.schema.description ? <em>{field.schema.description}</em> : null}
            <Field
              field={field}
              focus={focus && at === 0}
              value={typed[field.name] ?? ""}
              invalid={ofField(field.name).length > 0}
              onChange={(value) => setTyped((before) => ({ ...before, [field.name]: value }))}
              submit={() => void start()}
            />
            {ofField(field.name).map((each) => (
              <span key={each.text} className="mistake" role="alert">
                <Glyph name="failed" />
                <span>{each.text}</span>
              </span>
            ))}
          </label>
        ))}
        <label>
          <span className="lab">
            key <span>optional: it exists once</span>
          </span>
          <input className="input" value={key} onChange={(event) => setKey(event.target.value)} />
        </label>
        <label>
          <span className="lab">
            labels <span>optional</span>
          </span>
          <input
            className="input"
            value={labels}
            placeholder="customer=7 team=auth"
            onChange={(event) => setLabels(event.target.value)}
          />
        </label>
        {others.map((each) => (
          <p key={each.text} className="mistake" role="alert">
            <Glyph name="failed" />
            <span>{each.text}</span>
          </p>
        ))}
        <Command text={command} />
        <div className="line">
          <span className="small quiet grow">{pinned ? `this version, ${pinned.slice(0, 8)}` : ""}</span>
          <button type="submit" className="btn primary" aria-disabled={busy}>
            Start
          </button>
        </div>
      </form>
    </section>
  );
}

function readWhole(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

interface SaidMistake {
  field: string;
  text: string;
}

/** The server's own words, each at its field. */
export function sayMistakes(refusal: ApiError): SaidMistake[] {
  const each = refusal.mistakes.length
    ? refusal.mistakes.map((mistake) => mistake.detail ?? mistake.message ?? "")
    : refusal.message.split("\n");
  return each.filter(Boolean).map((text) => ({ text, field: /^input\.([\w-]+)/.exec(text)?.[1] ?? "" }));
}

function Field(props: {
  field: FormField;
  value: string;
  invalid: boolean;
  focus: boolean;
  onChange: (value: string) => void;
  submit: () => void;
}): ReactNode {
  const { field, value, invalid, focus, onChange, submit } = props;
  const shared = { "aria-invalid": invalid || undefined, autoFocus: focus } as const;
  switch (field.kind) {
    case "choice":
      return (
        <select className="input" value={value} onChange={(event) => onChange(event.target.value)} {...shared}>
          <option value="">{field.schema.default === undefined ? "" : `default: ${String(field.schema.default)}`}</option>
          {field.schema.enum?.map((each) => <option key={String(each)}>{String(each)}</option>)}
        </select>
      );
    case "switch":
      return (
        <select className="input" value={value} onChange={(event) => onChange(event.target.value)} {...shared}>
          <option value="">{field.schema.default === undefined ? "" : `default: ${String(field.schema.default)}`}</option>
          <option value="true">true</option>
          <option value="false">false</option>
        </select>
      );
    case "long":
    case "json":
      return (
        <textarea
          className={`area${field.kind === "json" ? " mono" : ""}`}
          rows={2}
          value={value}
          placeholder={field.schema.default === undefined ? undefined : String(field.schema.default)}
          onChange={(event) => onChange(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) submit();
          }}
          {...shared}
        />
      );
    default:
      return (
        <input
          className="input"
          value={value}
          inputMode={field.kind === "number" ? "decimal" : undefined}
          placeholder={field.schema.default === undefined ? undefined : String(field.schema.default)}
          onChange={(event) => onChange(event.target.value)}
          {...shared}
        />
      );
  }
}
