import type { ServerResponse } from "node:http";
import type { Asker } from "../../../core/controller/model/audited.ts";
import type { ControllerRequest, ControllerResponse } from "../../../core/controller/requests/requests.ts";
import { kindOf } from "../../../core/documents/permissions.ts";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { AuditHead, AuditRecord } from "../../../model/contract/audit/audit.ts";
import { viaHeader, viaIn } from "../../../model/contract/audit/via.ts";
import type { RouteName } from "../../../model/contract/routes.ts";
import { allows } from "../../../model/contract/tenancy/rules.ts";
import { sendJson } from "../../http/http.ts";
import type { PeerRequest } from "../../http/peer-handler.ts";
import { sourceHeader } from "../../observation/asked-by.ts";
import { type AuditQuery, readAudit, type Seen } from "../../observation/read-audit.ts";
import type { RunningService } from "../../process/process.ts";
import type { Caller } from "./callers.ts";

const gateway = peerName("gateway");

/** Who asks, for the record of what he changes. @param caller null: a service, by its certificate */
export function askerOf(caller: Caller | null, { peer, headers, raw }: PeerRequest): Asker {
  const said = headers[sourceHeader];
  // What a gateway says of addresses is believed; from inside a cell its own is known.
  const source = peer === gateway ? (typeof said === "string" ? said : undefined) : raw.socket.remoteAddress;
  const via = peer === gateway ? viaIn(headers[viaHeader]) : undefined;
  const at = {
    door: kindOf(peer) ?? peer,
    ...(source === undefined ? {} : { source }),
    ...(via === undefined ? {} : { via }),
  };
  if (caller === null) return { who: peer, ...at };
  if ("tenant" in caller) {
    const { user, account, session, ticket } = caller.tenant;
    return {
      who: user,
      account,
      by: session === undefined ? `ticket ${ticket.slice(0, 12)}` : `session ${session}`,
      ...at,
    };
  }
  return caller.operator ? { who: "operator", ...at } : { who: "credential", credential: caller.hash, ...at };
}

/** What the operator has other services do through this one: it is recorded before. */
export const recordedFirst: ReadonlySet<RouteName> = new Set([
  ...(["admitHost", "removeHost", "endHost", "orderBackupAtRoot"] as const),
]);

/** A user without the right to read all of it sees what he has done himself. */
const seenBy = (caller: Caller | null): Seen => {
  if (caller === null || !("tenant" in caller)) return "all";
  const { tenant } = caller;
  return ({ who, account }: AuditRecord): boolean => {
    if (!allows(tenant.rules, "audit.read")) return who === tenant.user;
    // What was done while the cell was somebody else's is not for its owner of now.
    return account === undefined || account === tenant.account;
  };
};

export async function answerAudit(
  ask: (request: ControllerRequest) => Promise<ControllerResponse>,
  audit: RunningService["audit"],
  { caller, query }: { readonly caller: Caller | null; readonly query: AuditQuery },
  response: ServerResponse,
): Promise<void> {
  const { body } = await ask({ method: "AUDIT" });
  const part = await readAudit(audit, body as unknown as AuditHead, query, seenBy(caller));
  sendJson(response, 200, part, { "cache-control": "no-store" });
}
