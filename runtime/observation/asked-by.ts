import { kindOf } from "../../core/documents/permissions.ts";
import type { AuditEntry, AuditPart } from "../../model/contract/audit/audit.ts";
import { viaHeader, viaIn } from "../../model/contract/audit/via.ts";
import type { PeerRequest } from "../http/peer-handler.ts";
import type { AuditQuery } from "./read-audit.ts";

/*
 * Who has something done at a service that has no users: the operator, whose credential the gateway has seen. The gateway's word counts for that, and for
 * where he came from.
 */
/** Header of a request by the gateway: address of the client, as the gateway saw it. */
export const sourceHeader = "cells-client-address";
/** The same: a user who may have it done. Absent: the operator. */
export const userHeader = "cells-client-user";

export interface AuditAccess {
  /** Before something is done that the service itself is not asked for. Resolves when that is durable. */
  record(entry: AuditEntry): Promise<void>;
  /** Null: the service has records of its own, and its edge answers. */
  read(query: AuditQuery): Promise<AuditPart | null>;
}
export const recordsPath = "/records";

export function askedBy(
  { peer, headers }: Pick<PeerRequest, "peer" | "headers">,
  asked: Pick<AuditEntry, "verb" | "target" | "what">,
): AuditEntry {
  const source = headers[sourceHeader];
  const user = headers[userHeader];
  const via = viaIn(headers[viaHeader]);
  return {
    who: typeof user === "string" && user !== "" ? user.slice(0, 200) : "operator",
    door: kindOf(peer) ?? peer,
    ...(typeof source === "string" ? { source } : {}),
    ...(via === undefined ? {} : { via }),
    ...asked,
    outcome: "done",
  };
}
