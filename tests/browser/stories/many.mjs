/** Many runs: filters in the URL, a view that is kept, and a change of all that fit. */

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
  for (let at = 0; at < 6; at += 1) {
    await world.start("wait", {}, { key: `order-${at}`, labels: { customer: at < 4 ? "7" : "8" } });
  }
  const page = await world.open("/runs");
  const rows = page.getByRole("table", { name: "Runs" }).getByRole("row");
  await page.getByRole("link", { name: /order-5/ }).waitFor();
  assert.equal(await rows.count(), 7);

  // A new run is told of, and shown when asked for: nothing moves under the reader.
  await world.start("wait", {}, { key: "order-late" });
  await page.getByText("1 new run, show it").click();
  await page.getByRole("link", { name: /order-late/ }).waitFor();

  // A label filters them; the choice is in the URL, and Back undoes it.
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await page.getByRole("menuitem", { name: "label" }).click();
  await page.getByLabel("label", { exact: true }).fill("customer=7");
  await page.keyboard.press("Enter");
  await until(async () => (await rows.count()) === 5, "four runs fit");
  assert.match(page.url(), /label=customer%3D7/);
  await page.getByRole("button", { name: "Save view" }).click();
  await page.reload();
  await page.getByRole("link", { name: "customer=7", exact: true }).waitFor();

  // All that fit are cancelled at once, after it was said which.
  await until(async () => (await rows.count()) === 5, "the URL is read again");
  await page.getByLabel("Select order-0").check();
  await page.getByRole("button", { name: "Select all 4 that fit" }).click();
  await page.getByRole("button", { name: "Cancel…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText(/order-3, wait: its open tasks end/).waitFor();
  await dialog.getByRole("button", { name: "Cancel all that fit" }).click();
  await page.getByText("4 of 4 cancelled").waitFor();
  await page.getByRole("button", { name: "Close" }).click();
  const left = await world.ask("/runs?status=running");
  assert.deepEqual(left.items.map((run) => run.key).sort(), ["order-4", "order-5", "order-late"]);

  // Two that are selected are retried.
  await page.getByLabel("Select order-0").check();
  await page.getByLabel("Select order-1").check();
  await page.getByRole("button", { name: "Retry 2…" }).click();
  await dialog.getByRole("button", { name: "Retry 2 runs" }).click();
  await page.getByText("2 of 2 done").waitFor();
  assert.equal((await world.ask("/runs?status=running")).items.length, 5);

  // The palette finds a run, and opens it.
  await page.keyboard.press("Control+k");
  await page.getByPlaceholder("A command, a run, a workflow, a page").fill("order-4");
  await page.getByRole("option", { name: /^order-4/, selected: true }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "order-4" }).waitFor();
});
