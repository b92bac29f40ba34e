import type { CellPolicy } from "../../core/documents/vocabulary.ts";
import type { GlobalNetwork, InterfaceGroups, NetworkDriver } from "../../host/drivers/network/driver.ts";
import type { HostName, Ipv4, Uid } from "../../model/cell/identifiers.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { Life } from "../kernel/process.ts";
import { watchMemberships } from "./memberships.ts";
import { sendByMode } from "./modes/packets.ts";
import type { DataplaneTruth, InterfaceTruth, Packet, Truth } from "./truth.ts";

const sleep = (life: Life, ms: number): Promise<void> => new Promise((resolve) => life.after(ms, resolve));
const text = (value: unknown): string => JSON.stringify(value);

/** The network driver of one host, and packets through what is in force on two of them. */
export class Dataplane {
  trouble: string | null = null;
  readonly #host: HostName;
  readonly #kernel: Kernel;
  readonly #truth: Truth;

  constructor(host: HostName, kernel: Kernel, truth: Truth) {
    this.#host = host;
    this.#kernel = kernel;
    this.#truth = truth;
  }

  get #now(): DataplaneTruth {
    return this.#truth.dataplane(this.#host);
  }

  /** `onGroups`: as Diverter's. */
  driver(life: Life, onGroups: (groups: readonly InterfaceGroups[]) => void): NetworkDriver {
    const random = this.#kernel.random.fork(`network ${this.#host} ${this.#kernel.clock.nowMs}`);
    const memberships = watchMemberships(life, {
      host: this.#host,
      kernel: this.#kernel,
      truth: this.#truth,
      onGroups,
    });
    const act = async (change: () => void): Promise<void> => {
      await sleep(life, 1 + random.next() * 10);
      if (this.trouble !== null) throw new Error(this.trouble);
      change();
      await sleep(life, 1 + random.next() * 3);
    };
    return {
      init: async () => undefined,
      inspect: async () => ({ taps: [...this.#now.taps] }),
      scrub: (global) => this.#scrub(global),
      implementNetwork: (global) => act(() => this.#setTaps(global)),
      implementSecurityGroup: (global) =>
        act(() => {
          this.#now.policies = new Map(global.policies.map((policy) => [policy.cell, policy]));
          this.#truth.tell((watcher) => watcher.rulesSet?.(this.#host, global.policies));
        }),
      implementAddressing: async (global) => {
        await act(() => {
          this.#setEndpoints(global);
          memberships.tell(global);
        });
        const { taps, policies } = this.#now;
        return {
          policies: global.policies.map(({ cell }) => ({
            cell,
            version: policies.get(cell)?.version ?? null,
            problem: null,
          })),
          interfaces: global.interfaces.map(({ desired: { uid } }) => ({
            interface: uid,
            tap: `t${uid}`,
            ready: taps.has(uid),
            reason: taps.has(uid) ? null : "it has no tap",
          })),
        };
      },
      flush: async () => undefined,
      cleanup: async () => undefined,
      probe: async (uid, _probe, timeoutMs) => {
        const isAnswering = this.#answers(uid);
        await sleep(life, isAnswering ? 1 + random.next() * 5 : timeoutMs);
        return isAnswering;
      },
      examine: async () => [],
      announced: async () => null,
      counters: async () => this.#now.counts.read(),
    };
  }

  /** A machine here answers at that address, whoever asks. */
  answersAt(address: Ipv4): boolean {
    const endpoint = this.#now.endpoints.get(address);
    return endpoint !== undefined && this.#answers(endpoint.desired.uid);
  }

  #answers(uid: Uid): boolean {
    if (!this.#now.taps.has(uid)) return false;
    for (const { host, interfaces, hung, stalled } of this.#truth.machines)
      if (host === this.#host && interfaces.some((each) => each.uid === uid)) return !hung && !stalled;
    return false;
  }

  #scrub(global: GlobalNetwork) {
    const { taps, policies, endpoints, locations, external } = this.#now;
    const wanted = global.interfaces.map(({ desired }) => desired.uid);
    return {
      network: text([...taps].sort()) !== text([...wanted].sort()),
      securityGroup: text([...policies.values()]) !== text(global.policies),
      addressing:
        text([...endpoints.values()]) !== text(global.interfaces) ||
        text([...locations.values()]) !== text(global.locations) ||
        text(external) !== text(global.external ?? null),
    };
  }

  #setTaps(global: GlobalNetwork): void {
    const now = this.#now;
    const wanted = new Set(global.interfaces.map(({ desired }) => desired.uid));
    for (const uid of [...now.taps]) if (!wanted.has(uid)) now.taps.delete(uid);
    for (const uid of [...now.memberships.keys()]) if (!wanted.has(uid)) now.memberships.delete(uid);
    for (const uid of wanted) now.taps.add(uid);
    for (const [address, { desired }] of now.endpoints) if (!wanted.has(desired.uid)) now.endpoints.delete(address);
  }

  #setEndpoints(global: GlobalNetwork): void {
    const now = this.#now;
    const external = global.external ?? null;
    if (text(external) !== text(now.external))
      this.#kernel.log(`host.${this.#host}`, "pools/in-force", { external: external === null ? null : [...external] });
    now.external = external;
    const before = now.endpoints;
    now.endpoints = new Map(global.interfaces.map((each): [string, InterfaceTruth] => [each.desired.address, each]));
    now.locations = new Map(global.locations.map((location) => [location.address, location]));
    for (const [address, endpoint] of now.endpoints) {
      if (text(before.get(address)) === text(endpoint)) continue;
      this.#truth.tell((watcher) => watcher.endpointOpened?.(this.#host, endpoint, now));
    }
  }
}

export interface Identified {
  readonly identity: number;
  readonly vmIdentity: number;
  readonly subnetIdentity: number;
}
export const admits = (...packet: Parameters<typeof admitting>): boolean => admitting(...packet) !== undefined;
/** The rule by which it passes; undefined: none. */
const admitting = (policy: CellPolicy | undefined, from: Identified, to: Identified, protocol: string, port: number) =>
  policy?.rules.find(
    (rule) =>
      [from.identity, from.vmIdentity, from.subnetIdentity].includes(rule.from) &&
      [to.identity, to.vmIdentity, to.subnetIdentity].includes(rule.to) &&
      (rule.protocol === "any" || rule.protocol === protocol) &&
      rule.ports.from <= port &&
      port <= rule.ports.to,
  );

export const policyOf = (policies: ReadonlyMap<string, CellPolicy>, cellNumber: number): CellPolicy | undefined =>
  [...policies.values()].find((policy) => policy.cellNumber === cellNumber);

/** An address that is no interface of the cell has the one identity of the longest network that holds it. */
const byAddress = (policy: CellPolicy | undefined, address: string): Identified => {
  const prefix = (cidr: string): number => Number(cidr.split("/")[1] ?? 32);
  const bits = (text: string): number => text.split(".").reduce((sum, byte) => sum * 256 + Number(byte), 0);
  const holds = (cidr: string): boolean => {
    const size = 2 ** (32 - prefix(cidr));
    return Math.floor(bits(cidr.split("/")[0] ?? "") / size) === Math.floor(bits(address) / size);
  };
  const holding = (policy?.networks ?? []).filter(({ cidr }) => holds(cidr));
  const [longest] = holding.sort((a, b) => prefix(b.cidr) - prefix(a.cidr));
  const identity = longest?.identity ?? 0;
  return { identity, vmIdentity: identity, subnetIdentity: identity };
};

/**
 * Sends a packet through the rules in force where it leaves and where it arrives, as Diverter does; tells of it where it is
 * delivered. Interfaces without an endpoint, addresses without a location, and whatever no rule admits is dropped.
 */
export const sendPacket = (kernel: Kernel, truth: Truth, packet: Packet): boolean => {
  const { from, to, fromInterface, toInterface, protocol, port } = packet;
  if (fromInterface.instance !== undefined || toInterface.instance !== undefined)
    return sendByMode(kernel, truth, packet);
  const sender = truth.dataplane(from.host);
  const source = sender.endpoints.get(fromInterface.address);
  if (source?.vm !== from.vm || !sender.taps.has(fromInterface.uid)) return false;
  const local = sender.endpoints.get(toInterface.address);
  const location = sender.locations.get(toInterface.address);
  const place = local !== undefined ? { ...local.desired, host: from.host, cellNumber: local.cellNumber } : location;
  if (place === undefined) return false;
  const isSame = place.cellNumber === source.cellNumber;
  const opened = policyOf(sender.policies, source.cellNumber);
  const seenThere = isSame ? place : byAddress(opened, place.address);
  const openedBy = admitting(opened, source.desired, seenThere, protocol, port);
  if (openedBy === undefined) {
    sender.counts.dropped(source.desired.uid, "no-rule");
    return false;
  }
  sender.counts.sent(source.desired.uid);
  sender.counts.passed(source.cellNumber, openedBy.id);
  if (place.host !== from.host && !kernel.network.isOpen(from.host, place.host)) return false;
  const receiver = truth.dataplane(place.host);
  const target = receiver.endpoints.get(toInterface.address);
  if (target === undefined || !receiver.taps.has(target.desired.uid)) return false;
  const policy = policyOf(receiver.policies, target.cellNumber);
  const isOfSame = target.cellNumber === source.cellNumber;
  // From elsewhere only what is known to come from there is believed.
  if (place.host !== from.host && receiver.locations.get(source.desired.address)?.host !== from.host) {
    truth.tell((watcher) => watcher.dropped?.(packet));
    return false;
  }
  const seenHere = isOfSame ? source.desired : byAddress(policy, source.desired.address);
  const takenBy = admitting(policy, seenHere, target.desired, protocol, port);
  if (takenBy === undefined) {
    receiver.counts.dropped(target.desired.uid, "no-rule");
    return false;
  }
  if (to.host !== place.host || target.vm !== to.vm || !truth.machines.has(to)) return false;
  receiver.counts.received(target.desired.uid);
  receiver.counts.passed(target.cellNumber, takenBy.id);
  truth.tell((watcher) => watcher.delivered?.({ ...packet, fromCell: source.cellNumber, toCell: target.cellNumber }));
  return true;
};
