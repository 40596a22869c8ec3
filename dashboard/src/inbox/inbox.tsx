/** The inbox: what needs a person with the action beside it, what runs, what happened since. */

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";

import { costsQuery, runsQuery } from "../api/queries";
import { markRun } from "../model/marks";
import type { Run } from "../model/types";
import { describeAge, describeFailure, describeMoney, nameRun } from "../model/words";
import { Glyph, Icon, Status } from "../parts/marks";
import { Command, Empty, Problem, Skeleton } from "../parts/pieces";
import { Age, Clock } from "../parts/time";
import { inboxRoute } from "../routes";
import { RunMeter } from "../runs/runs-page";
import { useKeys } from "../shell/keyboard";
import { Top } from "../shell/top";
import { useLastLooked } from "./last-looked";
import type { InboxItem } from "./items";
import { usePeople } from "./people";
import { Reading } from "./reading";

export function Inbox(): ReactNode {
  const { item: wanted } = inboxRoute.useSearch();
  const navigate = useNavigate();
  const people = usePeople();
  const ended = useInfiniteQuery(runsQuery({})).data?.pages[0]?.items ?? [];
  const today = useQuery(costsQuery).data;
  const [since, look] = useLastLooked();
  const [reading, setReading] = useState(wanted !== undefined);
  const news = useMemo(
    () => foldNews(ended.filter((run) => run.finished_at && (!since || run.finished_at > since))),
    [ended, since],
  );
  // What is gone fades from the list, and the next one is chosen.
  const before = useRef(0);
  const index = people.items.findIndex((item) => item.id === wanted);
  const chosen = people.items[index >= 0 ? index : Math.min(before.current, people.items.length - 1)];
  useEffect(() => {
    if (index >= 0) before.current = index;
  }, [index]);
  const choose = (item: InboxItem | undefined, read = true) => {
    if (!item) return;
    if (read) setReading(true);
    void navigate({ to: "/", search: { item: item.id }, replace: true });
  };
  const move = (by: number) => {
    const at = people.items.findIndex((item) => item.id === chosen?.id);
    choose(people.items[Math.min(people.items.length - 1, Math.max(0, at + by))]);
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Escape: () => setReading(false),
  });
  const running = people.running.filter((run) => !run.needs_you?.length);
  const failed = people.items.filter((item) => item.kind === "failed").length;
  return (
    <>
      <Top title="Inbox" after={<span className="quiet nowrap">{describeNumber(people.items.length)}</span>}>
        <div className="stats hide-s small second">
          <Status mark={{ name: "running", word: `${people.running.length} running` }} />
          {today && today.usd > 0 ? (
            <span>
              <b className="medium">{describeMoney(today.usd)}</b> today
            </span>
          ) : null}
          {failed ? <Status mark={{ name: "failed", word: `${failed} failed` }} /> : null}
        </div>
      </Top>
      <div className={`inbox${reading && chosen ? " reading" : ""}`}>
        <div className="col">
          <h2 className="group">
            Needs you <span className="quiet">{people.items.length}</span>
            <span className="grow" />
            <span className="quiet hide-s">
              <kbd>j</kbd> <kbd>k</kbd> move
            </span>
          </h2>
          {people.error ? <Problem error={people.error} /> : null}
          {people.isLoading ? <Skeleton /> : null}
          <div role="listbox" aria-label="Needs you" tabIndex={0}>
            {people.items.map((item) => (
              <div
                key={item.id}
                className="mail"
                role="option"
                aria-selected={item.id === chosen?.id}
                onClick={() => choose(item)}
              >
                <Glyph name={item.mark} label={item.kind} />
                <span className="a cut" title={item.title}>
                  {item.title}
                </span>
                {item.since ? <Age since={item.since} /> : <span />}
                <span className="b cut" title={item.line}>
                  {item.line}
                </span>
              </div>
            ))}
          </div>
          {!people.isLoading && !people.items.length ? (
            <p className="nothing small quiet">Nothing. Approvals, questions, budgets and failures come here.</p>
          ) : null}
          <h2 className="group">
            Running <span className="quiet">{running.length}</span>
          </h2>
          {running.slice(0, 30).map((run) => (
            <Link key={run.id} className="mail" to="/runs/$run" params={{ run: run.id }}>
              <Glyph name={markRun(run).name} label={markRun(run).word} />
              <span className="a cut">{nameRun(run)}</span>
              <Age since={run.created_at} />
              <span className="b line">
                <span className="cut">{run.workflow}</span>
                <span className="grow" />
                <RunMeter run={run} width={64} />
              </span>
            </Link>
          ))}
          {running.length > 30 ? (
            <Link className="mail short" to="/runs" search={{ status: "running" }}>
              <Icon name="runs" />
              <span className="a">All {running.length}</span>
            </Link>
          ) : null}
          <h2 className="group">
            {since ? "Since you last looked" : "Ended lately"}{" "}
            {since ? <span className="quiet">{describeAge(Date.now() - Date.parse(since))} ago</span> : null}
            <span className="grow" />
            {news.length ? (
              <button type="button" className="link" onClick={look}>
                Seen
              </button>
            ) : null}
          </h2>
          {news.map(({ run, count }) => (
            <Link
              key={run.id}
              className="mail short"
              {...(count > 1
                ? { to: "/runs", search: { workflow: run.workflow, status: run.status } }
                : { to: "/runs/$run", params: { run: run.id } })}
            >
              <Glyph name={markRun(run).name} label={markRun(run).word} />
              <span className="a cut">{count > 1 ? `${count} × ${run.workflow}` : nameRun(run)}</span>
              {run.finished_at ? <Clock at={run.finished_at} /> : <span />}
            </Link>
          ))}
          {!news.length ? <p className="nothing small quiet">Nothing has ended since.</p> : null}
        </div>
        {chosen ? (
          <Reading key={chosen.id} item={chosen} back={() => setReading(false)} />
        ) : (
          <section className="read" aria-label="Nothing chosen">
            {people.isLoading ? null : (
              <Empty icon="inbox" title="Nothing needs you">
                <p>
                  {people.running.length
                    ? `${people.running.length} ${people.running.length === 1 ? "run is" : "runs are"} under way.`
                    : "No run is under way. This starts one:"}
                </p>
                {people.running.length ? (
                  <Link className="link" to="/runs" search={{ status: "running" }}>
                    Look at what runs
                  </Link>
                ) : (
                  <Command text="holdfast run hello.yaml -i name=Ada" />
                )}
              </Empty>
            )}
          </section>
        )}
      </div>
    </>
  );
}

function describeNumber(number: number): string {
  if (number === 0) return "nothing needs you";
  return `${number} ${number === 1 ? "needs" : "need"} you`;
}

/** Runs of one workflow that ended alike, one after the other, are one line. */
function foldNews(runs: Run[]): { run: Run; count: number }[] {
  const folded: { run: Run; count: number }[] = [];
  for (const run of runs) {
    const last = folded.at(-1);
    if (last && last.run.workflow === run.workflow && last.run.status === run.status) last.count += 1;
    else folded.push({ run, count: 1 });
  }
  return folded.slice(0, 40).map((each) => ({ ...each, run: { ...each.run, error: describeFailure(each.run.error) } }));
}
