/** The command palette: commands for what is shown, then runs, workflows, views and pages. */

import * as Dialog from "@radix-ui/react-dialog";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Command as Menu } from "cmdk";
import type { ReactNode } from "react";

import { runsQuery, workflowsQuery } from "../api/queries";
import { markRun } from "../model/marks";
import { nameRun, shortenId } from "../model/words";
import { Glyph, Icon } from "../parts/marks";
import { useHere } from "./here";
import { toggleTheme } from "./theme";
import { useViews } from "./views";

const PAGES = [
  ["/", "Inbox", "inbox", "g i"],
  ["/runs", "Runs", "runs", "g r"],
  ["/queue", "Queue and workers", "queue", "g q"],
  ["/plan", "Planning", "plan", "g p"],
  ["/workflows", "Workflows", "flow", "g w"],
] as const;

export function Palette({ close, help }: { close: () => void; help: () => void }): ReactNode {
  const navigate = useNavigate();
  const here = useHere();
  const views = useViews();
  const runs = useInfiniteQuery(runsQuery({})).data?.pages.flatMap((page) => page.items) ?? [];
  const workflows = useQuery(workflowsQuery).data ?? [];
  const go = (act: () => void) => () => {
    close();
    act();
  };
  return (
    <Dialog.Root open onOpenChange={(open) => (open ? undefined : close())}>
      <Dialog.Portal>
        <Dialog.Overlay className="scrim" />
        <Dialog.Content className="palette floating" aria-describedby={undefined}>
          <Dialog.Title className="sr">Find or do</Dialog.Title>
          <Menu label="Find or do" loop>
            <div className="ask">
              <Icon name="search" />
              <Menu.Input placeholder="A command, a run, a workflow, a page" autoFocus />
              <kbd>esc</kbd>
            </div>
            <Menu.List>
              <Menu.Empty>Nothing here is called that.</Menu.Empty>
              {here ? (
                <Menu.Group heading={`Here: ${here.title}`}>
                  {here.commands.map((each) => (
                    <Menu.Item key={each.label} value={`here ${each.label}`} onSelect={go(each.act)}>
                      <Icon name={each.icon ?? "bolt"} />
                      <span>{each.label}</span>
                      {each.cli ? <span className="cli">{each.cli}</span> : null}
                    </Menu.Item>
                  ))}
                </Menu.Group>
              ) : null}
              <Menu.Group heading="Go to">
                {PAGES.map(([to, label, icon, keys]) => (
                  <Menu.Item key={to} value={`go ${label}`} onSelect={go(() => void navigate({ to }))}>
                    <Icon name={icon} />
                    <span>{label}</span>
                    <span className="cli">{keys}</span>
                  </Menu.Item>
                ))}
                {views.map((view) => (
                  <Menu.Item
                    key={view.name}
                    value={`view ${view.name}`}
                    onSelect={go(() => void navigate({ to: "/runs", search: view.search }))}
                  >
                    <Icon name="filter" />
                    <span>{view.name}</span>
                  </Menu.Item>
                ))}
                <Menu.Item value="light or dark theme" onSelect={go(toggleTheme)}>
                  <Icon name="sun" />
                  <span>Light or dark</span>
                </Menu.Item>
                <Menu.Item value="keys help" onSelect={go(help)}>
                  <Icon name="term" />
                  <span>Keys</span>
                  <span className="cli">?</span>
                </Menu.Item>
              </Menu.Group>
              <Menu.Group heading="Runs">
                {runs.slice(0, 100).map((run) => (
                  <Menu.Item
                    key={run.id}
                    value={`run ${nameRun(run)} ${run.workflow} ${run.id}`}
                    onSelect={go(() => void navigate({ to: "/runs/$run", params: { run: run.id } }))}
                  >
                    <Glyph name={markRun(run).name} />
                    <span className="cut">{nameRun(run)}</span>
                    <span className="quiet">{run.workflow}</span>
                    <span className="cli">{shortenId(run.id)}</span>
                  </Menu.Item>
                ))}
              </Menu.Group>
              <Menu.Group heading="Start a run">
                {workflows.map((workflow) => (
                  <Menu.Item
                    key={workflow.name}
                    value={`start ${workflow.name}`}
                    onSelect={go(
                      () =>
                        void navigate({
                          to: "/workflows/$name",
                          params: { name: workflow.name },
                          search: { start: "1" },
                        }),
                    )}
                  >
                    <Icon name="play" />
                    <span>Start a run of {workflow.name}…</span>
                    <span className="cli">holdfast run {workflow.name}</span>
                  </Menu.Item>
                ))}
              </Menu.Group>
            </Menu.List>
            <footer>
              <span>
                <kbd>Up</kbd> <kbd>Down</kbd> move
              </span>
              <span>
                <kbd>Enter</kbd> open
              </span>
            </footer>
          </Menu>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
