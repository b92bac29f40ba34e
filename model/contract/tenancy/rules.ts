import type { RoleRule } from "../../cell/cell.ts";

/**
 * What a role allows. Rules are looked at in their order, and the first one whose pattern has the verb decides; none is *deny*.
 * A pattern is a verb (`cell.change`), all of one kind (`cell.*`), or all (`*`).
 */
export type Rule = RoleRule;

/**
 * On what a role may be used: everything; the domain of its user's account and all below; that account alone. Each one
 * includes those after it.
 */
export const reaches = ["installation", "domain", "account"] as const;
export type Reach = (typeof reaches)[number];

const isAllOf = (pattern: string): boolean => pattern === "*" || pattern.endsWith(".*");
/** What a pattern's verbs begin with. */
const beginOf = (pattern: string): string => pattern.slice(0, -1);

export const matches = (pattern: string, verb: string): boolean =>
  isAllOf(pattern) ? verb.startsWith(beginOf(pattern)) : pattern === verb;

export interface Decision {
  readonly allowed: boolean;
  /** Index of the rule that decides; null: none has the verb. */
  readonly rule: number | null;
}
export function decide(rules: readonly Rule[], verb: string): Decision {
  const index = rules.findIndex((rule) => matches(rule.verb, verb));
  return index < 0 ? { allowed: false, rule: null } : { allowed: rules[index]?.effect === "allow", rule: index };
}
export const allows = (rules: readonly Rule[], verb: string): boolean => decide(rules, verb).allowed;

/** As people read it: which rule decides. */
export function ruleText(rules: readonly Rule[], { rule }: Decision): string {
  const found = rule === null ? undefined : rules[rule];
  return found === undefined || rule === null ? "no rule allows it" : `rule ${rule + 1}: ${found.effect} ${found.verb}`;
}

/** No verb has such a name: it stands for every one that no other pattern of the two names. */
const other = "~";

/**
 * A verb, or all that begins so, which `given` allows and `giver` does not; null: there is none, so that whoever has `giver`
 * may give `given`. Verbs of later versions count: two lists of rules treat all verbs alike that the same patterns have, so one of
 * each kind is looked at, those included that nobody has named.
 */
export function beyond(given: readonly Rule[], giver: readonly Rule[]): string | null {
  const patterns = [...given, ...giver].map(({ verb }) => verb);
  const kinds = patterns.map((pattern) => (isAllOf(pattern) ? `${beginOf(pattern)}${other}` : pattern));
  const found = kinds.find((verb) => allows(given, verb) && !allows(giver, verb));
  return found === undefined ? null : found.replace(other, "*");
}

/** Is `reach` no wider than `limit`? */
export const isWithinReach = (reach: Reach, limit: Reach): boolean => reaches.indexOf(reach) >= reaches.indexOf(limit);

/** Roles that every installation has. */
export interface BuiltInRole {
  readonly name: string;
  readonly reach: Reach;
  readonly rules: readonly Rule[];
}
const allow = (...verbs: readonly string[]): readonly Rule[] => verbs.map((verb) => ({ verb, effect: "allow" }));
export const builtInRoles: readonly BuiltInRole[] = [
  { name: "root-admin", reach: "installation", rules: allow("*") },
  { name: "domain-admin", reach: "domain", rules: allow("*") },
  {
    name: "account-admin",
    reach: "account",
    rules: allow(
      "cell.*",
      "vm.*",
      "placement.*",
      "credential.*",
      "user.*",
      "key.*",
      "delegation.*",
      "role.read",
      "account.read",
      "domain.read",
      "audit.read",
    ),
  },
  { name: "user", reach: "account", rules: allow("cell.*", "vm.*", "account.read") },
  { name: "reader", reach: "account", rules: allow("cell.read", "account.read") },
];
/** UID of a built-in role: no other one has such a form. */
export const builtInUid = (name: string): string => `role.${name}`;
