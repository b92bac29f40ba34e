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
