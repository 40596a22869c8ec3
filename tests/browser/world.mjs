/** A world for a story: a store in a folder of its own, a server with a worker, and a real browser. */

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { chromium } from "playwright-core";

const HOLDFAST = process.env.HOLDFAST;
const PATIENCE = 30_000;
const NARROW = { width: 360, height: 780 };
const WIDE = { width: 1280, height: 900 };



/** The browser that `HOLDFAST_TEST_BROWSER` names, else the one of the packages. */
async function launch() {
  const named = process.env.HOLDFAST_TEST_BROWSER;
  if (named) return chromium.launch({ executablePath: named, args: ["--no-sandbox"] });
  const { default: packed } = await import("@sparticuz/chromium");
  // In one process, its contexts would share their cookies.
  const args = packed.args.filter((each) => each !== "--single-process");
  return chromium.launch({ executablePath: await packed.executablePath(), args });
}

export class World {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "story-"));
    this.complaints = [];
    this.port = 0;
  }

  /** Run the command line; what it prints. */
  holdfast(...words) {
    const ended = spawnSync(HOLDFAST, words, { cwd: this.folder, encoding: "utf8" });
    assert.equal(ended.status, 0, `holdfast ${words.join(" ")}\n${ended.stdout}\n${ended.stderr}`);
    return ended.stdout.trim();
  }

  write(name, text) {
    writeFileSync(join(this.folder, name), text);
  }

  define(name, text) {
    this.write(`${name}.yaml`, text);
    this.holdfast("workflow", "add", `${name}.yaml`);
  }

  async serve(...options) {
    const server = spawn(HOLDFAST, ["up", "--port", String(this.port), "--concurrency", "4", ...options], {
      cwd: this.folder,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    this.server = server;
    let said = "";
    const hear = (data) => (said += String(data));
    server.stdout.on("data", hear);
    server.stderr.on("data", hear);
    await until(() => /http:\/\/127\.0\.0\.1:\d+/.test(said) || server.exitCode !== null, "the server listens");
    const found = /http:\/\/127\.0\.0\.1:(\d+)/.exec(said);
    assert.ok(found, said);
    this.port = Number(found[1]);
    this.url = found[0];
    await until(async () => (await fetch(`${this.url}/healthz`).catch(() => undefined))?.ok, "the server answers");
    this.token = this.holdfast("token");
  }

  /** End the server at once, as a crash does. */
  async crash() {
    const over = new Promise((resolve) => this.server.once("exit", resolve));
    process.kill(-this.server.pid, "SIGKILL");
    await over;
  }

  /** Ask the API with a token, past the browser. */
  async ask(path, body, token = this.token) {
    const answer = await fetch(`${this.url}/api/v1${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const told = await answer.json();
    assert.ok(answer.ok, `${path}: ${JSON.stringify(told)}`);
    return told;
  }

  async start(workflow, input = {}, more = {}) {
    return (await this.ask("/runs", { workflow, input, ...more })).id;
  }

  async taskOf(run, step, { item } = {}) {
    const { items } = await this.ask(`/tasks?run=${run}&step=${step}`);
    return item === undefined ? items[0] : items.find((task) => task.item === item);
  }

  /** A browser that has come in by a link, in a context of its own. */
  async open(path = "/", { token = this.token, narrow = false, dark = false } = {}) {
    this.browser ??= await launch();
    const context = await this.browser.newContext({
      viewport: narrow ? NARROW : WIDE,
      colorScheme: dark ? "dark" : "light",
      reducedMotion: "reduce",
    });
    context.setDefaultTimeout(PATIENCE);
    const page = await this.tab(context);
    const link = await this.ask("/links", {}, token);
    await page.goto(this.url + link.path);
    await page.getByRole("button", { name: "Open Holdfast" }).click();
    await page.waitForURL(`${this.url}/`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    if (path !== "/") await page.goto(this.url + path);
    return page;
  }

  /** Another tab of the same browser; what goes wrong in it is kept. */
  async tab(context) {
    const page = await context.newPage();
    page.on("pageerror", (error) => this.complaints.push(`page error: ${error.message}`));
    page.on("console", (message) => {
      const text = message.text();
      if (/Content Security Policy|violates/i.test(text)) this.complaints.push(text);
    });
    page.on("dialog", (dialog) => {
      this.complaints.push(`a script has spoken: ${dialog.message()}`);
      void dialog.dismiss();
    });
    await page.addInitScript(() => {
      globalThis.violations = [];
      addEventListener("securitypolicyviolation", (event) => globalThis.violations.push(event.violatedDirective));
    });
    return page;
  }

  async end() {
    for (const context of this.browser?.contexts() ?? []) {
      for (const page of context.pages()) {
        const found = await page.evaluate(() => globalThis.violations ?? []).catch(() => []);
        this.complaints.push(...found.map((each) => `policy violated: ${each}`));
      }
    }
    await this.browser?.close();
    if (this.server && this.server.exitCode === null && this.server.signalCode === null) {
      const over = new Promise((resolve) => this.server.once("exit", resolve));
      process.kill(-this.server.pid, "SIGTERM");
      const killer = setTimeout(() => process.kill(-this.server.pid, "SIGKILL"), 5_000);
      await over;
      clearTimeout(killer);
    }
    rmSync(this.folder, { recursive: true, force: true });
    assert.deepEqual(this.complaints, []);
  }
}

export async function until(holds, what) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    if (await holds()) return;
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Tell a story in a world that is taken down in any case; a failure leaves a picture. */
export async function story(tell) {
  const world = new World();
  try {
    world.holdfast("init", "--bare");
    await tell(world);
  } catch (error) {
    const page = world.browser?.contexts().at(-1)?.pages().at(-1);
    const picture = process.env.STORY_PICTURE;
    if (page && picture) await page.screenshot({ path: picture }).catch(() => undefined);
    console.error(error);
    process.exitCode = 1;
  } finally {
    await world.end().catch((error) => {
      console.error(error);
      process.exitCode = 1;
    });
  }
}
