import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** What is no code of ours, or a copy of some. */
const notOurs = /^(node_modules|\.git|\.[^/]*)(\/|$)/;

/** All TypeScript files below `root`, in order. */
export const sourcesBelow = (root: string): readonly string[] =>
  readdirSync(root, { withFileTypes: true })
    .filter(({ name }) => !notOurs.test(name))
    .flatMap((entry) => {
      if (!entry.isDirectory()) return [entry.name];
      const names = readdirSync(join(root, entry.name), { recursive: true, encoding: "utf8" });
      return names.map((name) => join(entry.name, name));
    })
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".d.ts"))
    .sort();

/** Files that this one runs: what it imports but for types alone, and what it starts as a process or a thread. */
function usedBy(file: string, text: string): readonly string[] {
  const named = [
    ...text.matchAll(/^(?:import|export)(?! type\b)[^"';]*?\bfrom "(\.[^"]+)"/gm),
    ...text.matchAll(/\bimport\(\s*"(\.[^"]+)"/g),
    ...text.matchAll(/\bimport "(\.[^"]+)"/g),
    ...text.matchAll(/\bnew URL\(\s*"(\.?[^":]+\.ts)"/g),
  ];
  return named.map(([, name = ""]) => join(dirname(file), name));
}

/**
 * How far each file that uses `file` is from it, by the shortest way: 0 itself, 1 what imports it. `texts` are the texts of all
 * files that there are.
 */
export function distancesFrom(file: string, texts: ReadonlyMap<string, string>): ReadonlyMap<string, number> {
  const users = new Map<string, string[]>();
  for (const [user, text] of texts)
    for (const used of usedBy(user, text)) {
      const known = users.get(used);
      if (known === undefined) users.set(used, [user]);
      else known.push(user);
    }
  const distances = new Map([[file, 0]]);
  for (const [at, distance] of distances)
    for (const user of users.get(at) ?? []) if (!distances.has(user)) distances.set(user, distance + 1);
  return distances;
}

export const textsBelow = (root: string): ReadonlyMap<string, string> =>
  new Map(sourcesBelow(root).map((name) => [name, readFileSync(join(root, name), "utf8")]));
