/** A run is started from the form, watched, read, cancelled, retried, and seen as it was. */

import assert from "node:assert/strict";

import { story } from "../world.mjs";

// Each line waits until a file allows it: what is seen in between is no matter of luck.
const WORKFLOW = `
name: build
input:
  task: string
  count: {type: integer, default: 2}
steps:
  - {id: plan, run: [sh, -c, "echo planned"]}
  - id: compile
    run: [sh, -c, "echo '<img src=x onerror=alert(1)>'; printf '\\\\033[32mfirst\\\\033[0m line\\\\n'; until [ -e go1 ]; do sleep 0.05; done; echo second line; until [ -e go2 ]; do sleep 0.05; done; echo 'error: last line'"]
  - {id: pack, run: [sh, -c, "echo packed"]}
`;

await story(async (world) => {
  world.define("build", WORKFLOW);
  await world.serve();
  const page = await world.open("/workflows");

  // A definition is checked as it is typed, its mistakes beside their lines, and added.
  await page.getByLabel("Definition").fill("name: other\nsteps:\n  - {id: a, run: [echo]}\n  - {id: b, needs: [aa], run: [echo]}\n");
  await page.getByRole("region", { name: "Mistakes" }).getByText("did you mean 'a'?").waitFor();
  await page.getByLabel("Definition").fill("name: other\nsteps:\n  - {id: a, run: [echo]}\n");
  await page.getByText("other is valid").waitFor();
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "other" }).waitFor();
  await page.goto(`${world.url}/workflows/build?start=1`);

  // The form shows the mistakes of the server, and then starts it.
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.getByRole("alert").filter({ hasText: "task" }).first().waitFor();
  await page.getByLabel(/^task/).fill("<b>Ada's</b> build");
  await page.getByLabel(/^count/).fill("3");
  await page.getByText("holdfast run build").waitFor();
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.waitForURL(/\/runs\/r_/);
  await page.getByRole("heading", { level: 1, name: "<b>Ada's</b> build" }).waitFor();
  const run = /r_\w+/.exec(page.url())[0];

  // Graph and timeline have one choice; the inspector says why it stands there.
  const node = page.getByRole("button", { name: /^compile running/ });
  await node.waitFor();
  await node.click();
  await page.waitForURL(/task=t_/);
  const row = page.getByRole("row", { selected: true });
  assert.match(await row.innerText(), /compile/);
  const inspector = page.getByRole("complementary", { name: "Inspector" });
  await inspector.getByText("first line").first().waitFor();

  // The log streams in, colours and all; markup is text.
  await inspector.getByRole("link", { name: "Open" }).click();
  const log = page.getByRole("log");
  await log.getByText("<img src=x onerror=alert(1)>").waitFor();
  assert.equal(await log.locator("img").count(), 0);
  assert.equal(await log.locator(".a-green").innerText(), "first");
  assert.equal(await log.getByText("second line").count(), 0);
  world.write("go1", "");
  await log.getByText("second line").waitFor();
  await page.getByLabel("Search in the log").fill("LINE");
  await page.getByText("1 of 2").waitFor();
  await page.keyboard.press("Enter");
  await page.getByText("2 of 2").waitFor();
  await log.getByRole("link", { name: "3", exact: true }).click();
  assert.match(page.url(), /#L3$/);

  // A cancel says first what it would do, and its safe button has the focus.
  await page.goto(`${world.url}/runs/${run}`);
  await page.getByRole("button", { name: /^compile running/ }).waitFor();
  await page.keyboard.press("c");
  const dialog = page.getByRole("dialog");
  await dialog.getByText(/compile: running, becomes cancelled/).waitFor();
  await dialog.getByText("pack: blocked, becomes cancelled").waitFor();
  await dialog.getByText(`holdfast cancel ${run}`).waitFor();
  assert.equal(await dialog.locator(":focus").innerText(), "Leave it\nesc");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.equal((await world.ask(`/runs/${run}`)).status, "running");
  await page.keyboard.press("c");
  await dialog.getByRole("button", { name: "Cancel the run" }).click();
  await page.getByRole("button", { name: /^Retry…/ }).waitFor();
  assert.equal((await world.taskOf(run, "compile")).status, "cancelled");

  // A retry brings it back; with both files there it ends.
  world.write("go2", "");
  await page.keyboard.press("t");
  await dialog.getByRole("button", { name: "Retry the run" }).click();
  await page.getByText("completed", { exact: true }).first().waitFor();
  await page.getByRole("button", { name: /^pack done/ }).waitFor();

  // The slider goes back through the events: compile runs again, and pack has not begun.
  const { items } = await world.ask(`/runs/${run}/events?limit=500`);
  const compile = await world.taskOf(run, "compile");
  const began = items.find((event) => event.task_id === compile.id && event.to === "running");
  await page.goto(`${world.url}/runs/${run}?at=${began.seq}`);
  await page.getByText("As it was at").waitFor();
  await page.getByRole("button", { name: /^compile running/ }).waitFor();
  await page.getByRole("button", { name: /^pack blocked/ }).waitFor();
  assert.equal(await page.getByRole("button", { name: /Retry/ }).count(), 0);
  await page.getByRole("slider", { name: "Event of the run" }).press("ArrowLeft");
  await page.getByRole("button", { name: /^compile ready/ }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: /^pack done/ }).waitFor();

  // Find and filters leave out of the timeline what does not fit.
  await page.getByLabel("Find in this run").fill("pack");
  await page.getByText("1 hit").waitFor();
  assert.equal(await page.getByRole("grid").getByRole("row").count(), 1);

  // Its events and its input are one click away.
  await page.getByRole("link", { name: /^Events/ }).click();
  await page.getByRole("listitem").filter({ hasText: "run.completed" }).waitFor();
  await page.getByRole("link", { name: "Input, output" }).click();
  await page.getByLabel("Input", { exact: true }).getByText(`"count": 3`).waitFor();
});
