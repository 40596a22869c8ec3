import { expect, test } from "vitest";

import { FrameParser } from "./stream";

const TEXT = 'id: 7\n\nid: 8\nevent: event\ndata: {"seq":8}\n\n: still here\n\nid: 9\nevent: gap\ndata: {"missed_after":"8"}\n\n';
const FRAMES = [
  { id: "7", event: "", data: "" },
  { id: "8", event: "event", data: '{"seq":8}' },
  { id: "", event: "", data: "" },
  { id: "9", event: "gap", data: '{"missed_after":"8"}' },
];

test("frames are the same wherever the pieces of a stream end", () => {
  for (let size = 1; size <= TEXT.length; size += 1) {
    const parser = new FrameParser();
    const frames = [];
    for (let from = 0; from < TEXT.length; from += size) frames.push(...parser.push(TEXT.slice(from, from + size)));
    expect(frames).toEqual(FRAMES);
  }
});
