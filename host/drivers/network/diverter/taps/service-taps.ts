import type { DesiredInterface } from "../../../../../core/documents/vocabulary.ts";
import type { GlobalNetwork, InterfaceCounters, NetworkAllocation, Uplink } from "../../driver.ts";
import type { Dataplane } from "../program/dataplane.ts";
import { word } from "../program/layout.ts";
import { attachedProgram, ensureAttached, indexOf, programId } from "../program/libbpf.ts";
import { bringUp, joinBridge, portsOf, sentBy, tapName } from "./devices.ts";
import { slotOf, takeSlot } from "./slots.ts";

/**
 * Taps of VMs on the management network (decision 31): ports of the host's bridge, whose other port is the uplink, with
 * the program `from_service` at their ingress. What it lets through is forwarded like any machine's on the underlay.
 */

/** Why the bridge of an uplink cannot be used, as a sentence; null: it can, or there is none. */
export function whyNoBridge({ device, bridge }: Uplink): string | null {
  if (bridge === undefined) return null;
  if (indexOf(bridge) === 0)
    return `there is no bridge "${bridge}" for the management network; make it with \`ip link add ${bridge} type bridge\``;
  return portsOf(bridge).has(device)
    ? null
    : `the uplink ${device} is no port of the bridge ${bridge}; \`ip link set ${device} master ${bridge}\` makes it one`;
}

/** Ports of the bridge, where any interface is on the management network; null: this host has no bridge. */
export function servicePorts({ interfaces }: GlobalNetwork, bridge: string | null): ReadonlySet<string> | null {
  if (bridge === null) return null;
  return interfaces.some(({ desired }) => desired.management === true) ? portsOf(bridge) : new Set();
}

export const isServiceGuarded = (dataplane: Dataplane, tap: string, ports: ReadonlySet<string> | null): boolean => {
  const index = indexOf(tap);
  const program = programId(dataplane.programs.from_service);
  return slotOf(dataplane, index) !== null && attachedProgram(index) === program && ports?.has(tap) === true;
};

/** The program first, so that the bridge never sees a frame that it has not; until its entry is there it drops all. */
export function guardService(dataplane: Dataplane, tap: string, mtu: number, bridge: string): void {
  const index = indexOf(tap);
  ensureAttached(index, dataplane.programs.from_service);
  bringUp(tap, mtu);
  if (slotOf(dataplane, index) === null)
    dataplane.maps.counters.clear(word.encode({ value: takeSlot(dataplane, index) }));
  joinBridge(tap, bridge);
}

export function serviceAllocation(
  dataplane: Dataplane,
  { uid, address }: DesiredInterface,
  ports: ReadonlySet<string> | null,
): NetworkAllocation["interfaces"][number] {
  const tap = tapName(uid);
  if (ports === null) {
    const reason =
      "this host has no bridge for the management network; make one with the uplink as its port and the host's address, and name it in the host's configuration (`host.bridge`)";
    return { interface: uid, tap, ready: false, reason, refused: true };
  }
  const reason = !isServiceGuarded(dataplane, tap, ports)
    ? `device ${tap} is not there or not guarded yet`
    : dataplane.maps.interfaces.get(word.encode({ value: indexOf(tap) })) === null
      ? `${address} has no entry in the dataplane`
      : null;
  return { interface: uid, tap, ready: reason === null, reason };
}

/** What the guest behind a tap of the management network was sent, by whomever; null: no such tap. */
export const receivedBy = (dataplane: Dataplane, tap: string): InterfaceCounters["received"] | null =>
  attachedProgram(indexOf(tap)) === programId(dataplane.programs.from_service) ? sentBy(tap) : null;
