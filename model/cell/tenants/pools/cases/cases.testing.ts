import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Json, JsonObject } from "../../../../json/json.ts";
import { casesFrom, onlyKnown } from "../../../../testing/case-folders.testing.ts";

/** Rows of one file here, or of another folder's `pools/` where CELLS_CASES names one. */
export function casesOf<T>(file: string): readonly T[] {
  const base = casesFrom(new URL("./", import.meta.url), "pools");
  return JSON.parse(readFileSync(new URL(file, base), "utf8")) as readonly T[];
}

export interface PoolCase {
  readonly id: string;
  readonly rule: string;
  readonly given: JsonObject;
  readonly do: JsonObject;
  readonly then: JsonObject;
}
/**
 * All that a case may say is compared with all that is so; what it does not say is not looked at.
 * @param known what may be given
 */
export function runCases(
  file: string,
  known: readonly string[],
  run: (each: PoolCase) => Readonly<Record<string, unknown>>,
): void {
  for (const each of casesOf<PoolCase>(file))
    test(`${file} ${each.id} (${each.rule})`, () => {
      onlyKnown(`what is given in ${file}`, each.given, known);
      const told = run(each);
      for (const [key, wanted] of Object.entries(each.then)) {
        assert.ok(key in told, `the runner of ${file} knows nothing of ${key}`);
        if (key === "names")
          for (const name of wanted as string[]) assert.ok((told.names as string[]).includes(name), name);
        else
          assert.ok(isPart(wanted, told[key]), `${key}: ${JSON.stringify(told[key])}, not ${JSON.stringify(wanted)}`);
      }
    });
}
/** Of a list of records each counts by the fields that the case names. */
function isPart(wanted: Json, is: unknown): boolean {
  if (Array.isArray(wanted))
    return Array.isArray(is) && is.length === wanted.length && wanted.every((each, at) => isPart(each, is[at]));
  if (typeof wanted !== "object" || wanted === null) return wanted === is;
  if (typeof is !== "object" || is === null) return false;
  const said = Object.entries(wanted);
  const isRecord = "id" in wanted || "name" in wanted;
  if (!isRecord && Object.keys(is).length !== said.length) return false;
  return said.every(([key, value]) => isPart(value, (is as Readonly<Record<string, unknown>>)[key]));
}
