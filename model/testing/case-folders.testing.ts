import assert from "node:assert/strict";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * Where cases are read from: beside the test, or from the folder of that name in the one that CELLS_CASES names, so that further cases can be tried
 * with the same runner.
 */
export const casesFrom = (ours: URL, folder: string): URL => {
  const other = process.env.CELLS_CASES;
  return other === undefined ? ours : pathToFileURL(join(resolve(other), folder, "/"));
};

/** What a case says and its runner does not know fails, and is not passed over: the case would pass without having been tried. */
export function onlyKnown(where: string, said: object, known: readonly string[]): void {
  for (const field of Object.keys(said))
    assert.ok(known.includes(field), `the runner knows nothing of ${field} in ${where}`);
}
