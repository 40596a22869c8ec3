/** The workflows that the store knows. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { workflowsQuery } from "../api/queries";
import { plural } from "../model/words";
import { Icon } from "../parts/marks";
import { Command, Empty, Problem, Skeleton } from "../parts/pieces";
import { Clock } from "../parts/time";
import { useSession } from "../shell/session";
import { Top } from "../shell/top";
import { Editor } from "./editor";

export function WorkflowsPage(): ReactNode {
  const { data, error, isLoading, refetch } = useQuery(workflowsQuery);
  const { maySteer, mayDefine } = useSession();
  return (
    <>
      <Top title="Workflows" />
      <div className="page">
        {error && !data ? <Problem error={error} retry={() => void refetch()} /> : null}
        <section className="panel">
          {isLoading ? <Skeleton /> : null}
          {data && !data.length ? (
            <Empty icon="flow" title="No workflow yet">
              <p>The store knows a workflow from its first run on, or from this:</p>
              <Command text="holdfast workflow add FILE" />
            </Empty>
          ) : null}
          {data?.length ? (
            <table className="table">
              <colgroup>
                <col />
                <col className="hide-s" style={{ width: 140 }} />
                <col className="hide-s" style={{ width: 110 }} />
                <col className="hide-s" style={{ width: 140 }} />
                <col style={{ width: 110 }} />
              </colgroup>
              <thead>
                <tr>
                  <th>Workflow</th>
                  <th className="hide-s">Version</th>
                  <th className="num hide-s">Versions</th>
                  <th className="num hide-s">Newest since</th>
                  <th>
                    <span className="sr">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {data.map((workflow) => (
                  <tr key={workflow.name}>
                    <td>
                      <Link className="line" to="/workflows/$name" params={{ name: workflow.name }}>
                        <Icon name="flow" />
                        <b className="medium cut">{workflow.name}</b>
                      </Link>
                    </td>
                    <td className="mono quiet hide-s">{workflow.version.slice(0, 12)}</td>
                    <td className="num small second hide-s">{plural(workflow.versions.length, "version")}</td>
                    <td className="num small quiet hide-s">
                      <Clock at={workflow.created_at} />
                    </td>
                    <td className="num">
                      {maySteer ? (
                        <Link
                          className="btn"
                          to="/workflows/$name"
                          params={{ name: workflow.name }}
                          search={{ start: "1" }}
                        >
                          <Icon name="play" />
                          Start…
                        </Link>
                      ) : null}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          ) : null}
        </section>
        {mayDefine ? <Editor /> : null}
      </div>
    </>
  );
}
