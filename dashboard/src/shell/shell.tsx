/** The frame of every page: nav, page, tabs at the bottom of a phone, palette, connection. */

import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useLocation, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";

import { ApiError } from "../api/client";
import { useLive, useNow } from "../api/live";
import { sessionQuery, statisticsQuery } from "../api/queries";
import { usePeople } from "../inbox/people";
import { describeClockWithSeconds, plural } from "../model/words";
import { Glyph, Icon } from "../parts/marks";
import { Command, Empty, Problem } from "../parts/pieces";
import { KeysHelp } from "./keys-help";
import { useKeys } from "./keyboard";
import { Palette } from "./palette";
import { SessionProvider, useSession } from "./session";
import { toggleTheme } from "./theme";
import { removeView, useViews } from "./views";

const PAGES = [
  { to: "/", icon: "inbox", label: "Inbox", keys: "g i" },
  { to: "/runs", icon: "runs", label: "Runs", keys: "g r" },
  { to: "/queue", icon: "queue", label: "Queue", keys: "g q" },
  { to: "/plan", icon: "plan", label: "Planning", keys: "g p" },
  { to: "/workflows", icon: "flow", label: "Workflows", keys: "g w" },
] as const;

export function Shell(): ReactNode {
  const session = useQuery(sessionQuery);
  const live = useLive();
  if (session.error instanceof ApiError && session.error.status === 401) return <NotLetIn />;
  if (live.connection.status === "refused" && session.error) return <NotLetIn />;
  if (!session.data) {
    return session.error ? (
      <div className="page">
        <Problem error={session.error} retry={() => void session.refetch()} />
      </div>
    ) : null;
  }
  return (
    <SessionProvider session={session.data}>
      <Frame />
    </SessionProvider>
  );
}

/** A deep link without a cookie: what lets this browser in. */
function NotLetIn(): ReactNode {
  const { pathname } = useLocation();
  const thing = /^\/(?:runs|tasks)\/([^/]+)/.exec(pathname)?.[1];
  return (
    <main className="page" id="main">
      <Empty icon="eye" title="This browser is not let in (any more)">
        <p>On the machine that runs Holdfast, type:</p>
        <Command text={thing ? `holdfast open ${thing}` : "holdfast open"} />
        <p>
          Its link lets this browser in.{" "}
          <button type="button" className="link" onClick={() => location.reload()}>
            Look again
          </button>
        </p>
      </Empty>
    </main>
  );
}

function Frame(): ReactNode {
  const [finding, setFinding] = useState(false);
  const [helping, setHelping] = useState(false);
  const navigate = useNavigate();
  const live = useLive();
  useKeys({
    "Mod+k": () => setFinding((open) => !open),
    "?": () => setHelping(true),
    "g i": () => void navigate({ to: "/" }),
    "g r": () => void navigate({ to: "/runs" }),
    "g q": () => void navigate({ to: "/queue" }),
    "g p": () => void navigate({ to: "/plan" }),
    "g w": () => void navigate({ to: "/workflows" }),
    ".": () => live.setPaused(!live.paused),
    s: () => void navigate({ to: "/workflows" }),
    "/": () => document.querySelector<HTMLInputElement>("[data-find]")?.focus(),
    y: () => void navigator.clipboard?.writeText(location.href),
  });
  return (
    <>
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <div className="app">
        <Nav find={() => setFinding(true)} />
        <main className="main" id="main">
          <ConnectionBar />
          <Outlet />
        </main>
      </div>
      <TabBar />
      {finding ? <Palette close={() => setFinding(false)} help={() => setHelping(true)} /> : null}
      {helping ? <KeysHelp close={() => setHelping(false)} /> : null}
    </>
  );
}

function useCounts(): Record<string, { number: number; hot: boolean } | undefined> {
  const statistics = useQuery(statisticsQuery).data;
  const people = usePeople();
  return {
    "/": people.items.length ? { number: people.items.length, hot: true } : undefined,
    "/runs": statistics?.runs["running"] ? { number: statistics.runs["running"], hot: false } : undefined,
  };
}

function Nav({ find }: { find: () => void }): ReactNode {
  const counts = useCounts();
  const views = useViews();
  const { role, maySteer } = useSession();
  const live = useLive();
  const isLive = live.connection.status === "live";
  return (
    <nav className="nav" aria-label="Main">
      <Link className="brand" to="/" aria-label="Holdfast, to the inbox">
        <Icon name="logo" />
        <span>Holdfast</span>
      </Link>
      <button type="button" className="item" title="Find or do" onClick={find}>
        <Icon name="search" />
        <span className="label">Find or do…</span>
        <span className="count">
          <kbd>{/Mac|iPhone|iPad/.test(navigator.platform) ? "⌘K" : "Ctrl K"}</kbd>
        </span>
      </button>
      {PAGES.map((page) => {
        const count = counts[page.to];
        return (
          <Link
            key={page.to}
            to={page.to}
            className="item"
            title={`${page.label} (${page.keys})`}
            activeOptions={{ exact: page.to === "/", includeSearch: false }}
            activeProps={{ "aria-current": "page" }}
          >
            <Icon name={page.icon} />
            <span className="label">{page.label}</span>
            {count ? <span className={`count${count.hot ? " hot" : ""}`}>{count.number}</span> : null}
          </Link>
        );
      })}
      {views.length ? <div className="head">Saved views</div> : null}
      <div className="hide-m">
        {views.map((view) => (
          <span key={view.name} className="line saved">
            <Link className="item" to="/runs" search={view.search} activeOptions={{ includeSearch: true, exact: true }}>
              <Icon name="filter" />
              <span className="label cut">{view.name}</span>
            </Link>
            <button
              type="button"
              className="btn icon ghost"
              aria-label={`Forget the view ${view.name}`}
              onClick={() => removeView(view.name)}
            >
              <Icon name="x" />
            </button>
          </span>
        ))}
      </div>
      <div className="foot">
        {maySteer ? null : (
          <p className="looker small quiet hide-m">You look on as {role}: buttons that would be refused are not shown.</p>
        )}
        <button type="button" className="item" title="Light or dark" onClick={toggleTheme}>
          <Icon name="sun" />
          <span className="label">Light or dark</span>
        </button>
        <div className="beat" role="status" title={isLive ? "Events come in as they happen" : "No events come in"}>
          <span className={`dot${isLive ? "" : " off"}`} />
          <span>
            {live.paused ? "Paused" : isLive ? "Live" : live.connection.status === "lost" ? "Away" : "…"} · {role}
          </span>
        </div>
      </div>
    </nav>
  );
}

function TabBar(): ReactNode {
  const counts = useCounts();
  return (
    <nav className="tabbar" aria-label="Main, at the bottom">
      {PAGES.map((page) => (
        <Link
          key={page.to}
          to={page.to}
          activeOptions={{ exact: page.to === "/", includeSearch: false }}
          activeProps={{ "aria-current": "page" }}
        >
          <Icon name={page.icon} />
          {page.label}
          {counts[page.to]?.hot ? <span className="count">{counts[page.to]?.number}</span> : null}
        </Link>
      ))}
    </nav>
  );
}

function ConnectionBar(): ReactNode {
  const live = useLive();
  const { status, since, retryAt, backAt, caughtUp } = live.connection;
  const now = useNow(1_000, status === "lost");
  if (live.paused) {
    return (
      <div className="disc" role="status">
        <Icon name="pause" />
        <span>
          <b className="medium">Paused.</b> {plural(live.waiting, "event")} {live.waiting === 1 ? "waits" : "wait"}.
        </span>
        <button type="button" className="btn ghost" onClick={() => live.setPaused(false)}>
          Go live<kbd className="hide-s">.</kbd>
        </button>
      </div>
    );
  }
  if (status === "lost" && since !== undefined) {
    const left = Math.max(0, Math.ceil(((retryAt ?? now) - now) / 1_000));
    return (
      <div className="disc" role="status">
        <Glyph name="held" />
        <span>
          <b className="medium">
            The server does not answer since {describeClockWithSeconds(new Date(since).toISOString())}.
          </b>{" "}
          You see what was true then. Next try in {left}s.
        </span>
        <button type="button" className="btn ghost" onClick={() => live.retryNow()}>
          Try now
        </button>
      </div>
    );
  }
  if (backAt !== undefined) {
    return (
      <div className="disc back-bar" role="status">
        <Glyph name="done" />
        <span>
          <b className="medium">Back since {describeClockWithSeconds(new Date(backAt).toISOString())}.</b>{" "}
          {plural(caughtUp ?? 0, "event")} {caughtUp === 1 ? "was" : "were"} caught up.
        </span>
      </div>
    );
  }
  return null;
}
