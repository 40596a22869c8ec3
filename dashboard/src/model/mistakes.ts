/** The mistakes of a definition beside the lines that they are about. */

export interface PlacedLine<Mistake> {
  number: number;
  text: string;
  mistakes: Mistake[];
}

/** The lines with a mistake, and one before and after each. */
export function placeMistakes<Mistake extends { line: number }>(text: string, mistakes: Mistake[]): PlacedLine<Mistake>[] {
  const lines = text.split("\n");
  const shown = new Set(mistakes.flatMap(({ line }) => [line - 1, line, line + 1]));
  return lines
    .map((line, at) => ({ number: at + 1, text: line, mistakes: mistakes.filter((each) => each.line === at + 1) }))
    .filter(({ number }) => shown.has(number));
}
