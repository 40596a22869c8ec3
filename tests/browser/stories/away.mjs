/** A server that is killed and comes back, one stream for two tabs, a viewer, and a token that ends. */

import assert from "node:assert/strict";

import { story, until } from "../world.mjs";

const WAIT = `
name: wait
agents: {nobody: {external: true}}
steps:
  - {id: wait, agent: nobody, prompt: "Wait"}
`;

await story(async (world) => {
  world.define("wait", WAIT);
  await world.serve("--agent", "default");
  const run = await world.start("wait");
  const page = await world.open(`/runs/${run}`);
  await page.getByRole("button", { name: /^wait ready/ }).waitFor();

  // A second tab is live too, and reads no stream of its own.
  const second = await world.tab(page.context());
  let streams = 0;
  second.on("request", (request) => (streams += request.url().includes("/stream") ? 1 : 0));
  await second.goto(`${world.url}/runs/${run}`);
  await second.getByText(/^Live/).first().waitFor();
  const paused = world.ask(`/runs/${run}/pause`, {});
  await second.getByRole("button", { name: "Resume" }).first().waitFor();
  await paused;
  assert.equal(streams, 0);

  // Killed, it is said in both; back, what happened meanwhile is there without a reload.
  await world.crash();
  await page.getByText("The server does not answer").waitFor();
  await second.getByText("The server does not answer").waitFor();
  await world.serve("--agent", "default");
  await world.ask(`/runs/${run}/cancel`, {});
  await page.getByRole("button", { name: "Try now" }).click({ timeout: 3_000 }).catch(() => undefined);
  await page.getByText("cancelled", { exact: true }).first().waitFor();
  await second.getByText("cancelled", { exact: true }).first().waitFor();
  await page.getByText("The server does not answer").waitFor({ state: "detached" });

  // The tab that reads the stream is closed: the other takes over.
  await page.close();
  await until(() => streams > 0, "the other tab reads the stream");
  await world.ask(`/runs/${run}/retry`, {});
  await world.ask(`/runs/${run}/resume`, {});
  await second.getByRole("button", { name: /^wait ready/ }).waitFor();

  // A viewer sees all, and no button that would be refused.
  const viewer = await world.ask("/tokens", { name: "ada", role: "viewer" });
  const looking = await world.open(`/runs/${run}`, { token: viewer.token });
  await looking.getByRole("button", { name: /^wait ready/ }).waitFor();
  await looking.getByText("You look on as viewer").waitFor();
  assert.equal(await looking.getByRole("button", { name: /Cancel|Pause/ }).count(), 0);
  await looking.goto(`${world.url}/workflows/wait`);
  await looking.getByRole("heading", { level: 2, name: "Graph" }).waitFor();
  assert.equal(await looking.getByRole("button", { name: /Start/ }).count(), 0);

  // Its token ends: the page says so, and what lets it in.
  await world.holdfast("token", "revoke", "ada");
  await looking.getByText("This browser is not let in").waitFor();
  await looking.getByText("holdfast open").waitFor();
  const away = await looking.goto(`${world.url}/runs/${run}`);
  assert.equal(away.status(), 401);
  await looking.getByRole("link", { name: "Try again" }).waitFor();
});
