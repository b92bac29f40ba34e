import { sessionVerbs } from "../../cell/session-messages.ts";
import type { RouteName } from "../routes.ts";
import { allows, type Rule } from "./rules.ts";

/**
 * What a tenant's rules call the requests of the published contract. A right means the same through every door: whatever speaks another
 * protocol maps its commands onto these. A request that is not here is the operator's, whatever anybody's rules say.
 */
const verbs = {
  listCells: "cell.read",
  listAllElements: "cell.read",
  listElements: "cell.read",
  readCell: "cell.read",
  readModel: "cell.read",
  readElement: "cell.read",
  readCounters: "cell.read",
  readMachineHistory: "cell.read",
  readSource: "cell.read",
  listVersions: "cell.read",
  followCell: "cell.read",
  // And only what is one's own, without `audit.read`.
  readCellAudit: "cell.read",
  explain: "cell.read",
  putModel: "cell.change",
  putElement: "cell.change",
  // It never deletes the cell as a whole.
  patchModel: "cell.change",
  deleteModel: "cell.delete",
  deleteElement: "cell.change",
  listCredentials: "credential.read",
  addCredential: "credential.add",
  revokeCredential: "credential.revoke",
  exec: "vm.exec",
} as const satisfies Partial<Record<RouteName, string>>;

/** To have hosts alone for VMs (`x.placement.dedication "strict"`): no request, but what one changes (`core/controller/requests/credentials/strict.ts`). */
export const strictRight = "placement.strict";

/** Null: no rule gives it. Of a session in a VM: `sessionVerb`. */
export const verbOf = (name: RouteName): string | null =>
  Object.hasOwn(verbs, name) ? verbs[name as keyof typeof verbs] : null;
export const sessionVerb = (verb: string): string => `vm.${verb}`;

/** Whoever has a cell's own credential may do all of these there, and is not asked who he is. */
const ofCredential: readonly string[] = [
  ...new Set([...Object.values(verbs), ...sessionVerbs.map(sessionVerb), strictRight]),
];
/** What a cell's credential may, and these rules do not; null: nothing. */
export const beyondOwn = (rules: readonly Rule[]): string | null =>
  ofCredential.find((verb) => !allows(rules, verb)) ?? null;
