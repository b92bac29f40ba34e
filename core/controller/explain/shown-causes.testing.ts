import type { Cause } from "../../../model/cause/cause.ts";
import { isObject, type Json } from "../../../model/json/json.ts";

/** Facts of causes that are another's words, or that every change of a fixture would change. */
const unshown: ReadonlySet<string> = new Set([
  "kind",
  "because",
  "sentence",
  "detail",
  "key",
  "version",
  "wanted",
  "characters",
]);

/** Causes for a test to compare: kinds, facts in their order, and in brackets what is behind them. */
export const shownCauses = (causes: readonly Cause[]): string =>
  causes
    .map((cause) => {
      const facts = Object.entries(cause).flatMap(([name, fact]) => (unshown.has(name) ? [] : shownFact(name, fact)));
      const behind = "because" in cause && cause.because !== undefined ? [`(${shownCauses(cause.because)})`] : [];
      return [cause.kind, ...facts, ...behind].join(" ");
    })
    .join(", ");
function shownFact(name: string, fact: Json): readonly string[] {
  if (fact === null || (Array.isArray(fact) && fact.length === 0)) return [];
  if (typeof fact === "string") return [fact];
  if (!Array.isArray(fact)) return [`${name}=${JSON.stringify(fact)}`];
  return [(fact as readonly Json[]).map((each) => (isObject(each) ? `${each.host} ${each.kind}` : each)).join("+")];
}
