import type { Client } from "../connection/client.ts";
import type { Candidate, Kind, Parts } from "./candidates.ts";
import { namesInTime } from "./names.ts";

/** What stands in one word may have parts: names with commas, `COLUMN=VALUE`, a path with its query. Tables come where they are needed alone. */
export async function partsOffered(parts: Parts, client: () => Client): Promise<readonly Candidate[]> {
  const named = async (kind: Kind, before: string, typed: string): Promise<readonly Candidate[]> =>
    (await namesInTime(client, kind, typed)).map(({ value, what }) => ({ value: `${before}${value}`, what }));
  if (parts.kind === "method") {
    const { methods } = await import("./paths-of-api.ts");
    return methods.filter((each) => each.startsWith(parts.typed.toUpperCase())).map((value) => ({ value, what: "" }));
  }
  if (parts.kind === "path") {
    const { pathsOf } = await import("./paths-of-api.ts");
    const { candidates, wanted } = pathsOf(parts.method, parts.typed);
    const found = await Promise.all(
      wanted.map(async ({ kind, before, typed, behind }) =>
        (await named(kind, before, typed)).flatMap(({ value, what }) =>
          behind.map((each) => ({ value: `${value}${each}`, what })),
        ),
      ),
    );
    return [...candidates, ...found.flat()];
  }
  const { columnsAfter, filterAfter } = await import("./of-lists.ts");
  if (parts.kind !== "filter") return columnsAfter(parts.typed, parts.kind === "sort").map(withBefore(parts.before));
  const { candidates, wanted } = filterAfter(parts.typed);
  const more = wanted === null ? [] : await named(wanted.kind, wanted.before, wanted.typed);
  return [...candidates, ...more].map(withBefore(parts.before));
}
const withBefore =
  (before: string) =>
  ({ value, what }: Candidate): Candidate => ({ value: `${before}${value}`, what });

export interface Joined {
  readonly words: readonly string[];
  /** So many characters of the last word stand before what the shell takes for the word. */
  readonly cut: number;
}
/** bash takes `phase=ready` for three words, and puts what is offered in place of the last of them. */
export function joined(words: readonly string[]): Joined {
  const made: string[] = [];
  let cut = 0;
  for (let at = 0; at < words.length; at += 1) {
    const [word = "", before, next] = [words[at], made.at(-1), words[at + 1]];
    cut = 0;
    if (word !== "=" || before === undefined || before.startsWith("-") || before === "=") {
      made.push(word);
      continue;
    }
    made[made.length - 1] = `${before}=${next ?? ""}`;
    cut = before.length + 1;
    at += next === undefined ? 0 : 1;
  }
  return { words: made, cut };
}
