import type { DesiredDeclared } from "../../documents/tenancy.ts";
import type { Actor } from "../actor.ts";
import { type Refused, refused } from "../refused.ts";
import type { TenancyState } from "../state.ts";

/*
 * Each fact has one keeper. What the root cell's specification declares of domains, accounts and roles changes there alone: two who write one
 * thing, of whom one does it again whenever he is started, would undo each other's work, and nobody could tell what holds.
 */

/** Who does what is declared: he may everything, and is the one whom the rule below lets. */
export const specification: Actor = {
  user: null,
  label: "controller.root",
  role: "operator",
  reach: "installation",
  rules: [{ verb: "*", effect: "allow" }],
};

export const nameOf = (kind: DesiredDeclared["kind"], path: string): string =>
  `${kind === "role" ? "role" : "place"} ${path}`;

/** Where it stands in the root cell's model; null: it is not declared. */
export function declaredAt({ declared }: TenancyState, kind: DesiredDeclared["kind"], path: string): string | null {
  for (const key of declared.of.get(nameOf(kind, path)) ?? []) return declared.all.get(key)?.at ?? null;
  return null;
}

/** As a list shows it. */
export function declaredOf(
  state: TenancyState,
  kind: DesiredDeclared["kind"],
  path: string,
): { readonly declared?: string } {
  const at = declaredAt(state, kind, path);
  return at === null ? {} : { declared: at };
}

/** Why it is not to be changed by a command; null: it may. */
export function whyDeclared(
  state: TenancyState,
  actor: Actor,
  kind: DesiredDeclared["kind"],
  path: string,
): Refused | null {
  const at = actor === specification ? null : declaredAt(state, kind, path);
  return at === null ? null : keptThere(kind === "role" ? `the role ${path}` : path, at);
}
/** The same of a domain with all that is below it. */
export function whyDeclaredBelow(state: TenancyState, path: string): Refused | null {
  if (state.declared.all.size === 0) return null;
  for (const { kind, path: own, at } of state.declared.all.values())
    if (own === path || own.startsWith(`${path}/`)) return keptThere(kind === "role" ? `the role ${own}` : own, at);
  return null;
}
const keptThere = (what: string, at: string): Refused =>
  refused(
    409,
    "conflict",
    `${what} stands in the root cell's specification (${at}) and changes only there: the operator changes it by \`cells apply\` of that, or takes it out of it; then it goes on as it is, and is changed and deleted here`,
  );
