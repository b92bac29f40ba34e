import type { PeerName, Uid } from "../../model/identifiers.ts";
import { type ActualKept, actualKey } from "../documents.ts";
import { toJson } from "../outbox.ts";
import type { ManagerState } from "./manager-state.ts";

/**
 * What stays of deleted volumes. An origin goes only with its last copy, and until then it is in no model and so in no quota: two
 * cells that copy from each other in turn and delete their parts would have all but the last one for nothing. So it
 * counts for those whose copies lie over it, in each of their quotas, and their controllers are told how much that is.
 */
export function publishKept(state: ManagerState): void {
  if (!state.keptChanged || !state.started) return;
  state.keptChanged = false;
  const kept = new Map<PeerName, number>();
  const known = new Map<Uid, Clients>();
  for (const [volume, { sizeMiB }] of state.volumes) {
    if (state.wantedVolumes.has(volume) || state.unread.has(volume) || !state.copiesOf.has(volume)) continue;
    for (const client of wantersAbove(state, volume, known)) kept.set(client, (kept.get(client) ?? 0) + sizeMiB);
  }
  const tell = (client: PeerName, told: ActualKept | null): void => {
    state.outbox.effects.push({ kind: "publish", key: actualKey(client, "kept"), value: told && toJson(told) });
  };
  for (const client of state.kept.keys()) if (!kept.has(client)) tell(client, null);
  for (const [client, keptMiB] of kept) if (state.kept.get(client) !== keptMiB) tell(client, { keptMiB });
  state.kept.clear();
  for (const [client, keptMiB] of kept) state.kept.set(client, keptMiB);
}

type Clients = ReadonlySet<PeerName>;
const nobody: Clients = new Set();

/**
 * Whose copies lie over a volume, whatever lies between. `known` has those of others: what lies over the copies is found
 * first, once for all that lies below, and by a list, since a chain may be long.
 */
function wantersAbove(state: ManagerState, origin: Uid, known: Map<Uid, Clients>): Clients {
  const open = [origin];
  const entered = new Set<Uid>();
  for (let volume = open.at(-1); volume !== undefined; volume = open.at(-1)) {
    const copies = state.copiesOf.get(volume) ?? [];
    if (!known.has(volume) && !entered.has(volume)) {
      entered.add(volume);
      for (const copy of copies) if (!known.has(copy) && !entered.has(copy)) open.push(copy);
      continue;
    }
    open.pop();
    if (!known.has(volume)) known.set(volume, over(state, copies, known));
  }
  return known.get(origin) ?? nobody;
}

/** Who wants one of these copies, or something over them; the same set where one copy says it all. */
function over(state: ManagerState, copies: Iterable<Uid>, known: ReadonlyMap<Uid, Clients>): Clients {
  let clients = nobody;
  for (const copy of copies) {
    const wanted = state.wantedVolumes.get(copy);
    const above = known.get(copy) ?? nobody;
    const all = wanted === undefined || above.has(wanted.client) ? above : new Set([...above, wanted.client]);
    clients = clients.size === 0 ? all : new Set([...clients, ...all]);
  }
  return clients;
}
