/** A plan is made by drag and by keyboard, seen by another browser as it is made, and finalized. */

import assert from "node:assert/strict";

import { story, until } from "../world.mjs";

await story(async (world) => {
  await world.serve("--agent", "somebody");
  const page = await world.open("/plan");
  await page.getByLabel("What is to be planned").fill("Invoices in two currencies");
  await page.getByRole("button", { name: "Plan it" }).click();
  await page.waitForURL(/\/plan\/t_/);
  const plan = /t_\w+/.exec(page.url())[0];
  const other = await world.open(`/plan/${plan}`);

  // Parts are added by key and titled; each change is seen elsewhere.
  const parts = page.getByRole("listbox", { name: "Parts of the plan" }).getByRole("option");
  const titles = async (of = page) =>
    (await of.getByRole("listbox", { name: "Parts of the plan" }).locator("b").allInnerTexts()).join(", ");
  const title = page.getByLabel("Title", { exact: true });
  for (const name of ["Rates", "Money", "Totals"]) {
    const before = await parts.count();
    await page.getByRole("heading", { level: 1 }).click();
    await page.keyboard.press("n");
    await until(async () => (await parts.count()) === before + 1, "a part is added");
    await page.getByText(`Part ${before + 1}`, { exact: true }).last().waitFor();
    await title.fill(name);
    await title.press("Enter");
    await until(async () => (await titles()).includes(name), `${name} is saved`);
  }
  await until(async () => (await titles(other)) === "Rates, Money, Totals", "the other browser sees the parts");

  // The last part is dragged to the top, and by keyboard one down again.
  await parts.nth(2).dragTo(parts.nth(0));
  await until(async () => (await titles()) === "Totals, Rates, Money", "it was dragged to the top");
  await parts.nth(0).click();
  await page.keyboard.press("Alt+ArrowDown");
  await until(async () => (await titles()) === "Rates, Totals, Money", "it was moved down");

  // Money is to wait for Rates alone: a line is drawn, and the others need nothing.
  await parts.nth(2).click();
  await page.getByLabel("Add a part that it needs").selectOption({ label: "1 Rates" });
  await parts.nth(2).getByText("after 1").waitFor();
  assert.equal(await page.locator(".kids svg path").count(), 2);

  // It says what finalizing does, and then does it.
  await page.getByRole("button", { name: /Finalize the plan/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText(/Money: idle, becomes blocked/).waitFor();
  await dialog.getByText(/Rates: idle, becomes ready/).waitFor();
  await dialog.getByRole("button", { name: "Finalize 3 parts" }).click();
  await other.getByText("planning finalized").waitFor();
  const { items } = await world.ask(`/tasks?parent=${plan}`);
  const states = Object.fromEntries(items.map((task) => [task.title, task.state]));
  assert.deepEqual(states, { Rates: "ready", Totals: "ready", Money: "blocked" });
});
