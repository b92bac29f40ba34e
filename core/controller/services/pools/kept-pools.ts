import { hostName, type PeerName, uid } from "../../../../model/cell/identifiers.ts";
import type { Json } from "../../../../model/json/json.ts";
import { pooledKey } from "../../../documents/pools.ts";
import { desiredPooled } from "../../../documents/readers/pools.ts";
import { servicePeer } from "../../../documents/service-roles.ts";
import { log } from "../../../outbox.ts";
import type { ControllerState } from "../../state.ts";
import { takeKeptClaim } from "../claims.ts";
import { isRoot } from "../hosts.ts";
import { drop, save, wishesOf } from "./given.ts";

const prefix = pooledKey(hostName(""));
const isPlacer = (peer: PeerName): boolean => peer === servicePeer("placer") || peer.startsWith("placer.");

/**
 * What a Placer keeps of hosts of flavours while the root controller's store is blank. Nobody else knows which host a pool has: the
 * model of its cell names none. Forgotten, it would be given another one while its VMs stand there; and as they do, and the host is enabled, the operator's
 * newest text would be refused, which has it in its flavour. So what was given stays given, until an owner is there who does not ask for it.
 *
 * Of several Placers one may have been away: the later claim counts. Before an operator's word nothing follows from this. A store that has a model
 * has its own records of hosts, older or not: one Placer that lies would give them to others.
 */
export function takeKeptPooled(state: ControllerState, peer: PeerName, key: string, value: Json): void {
  if (state.model.document !== null) return;
  const kept = key.startsWith(prefix) && isRoot(state) && isPlacer(peer) ? desiredPooled.of(value) : null;
  if (kept === null) return;
  const { host, flavor, tag, epoch = 0, pool } = kept;
  if (!takeKeptClaim(state, host, { epoch, rule: null, pooled: { flavor, pool } })) return;
  const asked = pool === null ? null : uid(tag.split(" ")[0] ?? "");
  for (const record of [...state.pooled.values()])
    if (record.host === host || record.uid === asked) drop(state, record.uid);
  log(state.outbox, "pools/kept", { host, flavor, uid: asked });
  if (pool === null || asked === null) return;
  const { cell, path, name, enabled, authorised } = pool;
  const child = uid(asked.slice(0, asked.lastIndexOf("-")));
  const owner = { child, cell, pool: pool.uid, path, name, enabled, authorised, ...wishesOf(pool) };
  save(state, { uid: asked, host, flavor, ...owner });
}
