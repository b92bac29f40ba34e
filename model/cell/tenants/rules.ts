import type { RoleRule } from "../cell.ts";
import { ValueFault } from "../value-fault.ts";

/** Of a verb or a pattern: what a rule may name. */
export const verbPattern = /^(?:\*|[a-z]+(?:\.[a-z]+)*(?:\.\*)?)$/;
export const verbPatternRule = "a verb (cell.change), all of a kind (cell.*), or *";
/** In characters: none that there is has half as many. */
export const longestVerb = 64;
/** Of one role. */
export const mostRules = 256;

/** As it is written: `allow cell.*`. Null: it is no rule. */
export function readRule(text: string): RoleRule | null {
  const [effect, verb = "", ...more] = text.trim().split(/\s+/);
  if ((effect !== "allow" && effect !== "deny") || more.length > 0) return null;
  return verb.length > longestVerb || !verbPattern.test(verb) ? null : { verb, effect };
}
export const ruleText = ({ effect, verb }: RoleRule): string => `${effect} ${verb}`;

/** Of the attribute `name`; as it is written in one form. */
export function readRuleText(name: string, text: string): string | ValueFault {
  const rule = readRule(text);
  if (rule !== null) return ruleText(rule);
  const shown = JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
  return new ValueFault(
    "schema/value",
    `\`${name}\` has ${shown}, which is no rule`,
    `A rule is allow or deny and ${verbPatternRule}: write "allow cell.*".`,
  );
}

/** Path of an account, as `tenancy` names it. */
export const accountPaths = /^ROOT(?:\/[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)+$/;
export function readAccountPath(name: string, text: string): string | ValueFault {
  if (text.length <= longestPath && accountPaths.test(text)) return text;
  const shown = JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
  return new ValueFault(
    "schema/value",
    `\`${name}\` has ${shown}, which is no path of an account`,
    'Write it from the root of all domains: "ROOT/acme/dev".',
  );
}
const longestPath = 1024;
