/** The command-line form of what the dashboard does. */

const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/;

export function quote(word: string): string {
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

export function commandOf(...words: (string | undefined)[]): string {
  return ["holdfast", ...words.filter((word) => word !== undefined).map(quote)].join(" ");
}
