/** The log of an attempt: virtual lines, colours, search, links to lines, its end followed while it runs. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";

import { findErrorLine, LONG_LINE, parseLine, plainText } from "../model/log";
import type { Attempt, Task } from "../model/types";
import { describeBytes, describeClockWithSeconds, describeFailure, plural } from "../model/words";
import { copyText, Empty, Problem, Search, Skeleton } from "../parts/pieces";
import { Glyph, Icon } from "../parts/marks";
import { markOutcome } from "../model/marks";
import { commandOf } from "../model/commands";
import { useKeys } from "../shell/keyboard";
import { useLog } from "./use-log";

const LINE = 20;

export function LogView(props: {
  task: Task;
  attempt: Attempt;
  q: string;
  setQ: (q: string) => void;
}): ReactNode {
  const { task, attempt, q, setQ } = props;
  const running = attempt.ended_at === undefined;
  const log = useLog(task.id, attempt.attempt, running);
  const { lines } = log;
  const place = useRef<HTMLDivElement>(null);
  const [following, setFollowing] = useState(running);
  const [wrap, setWrap] = useState(true);
  const [whole, setWhole] = useState<ReadonlySet<number>>(new Set());
  const [hit, setHit] = useState(0);
  const [linked, setLinked] = useState(readLink);
  const error = useMemo(
    () => (attempt.outcome === "failed" ? findErrorLine(lines) : -1),
    [lines, attempt.outcome],
  );
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => place.current,
    estimateSize: () => LINE,
    overscan: 30,
  });
  const hits = useMemo(() => {
    const wanted = q.toLowerCase();
    if (!wanted) return [];
    return lines.flatMap((line, at) => (plainText(line).toLowerCase().includes(wanted) ? [at] : []));
  }, [lines, q]);
  const current = hits.length ? hits[((hit % hits.length) + hits.length) % hits.length]! : -1;

  // It opens at the linked line, at the error of a failed attempt, else at the end of a running one.
  const placed = useRef(false);
  useEffect(() => {
    if (placed.current || !lines.length) return;
    placed.current = true;
    const first = linked === undefined ? error : linked[0] - 1;
    // The rows have no measure before the next frame.
    if (first >= 0) requestAnimationFrame(() => rows.scrollToIndex(first, { align: "center" }));
  }, [lines.length, linked, error, rows]);
  useEffect(() => {
    if (following && lines.length) rows.scrollToIndex(lines.length - 1, { align: "end" });
  }, [following, lines.length, rows]);
  useEffect(() => {
    if (current >= 0) rows.scrollToIndex(current, { align: "center" });
  }, [current, rows]);

  const step = (by: number) => {
    setFollowing(false);
    setHit((before) => before + by);
  };
  useKeys({ n: () => step(1), N: () => step(-1) });
  const toEnd = () => {
    setFollowing(true);
    rows.scrollToIndex(Math.max(0, lines.length - 1), { align: "end" });
  };
  const choose = (line: number, extend: boolean) => {
    const range: [number, number] =
      extend && linked ? [Math.min(linked[0], line), Math.max(linked[1], line)] : [line, line];
    setLinked(range);
    const hash = range[0] === range[1] ? `#L${range[0]}` : `#L${range[0]}-L${range[1]}`;
    history.replaceState(history.state, "", hash);
  };
  const download = () => {
    const address = URL.createObjectURL(new Blob([lines.join("\n")], { type: "text/plain" }));
    const link = document.createElement("a");
    link.href = address;
    link.download = `${task.id}-attempt-${attempt.attempt}.log`;
    link.click();
    URL.revokeObjectURL(address);
  };

  const unseen = following ? 0 : lines.length - 1 - (rows.range?.endIndex ?? lines.length - 1);
  return (
    <div className="log tall">
      <div className="bar-top">
        <Search
          value={q}
          label="Search in the log"
          width={220}
          onChange={(value) => {
            setQ(value);
            setHit(0);
            setFollowing(false);
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
          }}
          {...(q
            ? {
                after: (
                  <span className="small nowrap">
                    {hits.length ? `${hits.indexOf(current) + 1} of ${hits.length}` : "none"}
                  </span>
                ),
              }
            : {})}
        />
        {hits.length ? (
          <>
            <button type="button" className="btn icon ghost" aria-label="Before" onClick={() => step(-1)}>
              <Icon name="left" />
            </button>
            <button type="button" className="btn icon ghost" aria-label="Next" onClick={() => step(1)}>
              <Icon name="right" />
            </button>
          </>
        ) : null}
        <span className="grow" />
        <span className="small quiet hide-s">attempt {attempt.attempt}</span>
        <button type="button" className="btn ghost hide-s" aria-pressed={wrap} onClick={() => setWrap(!wrap)}>
          Wrap
        </button>
        <button type="button" className="btn icon ghost" aria-label="Download" title="Download" onClick={download}>
          <Icon name="dl" />
        </button>
        <button type="button" className="btn ghost" aria-pressed={following} onClick={toEnd}>
          <Icon name="end" />
          End
        </button>
      </div>
      {log.error ? (
        <div className="body" style={{ padding: 12 }}>
          <Problem error={log.error} />
        </div>
      ) : log.loading ? (
        <Skeleton rows={8} />
      ) : !lines.length ? (
        <Empty icon="file" title={running ? "It has written nothing yet" : "It wrote nothing"} />
      ) : (
        <div
          className="lines-place"
          ref={place}
          tabIndex={0}
          role="log"
          aria-live="off"
          aria-label={`Log of attempt ${attempt.attempt}`}
          onWheel={(event) => {
            if (event.deltaY < 0) setFollowing(false);
          }}
          onScroll={(event) => {
            const box = event.currentTarget;
            if (running && box.scrollHeight - box.scrollTop - box.clientHeight < 4) setFollowing(true);
          }}
        >
          <pre style={{ height: rows.getTotalSize() }}>
            {rows.getVirtualItems().map((item) => {
              const line = lines[item.index]!;
              const number = item.index + 1;
              const isLinked = linked !== undefined && number >= linked[0] && number <= linked[1];
              return (
                <div
                  key={item.index}
                  ref={rows.measureElement}
                  data-index={item.index}
                  id={`L${number}`}
                  className={`l${item.index === error ? " err" : ""}${isLinked || item.index === current ? " hit" : ""}${wrap ? "" : " long"}`}
                  style={{ transform: `translateY(${item.start}px)` }}
                >
                  <a
                    href={`#L${number}`}
                    onClick={(event) => {
                      event.preventDefault();
                      choose(number, event.shiftKey);
                    }}
                  >
                    {number}
                  </a>
                  <span>
                    <Line
                      line={whole.has(item.index) ? line : line.slice(0, LONG_LINE)}
                      q={q}
                    />
                    {line.length > LONG_LINE && !whole.has(item.index) ? (
                      <button
                        type="button"
                        className="link"
                        onClick={() => setWhole((before) => new Set(before).add(item.index))}
                      >
                        {" "}
                        show {describeBytes(line.length)}
                      </button>
                    ) : null}
                  </span>
                </div>
              );
            })}
          </pre>
        </div>
      )}
      {unseen > 0 && running ? (
        <button type="button" className="btn unseen" onClick={toEnd}>
          <Icon name="end" />
          {plural(unseen, "line")} below
        </button>
      ) : null}
      <div className="tail">
        <Glyph name={markOutcome(attempt.outcome).name} />
        <span className="cut">{describeEnd(attempt)}</span>
        <span className="grow" />
        {linked ? (
          <button type="button" className="link nowrap" onClick={() => void copyText(location.href)}>
            Copy the link to {linked[0] === linked[1] ? `line ${linked[0]}` : `lines ${linked[0]} to ${linked[1]}`}
          </button>
        ) : null}
        <span className="quiet mono hide-s nowrap">
          {commandOf("logs", task.id, "--attempt", String(attempt.attempt))}
        </span>
      </div>
    </div>
  );
}

function readLink(): [number, number] | undefined {
  const found = /^#L(\d+)(?:-L(\d+))?$/.exec(location.hash);
  return found ? [Number(found[1]), Number(found[2] ?? found[1])] : undefined;
}

function describeEnd(attempt: Attempt): string {
  if (attempt.ended_at === undefined) return "It runs; what it writes comes in here";
  const reason = describeFailure(attempt.error);
  return `${attempt.outcome ?? "ended"} at ${describeClockWithSeconds(attempt.ended_at)}${reason ? `: ${reason}` : ""}`;
}

function Line({ line, q }: { line: string; q: string }): ReactNode {
  return parseLine(line).map((piece, at) => (
    <span key={at} className={piece.className}>
      {q ? mark(piece.text, q) : piece.text}
    </span>
  ));
}

function mark(text: string, q: string): ReactNode {
  const parts: ReactNode[] = [];
  const [low, wanted] = [text.toLowerCase(), q.toLowerCase()];
  let from = 0;
  for (let at = low.indexOf(wanted); at >= 0; at = low.indexOf(wanted, from)) {
    parts.push(text.slice(from, at), <mark key={at}>{text.slice(at, at + q.length)}</mark>);
    from = at + q.length;
  }
  parts.push(text.slice(from));
  return parts;
}
