/** The difference of two texts, line by line: the longest common sequence, after equal ends are cut off. */

export interface DiffLine {
  kind: "same" | "add" | "del";
  text: string;
  before?: number;
  after?: number;
}

/** Beyond this, what is between the equal ends is told as removed and added. */
const MOST = 2_000;

export function diffLines(before: string, after: string): DiffLine[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const [mid, other] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  const same = (text: string) => lines.push({ kind: "same", text, before: ++i, after: ++j });
  const del = (text: string) => lines.push({ kind: "del", text, before: ++i });
  const add = (text: string) => lines.push({ kind: "add", text, after: ++j });
  a.slice(0, start).forEach(same);
  if (mid.length > MOST || other.length > MOST) {
    mid.forEach(del);
    other.forEach(add);
  } else {
    walk(mid, other, same, del, add);
  }
  a.slice(a.length - end).forEach(same);
  return lines;
}

type Tell = (text: string) => unknown;

function walk(a: string[], b: string[], same: Tell, del: Tell, add: Tell): void {
  const width = b.length + 1;
  const longest = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      longest[i * width + j] =
        a[i] === b[j]
          ? longest[(i + 1) * width + j + 1]! + 1
          : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!);
    }
  }
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      same(a[i]!);
      i += 1;
      j += 1;
    } else if (i < a.length && (j >= b.length || longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!)) {
      del(a[i]!);
      i += 1;
    } else {
      add(b[j]!);
      j += 1;
    }
  }
}
