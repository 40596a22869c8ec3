import { expect, test } from "vitest";

import { describePreview } from "./preview";
import { sampleTask } from "./samples";

const running = sampleTask({
  id: "t_1",
  status: "running",
  attempt: 2,
  address: "r_1:build.2.implement",
  lease: { owner: "laptop-2", expires_at: "2026-11-18T14:00:00Z" },
});

test("a few tasks are named, and one that runs is told to stop", () => {
  const waiting = sampleTask({ id: "t_2", state: "blocked", address: "r_1:test" });
  const tasks = [running, waiting].map((task) => ({ ...task, becomes: "cancelled" }));
  expect(describePreview({ id: "r_1", tasks })).toEqual([
    { mark: "cancelled", text: "build.2.implement: running, becomes cancelled, its attempt 2 on laptop-2 stops" },
    { mark: "cancelled", text: "test: blocked, becomes cancelled" },
  ]);
});

test("many tasks are counted by what becomes of them", () => {
  const many = Array.from({ length: 40 }, (_, at) => ({ ...sampleTask({ id: `t_${at}`, state: "idle" }), becomes: "ready" }));
  expect(describePreview({ id: "r_1", tasks: many })).toEqual([{ mark: "ready", text: "40 tasks: idle, becomes ready" }]);
});

test("that nothing changes is said", () => {
  expect(describePreview({ id: "r_1", tasks: [] })).toEqual([{ mark: "waiting", text: "No task changes" }]);
});
