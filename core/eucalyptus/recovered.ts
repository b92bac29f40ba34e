import { parseIpv4 } from "../../model/addresses/addresses.ts";
import type { HostName } from "../../model/cell/identifiers.ts";
import type { InstanceAllocation } from "../../model/eucalyptus/allocation/allocation.ts";
import type { ActualNetwork, PlacedAddress } from "../documents/network/eucalyptus.ts";
import { cellOfController } from "../outbox.ts";
import { givesNone } from "./book.ts";
import { ask, hostsOf, type NetworkViewManagerOptions, type NetworkViewState } from "./state.ts";

/*
 * What hosts say counts more than a store that was lost or is an older one. That it is older is said by whoever has seen a later one: a host that
 * keeps the view that it was told, or a cell's controller, before it says what it desires. Nothing is given out from then on until all hosts were heard.
 */

/** Once in a life: another store would be another life. */
export function noticeOlder(state: NetworkViewState, options: NetworkViewManagerOptions): void {
  if (state.isOlder) return;
  state.isOlder = true;
  if (state.started && state.book.recovery === null) ask(state, { kind: "recover", hosts: hostsOf(options) });
}

/** What hosts have in place: a word once, since what comes later is told under a later version. One that is in step and says nothing offers no mode, and has nothing. */
export function hear(state: NetworkViewState): void {
  const unheard = state.book.recovery?.unheard ?? new Set<string>();
  for (const [host, word] of state.said) {
    if (state.book.recovery === null && state.heard.get(host) === word) continue;
    state.heard.set(host, word);
    const { version, instances, peer, cluster } = word;
    if (instances !== null) {
      const carries = peer === "network" && instances.length > 0 ? { carries: cluster } : {};
      ask(state, { kind: "heard", host, version, instances: instances.map(allocationOf), ...carries });
    }
  }
  for (const host of [...unheard] as HostName[])
    if (state.inStep.has(host) && !state.said.has(host)) ask(state, { kind: "heard", host, version: 0, instances: [] });
}
const addressOf = ({ address, ...more }: PlacedAddress) => ({ ...more, address: parseIpv4(address) ?? 0 });
const allocationOf = (placed: NonNullable<ActualNetwork["instances"]>[number]): InstanceAllocation => ({
  id: placed.id,
  ...(placed.private === undefined ? {} : { privateIp: addressOf(placed.private) }),
  ...(placed.public === undefined ? {} : { publicIp: addressOf(placed.public) }),
});

/**
 * After a loss: once all hosts were heard, and where they have something in place that nobody has named, the cells whose it is by their word; all cells
 * where they do not say. Cells that are on no mode never speak here, so that what no host has any more waits for nobody. @returns whether that is now
 */
export function settle(state: NetworkViewState): boolean {
  const { book, controllers, complete } = state;
  if (book.recovery === null || book.recovery.unheard.size > 0) return false;
  const unsaid = [...controllers].filter((controller) => !complete.has(controller));
  const words = [...state.said.values()];
  const cells = new Map<string, Set<string>>();
  for (const { id, cell } of words.flatMap(({ instances }) => instances ?? [])) {
    const named = cells.get(id) ?? new Set();
    cells.set(id, cell === undefined ? named : named.add(cell));
  }
  // A machine that has just started does not know yet what it has.
  const isAllSaid = words.every(({ instances }) => instances !== null);
  const mayBeNamed = (id: string): boolean => {
    const named = cells.get(id);
    // What went since it was heard of is in place nowhere.
    if (named === undefined && isAllSaid) return false;
    return unsaid.some((controller) => {
      const cell = cellOfController(controller);
      return cell !== null && (named === undefined || named.size === 0 || named.has(cell));
    });
  };
  for (const { instance } of book.addresses.values())
    if (instance !== null && !book.instances.has(instance) && mayBeNamed(instance)) return false;
  if (book.configuration !== null && givesNone(book.configuration))
    for (const id of cells.keys()) if (!book.instances.has(id) && mayBeNamed(id)) return false;
  if (ask(state, { kind: "settled" }).refused !== null) return false;
  // What they said before is about what is known now.
  state.heard.clear();
  return true;
}
