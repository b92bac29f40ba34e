import { isObject } from "../../outbox.ts";
import { offersOf } from "../services/hosts.ts";
import { type ControllerState, storageManagerOf } from "../state.ts";

/** Names of hosts and storage servers, as far as any are known here: whoever is not to learn them is told nothing in which one is. */
export function machinesOf(state: ControllerState): readonly string[] {
  const names = new Set<string>(offersOf(state)?.hosts.map(({ host }) => host));
  for (const peers of [state.reachable, state.actual])
    for (const peer of peers.keys()) {
      const name = /^(?:host|agent|presence)\.(.+)$/.exec(peer)?.[1];
      if (name !== undefined) names.add(name);
    }
  for (const host of state.indexes.concerned.present.keys()) names.add(host);
  for (const host of state.afterRestore?.unheard ?? []) names.add(host);
  for (const value of state.actual.get(storageManagerOf(state))?.values() ?? [])
    if (isObject(value) && typeof value.server === "string") names.add(value.server);
  return [...names];
}
