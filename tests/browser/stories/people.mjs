/** What needs a person: approve by key, reject with a reason, answer; failures, and work nobody takes. */

import assert from "node:assert/strict";

import { story, until } from "../world.mjs";

const RELEASE = `
name: release
input: {what: string}
steps:
  - {id: test, run: [sh, -c, "echo all tests pass"]}
  - {id: approve, approval: "Release {{ input.what }}?"}
  - {id: publish, run: [sh, -c, "echo published"]}
`;
const BROKEN = `
name: broken
steps:
  - {id: charge, run: [sh, -c, "echo charging; echo 'Error: card_declined' >&2; exit 3"], max_attempts: 1}
`;
const REWORK = `
name: rework
steps:
  - {id: build, run: [sh, -c, "echo built with {{ feedback }}"]}
  - {id: approve, approval: "Good enough?", on_failure: {goto: build, max_rounds: 2}}
`;
const CARE = `
name: care
agents: {carer: {external: true}}
steps:
  - {id: look, agent: carer, prompt: "Look after it"}
`;

await story(async (world) => {
  world.define("release", RELEASE);
  world.define("broken", BROKEN);
  world.define("care", CARE);
  world.define("rework", REWORK);
  await world.serve("--agent", "default");
  const [first, second] = [await world.start("release", { what: "one" }), await world.start("release", { what: "two" })];
  const page = await world.open("/");

  // Both approvals come in by themselves; the first is chosen, and a key approves it.
  const inbox = page.getByRole("listbox", { name: "Needs you" });
  await inbox.getByRole("option", { name: "Release one?" }).click();
  await inbox.getByRole("option", { name: "Release two?" }).waitFor();
  await page.getByRole("heading", { level: 2, name: "Release one?" }).waitFor();
  await page.getByText("all tests pass").waitFor();
  await page.keyboard.press("a");
  await inbox.getByRole("option", { name: "Release one?" }).waitFor({ state: "detached" });
  await until(async () => (await world.ask(`/runs/${first}`)).status === "completed", "the first run completes");

  // The next one is chosen; it is rejected with a reason, after it was said what that does.
  await page.getByRole("heading", { level: 2, name: "Release two?" }).waitFor();
  await page.getByLabel("Reason, or feedback for the agent").fill("not on a Friday");
  await page.getByRole("button", { name: /^Reject/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText(/approve: waits for you, becomes failed/).waitFor();
  await dialog.getByRole("button", { name: "Reject", exact: true }).click();
  await until(async () => (await world.ask(`/runs/${second}`)).status === "failed", "the second run fails");
  assert.match(JSON.stringify((await world.taskOf(second, "approve")).error), /not on a Friday/);

  // Its failure is the next thing to see; seen, it is gone.
  await inbox.getByRole("option", { name: /two failed/ }).click();
  await page.getByRole("button", { name: "Seen", exact: true }).last().click();
  await inbox.getByRole("option", { name: /two failed/ }).waitFor({ state: "detached" });

  // An approval with a goto sends its step back with the comment, and asks again.
  const rework = await world.start("rework");
  await inbox.getByRole("option", { name: "Good enough?" }).click();
  await page.getByLabel("Reason, or feedback for the agent").fill("sign it");
  await page.getByRole("button", { name: /^Reject/ }).click();
  await dialog.getByText(/build: done, becomes/).waitFor();
  await dialog.getByRole("button", { name: "Reject", exact: true }).click();
  await until(async () => (await world.taskOf(rework, "build")).attempt === 2, "its step is done again");
  await until(async () => (await world.taskOf(rework, "approve")).state === "ready", "it asks again");
  assert.match(JSON.stringify((await world.taskOf(rework, "build")).feedback), /sign it/);
  await inbox.getByRole("option", { name: "Good enough?" }).click();
  await page.keyboard.press("a");
  await until(async () => (await world.ask(`/runs/${rework}`)).status === "completed", "the reworked run completes");

  // A failure opens its log at the error, and is retried by key.
  const broken = await world.start("broken");
  await inbox.getByRole("option", { name: /broken failed/ }).click();
  await page.getByRole("link", { name: "Open the log" }).click();
  await page.locator(".l.err", { hasText: "card_declined" }).waitFor();
  await page.keyboard.press("t");
  await dialog.getByText(/charge: failed, becomes ready/).waitFor();
  await dialog.getByRole("button", { name: "Retry" }).click();
  await page.getByText("Retried").waitFor();
  await until(async () => (await world.taskOf(broken, "charge")).attempt === 2, "it is tried again");

  // Work for an agent that nobody serves says what to type.
  const cared = await world.start("care");
  await page.goto(world.url);
  await inbox.getByRole("option", { name: /Nobody serves/ }).click();
  await page.getByText("holdfast worker --agent carer").waitFor();

  // Its worker asks; the answer is typed here, and comes to it.
  const claim = () => world.ask("/claims", { worker: "carer-1", agents: ["carer"], wait_seconds: 20 });
  const [held] = (await claim()).assignments;
  await world.ask(`/claims/${held.task.id}/ask`, { token: held.token, question: "Which <i>colour</i>?" });
  await inbox.getByRole("option", { name: "Which <i>colour</i>?" }).click();
  await page.getByLabel("Answer").fill("teal");
  await page.keyboard.press("Enter");
  await inbox.getByRole("option", { name: "Which <i>colour</i>?" }).waitFor({ state: "detached" });
  const [again] = (await claim()).assignments;
  assert.equal(again.task.id, held.task.id);
  assert.match(JSON.stringify(again.task.feedback), /teal/);
  await world.ask(`/claims/${again.task.id}/complete`, { token: again.token });
  await until(async () => (await world.ask(`/runs/${cared}`)).status === "completed", "the run completes");
});
