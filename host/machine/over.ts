import type { Effect } from "../../core/env.ts";
import type { PeerName, Uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";

/**
 * Which incarnations are over here. A controller whose store is older says again what it desired then, also of a machine that
 * this host has ended and forgotten since: to start that once more could be a second machine beside the one that runs
 * elsewhere by now. So the newest incarnation of each VM that went is kept when its record goes, by client, since nobody
 * can say anything of another cell's.
 */
export type Over = Map<string, number>;

const record = "over";
/** Of the VMs that went last. */
const most = 2048;
const nameOf = (client: PeerName, vm: Uid): string => `${client}/${vm}`;

export function restoreOver(records: ReadonlyMap<string, Json>): Over {
  const prefix = `${record}/`;
  return new Map(
    [...records].flatMap(([key, value]) => (key.startsWith(prefix) ? [[key.slice(prefix.length), Number(value)]] : [])),
  );
}

export function noteOver(
  over: Over,
  { client, vm }: { readonly client: PeerName; readonly vm: { readonly uid: Uid; readonly incarnation: number } },
  effects: Effect[],
): void {
  const name = nameOf(client, vm.uid);
  const incarnation = Math.max(over.get(name) ?? 0, vm.incarnation);
  over.delete(name);
  over.set(name, incarnation);
  effects.push({ kind: "write", key: `${record}/${name}`, value: incarnation });
  const [oldest] = over.keys();
  if (over.size <= most || oldest === undefined) return;
  over.delete(oldest);
  effects.push({ kind: "write", key: `${record}/${oldest}`, value: null });
}

export const isOver = (over: ReadonlyMap<string, number>, client: PeerName, vm: Uid, incarnation: number): boolean =>
  incarnation <= (over.get(nameOf(client, vm)) ?? 0);
