/** Every page, wide and narrow, light and dark: nothing cut off, and nothing serious for axe. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { story, until } from "../world.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const FEATURE = `
name: feature
input: {task: string}
agents: {reviewer: {external: true}}
steps:
  - {id: plan, run: [sh, -c, "printf '{\\"stories\\":[{\\"title\\":\\"Login form\\"},{\\"title\\":\\"A callback with a name that is much too long for its row\\"}]}' > $HOLDFAST_OUTPUT"], outputs: {stories: [{title: string}]}}
  - id: build
    for_each: "{{ steps.plan.stories }}"
    steps:
      - {id: implement, run: [sh, -c, "seq 1 200"]}
      - {id: verify, run: [sh, -c, "echo '{\\"verdict\\":\\"accept\\"}'"], verifies: implement}
  - {id: approve, approval: "Merge {{ input.task }}?"}
  - {id: review, agent: reviewer, prompt: "Review"}
`;
const BROKEN = `
name: broken
steps:
  - {id: charge, run: [sh, -c, "printf 'x%.0s' $(seq 1 3000); echo; echo 'Error: card_declined'; exit 1"], max_attempts: 1}
`;

await story(async (world) => {
  world.define("feature", FEATURE);
  world.define("broken", BROKEN);
  await world.serve();
  const run = await world.start("feature", { task: "Add SSO with a title that goes on and on, longer than any row of a list" });
  const broken = await world.start("broken");
  const plan = (await world.ask("/tasks", { title: "Invoices", enqueue: false })).id;
  await world.ask(`/tasks/${plan}/plan/start`, {});
  const part = (await world.ask(`/tasks/${plan}/plan/children`, { title: "Rates" })).id;
  await world.ask(`/tasks/${plan}/plan/children`, { title: "Money", needs: [part] });
  await until(async () => (await world.taskOf(run, "approve"))?.state === "ready", "it waits for an approval");
  await until(async () => (await world.ask(`/runs/${broken}`)).status === "failed", "it fails");
  const implement = (await world.taskOf(run, "implement")).id;
  const charge = (await world.taskOf(broken, "charge")).id;
  const pages = {
    inbox: "/",
    runs: "/runs",
    run: `/runs/${run}?task=${implement}`,
    events: `/runs/${run}/events`,
    task: `/tasks/${charge}`,
    queue: "/queue",
    plans: "/plan",
    plan: `/plan/${plan}?part=${part}`,
    workflow: "/workflows/feature",
    empty: "/runs?workflow=nothing",
  };
  for (const [narrow, dark] of [
    [false, false],
    [true, true],
  ]) {
    const page = await world.open("/", { narrow, dark });
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(world.url + path);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.evaluate(() => new Promise((done) => setTimeout(done, 300)));
      await page.waitForFunction(() => !document.querySelector(".skel"));
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${name} is ${over} px too wide at ${narrow ? 360 : 1280}`);
      await page.evaluate(AXE);
      const { violations } = await page.evaluate(() =>
        globalThis.axe.run(document, { resultTypes: ["violations"] }),
      );
      const serious = violations
        .filter((each) => each.impact === "serious" || each.impact === "critical")
        .map((each) => `${name}: ${each.id} ${each.nodes.map((node) => node.html.slice(0, 160)).join("\n    ")}`);
      assert.deepEqual(serious, []);
    }
    await page.context().close();
  }
});
