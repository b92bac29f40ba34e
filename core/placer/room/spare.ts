import type { HostName, Uid } from "../../../model/cell/identifiers.ts";
import { rootCell } from "../../documents/cells.ts";
import type { DesiredPlacement, HostRefusal } from "../../documents/vocabulary.ts";
import { cpusFor, type HostView, memoryFor, noUse, ratiosAt, takenMiB } from "../candidate.ts";
import { withoutMore } from "../filters/wishes.ts";
import { machineShares } from "../machine-memory.ts";
import { askerOf } from "../owners.ts";
import { type Placed, place } from "../place.ts";
import type { PlacerState, Wanted } from "../state.ts";

/*
 * Room for the VMs of hosts that will be lost (`x.ha.spareHosts`): a new VM is placed only where those of the fullest hosts would still find
 * memory and processors on the others, the largest first. What `x.placement` says of each is not looked at, so that one that is
 * pinned to a host does not keep everybody else out; whether each has a place by all rules, `cells status` says (`loss.ts`).
 *
 * What has a place keeps it, also through a restart; a VM whose host was lost, one that leaves a host, and the cloud's own VMs take the room:
 * that is what it is kept for. Rejected: a share of all memory. Where hosts differ it is too little for the largest, or too much.
 */

/** VMs that would have no room, and how much they ask for. */
export interface Lack {
  readonly vms: number;
  readonly memoryMiB: number;
}
interface Extra {
  readonly host: HostName;
  readonly memoryMiB: number;
  readonly cpus: number;
}
interface Room {
  memoryMiB: number;
  cpus: number;
  readonly machineMiB: number;
}

/** What would be lacking if the fullest hosts were lost now, with a VM more at one of them; null: nothing. */
export function lackOf(state: PlacerState, spareHosts: number, extra?: Extra): Lack | null {
  const more = (host: HostName): Extra | undefined => (extra?.host === host ? extra : undefined);
  const all = [...state.hosts.values()].flatMap(({ host, reachable, actual, closed, pooled }) => {
    if (!reachable || actual === null) return [];
    const use = state.usage.get(host) ?? noUse();
    const added = more(host);
    const machineMiB = actual.machineMiB ?? 0;
    const addedMiB = added === undefined ? 0 : withMachine(added.memoryMiB, machineMiB);
    const usedMiB = takenMiB(actual, use) + addedMiB;
    const own = ratiosAt(pooled, state.ratios);
    const takes = actual.state === "up" && (closed === undefined || closed === "reserved");
    const room: Room = {
      memoryMiB: takes ? memoryFor(actual, own) - usedMiB : 0,
      cpus: takes ? cpusFor(actual, own) - use.cpus - (added?.cpus ?? 0) : 0,
      machineMiB,
    };
    return [{ host, usedMiB, room }];
  });
  all.sort((one, other) => other.usedMiB - one.usedMiB || (one.host < other.host ? -1 : 1));
  const rooms = all.slice(spareHosts).map(({ room }) => room);
  const homeless = all
    .slice(0, spareHosts)
    .flatMap(({ host }) => [...vmsAt(state, host), ...(more(host) === undefined ? [] : [more(host) as Extra])]);
  homeless.sort((one, other) => other.memoryMiB - one.memoryMiB);
  let [vms, memoryMiB] = [0, 0];
  for (const vm of homeless) {
    if (take(rooms, vm)) continue;
    vms += 1;
    memoryMiB += vm.memoryMiB;
  }
  return vms === 0 ? null : { vms, memoryMiB };
}

const withMachine = (memoryMiB: number, machineMiB: number): number =>
  memoryMiB + machineShares(memoryMiB) * machineMiB;

/** What is at a host, of whichever Placer, but for those whose room elsewhere is kept already. */
function vmsAt({ usage, next }: PlacerState, host: HostName): readonly Omit<Extra, "host">[] {
  const { reservations, taken } = usage.get(host) ?? noUse();
  const vms = new Set<Uid>([...reservations.keys(), ...taken.keys()]);
  return [...vms].flatMap((vm) => {
    if (next.has(vm)) return [];
    const [reserved, said] = [reservations.get(vm), taken.get(vm)];
    if (reserved?.off === true && said === undefined) return [];
    const larger = (of: "memoryMiB" | "cpus"): number => Math.max(reserved?.[of] ?? 0, said?.[of] ?? 0);
    return [{ memoryMiB: larger("memoryMiB"), cpus: larger("cpus") }];
  });
}

/** Takes it from the one that has most. */
function take(rooms: readonly Room[], { memoryMiB, cpus }: Omit<Extra, "host">): boolean {
  let best: Room | null = null;
  for (const room of rooms) {
    if (room.cpus < cpus || room.memoryMiB < withMachine(memoryMiB, room.machineMiB)) continue;
    if (best === null || room.memoryMiB > best.memoryMiB) best = room;
  }
  if (best === null) return false;
  best.memoryMiB -= withMachine(memoryMiB, best.machineMiB);
  best.cpus -= cpus;
  return true;
}

/** What has its place already, or may have the room that is kept, is placed as without all this. */
export const isSparing = ({ spareHosts, continuing }: PlacerState, { vm, cell, restart }: DesiredPlacement): boolean =>
  spareHosts > 0 && cell !== rootCell && restart !== true && !continuing.has(vm);

/** The best of all places is looked at, and some that are next: the others have less room. */
const mostTries = 8;

export function placeSparing(state: PlacerState, { client, document: asked }: Wanted): Placed {
  const document = withoutMore(asked);
  const asker = askerOf(state, client);
  const { spareHosts, usage, ratios } = state;
  let hosts: readonly HostView[] = [...state.hosts.values()];
  const kept: HostRefusal[] = [];
  for (;;) {
    const placed = place(hosts, usage, document, ratios, asker);
    if ("refusals" in placed) return { ...placed, refusals: [...placed.refusals, ...kept] };
    const { memoryMiB, cpus } = document;
    const lack = lackOf(state, spareHosts, { host: placed.host, memoryMiB, cpus });
    if (lack === null) return placed;
    const keptFor = hosts.filter(({ host }) => host === placed.host || kept.length >= mostTries);
    for (const { host } of keptFor) kept.push({ host, kind: "memory", ...keptRoom(spareHosts, lack) });
    hosts = hosts.filter((view) => !keptFor.includes(view));
  }
}
const keptRoom = (spareHosts: number, { vms, memoryMiB }: Lack): Omit<HostRefusal, "host"> => ({
  why: `room is kept for the VMs of ${spareHosts === 1 ? "a host that is" : `${spareHosts} hosts that are`} lost, and with it ${vms} of them (${memoryMiB} MiB) would have none`,
  lifts:
    "let one more host join, or some VMs end; the operator says with `x.ha.spareHosts` for how many hosts room is kept",
});
