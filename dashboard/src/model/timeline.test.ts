import { expect, test } from "vitest";

import { sampleEvent } from "./samples";
import { buildLanes, buildScale, findCriticalPath, findIdleStretches } from "./timeline";

const START = Date.UTC(2026, 10, 18, 13, 41, 0);
const at = (second: number) => START + second * 1_000;
const running = (second: number, task: string, attempt: number) =>
  sampleEvent(second, "task.running", { task_id: task, attempt, from: "queued", to: "running" });

test("each attempt is a bar from its claim to its end, with what became of it", () => {
  const lanes = buildLanes(
    [
      sampleEvent(0, "task.created", { task_id: "t", to: "queued" }),
      running(1, "t", 1),
      sampleEvent(5, "task.lost", { task_id: "t", attempt: 1, from: "running", to: "queued" }),
      running(6, "t", 2),
      sampleEvent(9, "task.retrying", { task_id: "t", attempt: 2, from: "running", to: "queued" }),
      running(20, "t", 3),
    ],
    at(30),
  );
  expect(lanes.get("t")!.bars.map((bar) => [bar.attempt, bar.kind, (bar.from - START) / 1_000, (bar.to - START) / 1_000])).toEqual([
    [1, "lost", 1, 5],
    [2, "failed", 6, 9],
    [3, "running", 20, 30],
  ]);
  expect(lanes.get("t")!.ended).toBeUndefined();
});

test("an attempt that was done and then rejected counts no more", () => {
  const lanes = buildLanes(
    [
      running(0, "t", 1),
      sampleEvent(4, "task.done", { task_id: "t", attempt: 1, from: "running", to: "done" }),
      sampleEvent(6, "task.reopened", { task_id: "t", attempt: 1, from: "done", to: "queued" }),
    ],
    at(10),
  );
  expect(lanes.get("t")!.bars).toMatchObject([{ kind: "rejected", outcome: "completed, then rejected" }]);
});

test("a running task that is cancelled ends there", () => {
  const lanes = buildLanes(
    [running(0, "t", 1), sampleEvent(3, "task.cancelled", { task_id: "t", attempt: 1, from: "running", to: "cancelled" })],
    at(10),
  );
  expect(lanes.get("t")!.bars).toMatchObject([{ kind: "cancelled", to: at(3) }]);
  expect(lanes.get("t")!.ended).toBe(at(3));
});

const TWO_DAYS = buildLanes(
  [
    running(0, "a", 1),
    sampleEvent(60, "task.done", { task_id: "a", attempt: 1, from: "running", to: "done" }),
    running(172_800, "b", 1),
    sampleEvent(172_860, "task.done", { task_id: "b", attempt: 1, from: "running", to: "done" }),
  ],
  at(172_860),
);

test("a stretch in which nothing ran can be left out, and what ran keeps its room", () => {
  const whole = { from: at(0), to: at(172_860) };
  const idle = findIdleStretches(TWO_DAYS.values(), whole);
  expect(idle).toEqual([{ from: at(60), to: at(172_800) }]);
  const scale = buildScale(whole, idle);
  expect(scale.place(at(60))).toBeCloseTo(49);
  expect(scale.place(at(172_800))).toBeCloseTo(51);
  expect(scale.place(at(172_860))).toBe(100);
  expect(buildScale(whole, []).place(at(60))).toBeLessThan(1);
});

test("an axis has at most eight labels, the first without one of its own", () => {
  for (const length of [1, 7, 61, 840, 4_000, 90_000, 9_000_000]) {
    const { ticks } = buildScale({ from: at(0), to: at(length) }, []);
    expect(ticks.length).toBeLessThanOrEqual(8);
    expect(ticks[0]).toMatchObject({ place: 0, label: "" });
  }
  expect(buildScale({ from: at(0), to: at(840) }, []).ticks[1]!.label).toBe("+2m");
});

test("the critical path goes from the last end back to what it waited for", () => {
  const lanes = buildLanes(
    [
      running(0, "plan", 1),
      sampleEvent(10, "task.done", { task_id: "plan", attempt: 1, from: "running", to: "done" }),
      running(10, "short", 1),
      running(10, "long", 1),
      sampleEvent(12, "task.done", { task_id: "short", attempt: 1, from: "running", to: "done" }),
      sampleEvent(30, "task.done", { task_id: "long", attempt: 1, from: "running", to: "done" }),
      running(30, "test", 1),
      sampleEvent(40, "task.done", { task_id: "test", attempt: 1, from: "running", to: "done" }),
    ],
    at(40),
  );
  const path = findCriticalPath(lanes.values());
  expect([...lanes].filter(([, lane]) => path.has(lane.bars[0]!)).map(([task]) => task)).toEqual(["plan", "long", "test"]);
});
