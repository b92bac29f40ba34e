import type { PeerName } from "../../../model/cell/identifiers.ts";
import { keepNewest } from "../../../model/limits.ts";
import { hostOffers } from "../../documents/readers/placement.ts";
import type { Input } from "../../env.ts";
import { isObject, write } from "../../outbox.ts";
import { offersOf } from "../services/hosts.ts";
import { type ControllerState, placerOf, storageManagerOf } from "../state.ts";

/*
 * Names of hosts and storage servers, as far as any are known here: whoever is not to learn them is told nothing in which one is. Causes and
 * sentences outlast what they name, and a start after which nobody has been heard yet: the names that were heard are kept, in the record
 * `machines`, written with whatever follows from the word that had them.
 */
/** Beyond that the one that was heard first is kept no more. */
export const mostMachines = 8_192;
const record = "machines";

export const restoredMachines = (kept: unknown): Set<string> =>
  new Set(Array.isArray(kept) ? kept.filter((name) => typeof name === "string") : []);

/** Takes the names that are in what a peer says, and its own. */
export function noteMachines(state: ControllerState, input: Input): void {
  if (input.kind !== "actual" && input.kind !== "reachable") return;
  const { machines } = state;
  const names: string[] = [];
  const peer = nameOfPeer(input.kind === "actual" ? input.from : input.peer);
  if (peer !== null) names.push(peer);
  if (input.kind === "actual") names.push(...namesIn(state, input));
  const news = names.filter((name) => !machines.has(name));
  if (news.length === 0) return;
  for (const name of news) machines.add(name);
  keepNewest(machines, mostMachines);
  const kept = [...machines];
  write(state.outbox, record, kept);
}
function namesIn(state: ControllerState, { from, key, value }: Extract<Input, { kind: "actual" }>): readonly string[] {
  if (from === placerOf(state) && key === "hosts") return hostOffers.of(value)?.hosts.map(({ host }) => host) ?? [];
  return from === storageManagerOf(state) && isObject(value) && typeof value.server === "string" ? [value.server] : [];
}
/** Members of Presence are services, and are called by numbers: "2" is no name of a machine. */
const nameOfPeer = (peer: PeerName): string | null => /^(?:host|agent)\.(.+)$/.exec(peer)?.[1] ?? null;

export function machinesOf(state: ControllerState): readonly string[] {
  const names = new Set<string>(state.machines);
  for (const { host } of offersOf(state)?.hosts ?? []) names.add(host);
  for (const peer of state.reachable.keys()) {
    const name = nameOfPeer(peer);
    if (name !== null) names.add(name);
  }
  for (const host of state.indexes.concerned.present.keys()) names.add(host);
  for (const host of state.afterRestore?.unheard ?? []) names.add(host);
  return [...names];
}
