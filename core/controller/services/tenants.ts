import type { ElementType } from "../../../model/cell/cell.ts";
import type { Uid } from "../../../model/cell/identifiers.ts";
import { isTenant, type TenantElement, tenantPath } from "../../../model/check/root-cell/check-tenants.ts";
import { sha256 } from "../../../model/contract/audit/sha256.ts";
import { actualDeclared, desiredDeclared } from "../../documents/readers/tenancy.ts";
import { type DesiredDeclared, declaredKey, tenancy } from "../../documents/tenancy.ts";
import { actualKey } from "../../documents/vocabulary.ts";
import { answerOf } from "../changes/standing.ts";
import type { ElementRecord, Standing } from "../records.ts";
import { actualOf, addDesire, type ControllerState, desiredNow, elementOf } from "../state.ts";
import { isRoot } from "./hosts.ts";

/*
 * Domains, accounts and roles that the root cell's specification declares: each is desired at the service `tenancy`, which makes it so and lets nobody
 * else change it. What leaves the model is taken back, and goes on there as it is.
 */
export const isTenantType = (type: ElementType): boolean => type === "Domain" || type === "Account" || type === "Role";

export function desireTenants(state: ControllerState): void {
  if (!isRoot(state)) return;
  state.pass.each(
    "tenants",
    state.elements,
    (record, uid, desires) => {
      const element = elementOf(state, record);
      if (element === undefined || !isTenant(element)) return;
      addDesire(desires, tenancy, declaredKey(uid), documentOf(uid, element));
    },
    { of: ({ type }) => isTenantType(type) },
  );
}
function documentOf(uid: Uid, element: TenantElement): DesiredDeclared {
  const said = { uid, at: element.path, path: tenantPath(element), ...whatOf(element) };
  return { ...said, tag: sha256(JSON.stringify(said)).slice(0, 16) };
}
type What<D> = D extends DesiredDeclared ? Omit<D, "uid" | "at" | "path" | "tag"> : never;
function whatOf(element: TenantElement): What<DesiredDeclared> {
  switch (element.type) {
    case "Domain":
      return { kind: "domain", state: element.state, limits: element.limits };
    case "Account":
      return { kind: "account", state: element.state, limits: element.limits };
    case "Role": {
      const { reach, rules, secondFactor } = element;
      return { kind: "role", reach, rules, ...(secondFactor ? { secondFactor } : {}) };
    }
  }
}

/** As it is declared once the service has said so of what is declared now. */
export function tenantState(state: ControllerState, { uid }: ElementRecord): Standing {
  const said = actualOf(actualDeclared, state, tenancy, declaredKey(uid));
  const asked = desiredDeclared.of(desiredNow(state, tenancy, declaredKey(uid)), uid);
  return answerOf(state, tenancy, said?.tag === asked?.tag ? said : undefined);
}

/** What is said of them, and nothing of what tickets are worth, which is followed apart. */
export function followTenants(state: ControllerState): void {
  if (!isRoot(state) || state.subscribed.has(tenancy)) return;
  if (![...state.elements.values()].some(({ type }) => isTenantType(type))) return;
  state.subscribed.add(tenancy);
  const prefix = actualKey(state.options.self, declaredKey(""));
  state.outbox.effects.push({ kind: "subscribe", to: tenancy, prefix });
}
