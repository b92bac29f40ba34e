import type { Lacks } from "../../../core/controller/requests/credentials/strict.ts";
import type { Within } from "../../../core/controller/requests/credentials/within.ts";
import { isObject } from "../../../core/outbox.ts";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { RouteName } from "../../../model/contract/routes.ts";
import { allows } from "../../../model/contract/tenancy/rules.ts";
import { strictRight } from "../../../model/contract/tenancy/verbs.ts";
import type { Json } from "../../../model/json/json.ts";
import { bearerOf, hashCredential, isAuthorized } from "../../http/bearer.ts";
import type { PeerRequest } from "../../http/peer-handler.ts";
import { isTenantTicket, isTicket } from "../../identity/tickets.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import type { TicketCheck } from "../tickets.ts";
import { type Refusal, type Tenant, tenantOf } from "./tenants.ts";

const gateway = peerName("gateway");

/** What whoever has a part of the cell alone may ask. Each is held to that part by the controller (`requests/credentials/within.ts`). */
const ofAPart: ReadonlySet<RouteName> = new Set([
  ...(["readElement", "listElements", "putElement", "patchModel", "deleteElement", "explain"] as const),
]);
/** A refusal; null: it may be asked. */
export function partMayNotAsk(caller: Caller | null, name: RouteName): Refusal | null {
  if (caller === null || !("within" in caller) || caller.within === undefined || ofAPart.has(name)) return null;
  const message = `this credential opens ${caller.within.path} alone: elements there are read, listed and changed, each by its path or by a patch`;
  return { status: 403, code: "forbidden", message };
}
/** What the controller is told of it, beside the rest of a request. */
export const withinOf = (caller: Caller | null): { readonly within?: Within } =>
  caller !== null && "within" in caller && caller.within !== undefined ? { within: caller.within } : {};

/** Rights that a user has not, of those that depend on what a change is. A credential's holder, and the operator, have all of them. */
export const lacksOf = (caller: Caller | null): { readonly lacks?: Lacks } =>
  caller !== null && "tenant" in caller && !allows(caller.tenant.rules, strictRight) ? { lacks: [strictRight] } : {};

/** Who was let in: the operator, whoever holds the cell's own credential with this hash, or a user of its account. */
export type Caller =
  | { readonly operator: true }
  | { readonly operator: false; readonly hash: string; readonly within?: Within }
  | { readonly operator: false; readonly tenant: Tenant };

/**
 * One of the cell's own credentials, a ticket that the gateway shows in place of the operator's, or the operator's itself: at
 * the root cell, and by a gateway of the previous version.
 */
export async function callerOf(
  request: (request: Json) => Promise<Json>,
  { cell, credentialHashes }: Pick<NonNullable<ProcessConfiguration["controller"]>, "cell" | "credentialHashes">,
  tickets: TicketCheck,
  incoming: PeerRequest,
): Promise<Caller | { readonly refused: Refusal }> {
  const { authorization } = incoming.headers;
  if (isAuthorized(authorization, credentialHashes)) return { operator: true };
  const credential = bearerOf(authorization);
  if (credential !== null && isTicket(credential) && incoming.peer === gateway) {
    const worth = await tickets(authorization);
    if ("fault" in worth) {
      const message = `the controller of the cell ${cell} could not ask what a ticket for it is worth, which stands for the operator's credential: ${worth.fault}. A credential of the cell opens it meanwhile`;
      return { refused: { status: 502, code: "controller-unreachable", message } };
    }
    if (worth.known) return { operator: true };
  } else if (credential !== null && isTenantTicket(credential) && incoming.peer === gateway) {
    const tenant = await tenantOf(request, cell, credential);
    return "refused" in tenant ? tenant : { operator: false, tenant };
  } else if (credential !== null) {
    const hash = hashCredential(credential);
    const known = (await request({ method: "CREDENTIAL-KNOWN", hash })) as { readonly body?: Json };
    if (known.body === true) return { operator: false, hash };
    if (isObject(known.body)) return { operator: false, hash, within: known.body.within as unknown as Within };
  }
  const message = `this is no credential of the cell ${cell}: ask its operator for one (cells credential add ${cell})`;
  return { refused: { status: 401, code: "unauthorized", message } };
}
