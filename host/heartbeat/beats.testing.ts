import type { Effect, Restored } from "../../core/env.ts";
import { type HostName, hostName, ipv4, type PeerName, peerName, type Uid, uid } from "../../model/cell/identifiers.ts";
import type { HostState } from "../known.ts";
import { restorePresence } from "../presence/presence-state.ts";
import { createSuccession } from "../root-vm/succession.ts";
import { desiredVm } from "../service/manager.testing.ts";
import type { VmRecord } from "../vm-record.ts";
import { hearBeat, settleBeats, takeBeats } from "./beats.ts";
import { restoreBeats } from "./beats-state.ts";
import { settleWatchdog } from "./watchdog.ts";

export const manager = peerName("ha-manager");

const self = hostName("h1");
/** Storage servers. */
export const [s1, s2] = [peerName("agent.s1"), peerName("agent.s2")];
const addresses = { [s1]: "10.0.2.1", [s2]: "10.0.2.2", "host.h2": "10.0.1.2" };

/** A machine with a disk at an address. */
export const machine = (
  name: string,
  address: string,
  changes: { writable?: boolean; restart?: "host" } = {},
): VmRecord => {
  const { writable = true, restart } = changes;
  const vm = desiredVm(name, 1, restart === undefined ? {} : { restart });
  const layer = { volume: uid(`${name}-v`), address: ipv4(address), port: 20_000, exportName: "e", writable };
  const layers = [{ ...layer, pskIdentity: "i", pskHex: "00" }];
  const disks = vm.disks.map((disk) => ({ ...disk, attachment: { ...disk.attachment, layers } }));
  const client = peerName("controller.shop");
  return { client, vm: { ...vm, disks }, stage: "running", ended: null, reason: null, released: false };
};

/** This host of five, in its own time. */
export class Room {
  readonly state: HostState;
  readonly subscribed = new Set<PeerName>();
  sent: string[] = [];
  timerMs: number | null = null;
  /** What its watchdog is told, each with when; null is not. */
  readonly told: string[] = [];
  readonly lost: Uid[] = [];

  constructor(records: readonly VmRecord[], restored: Restored = { records: new Map(), desiredAt: new Map() }) {
    const part: Partial<HostState> = {
      beats: restoreBeats(restored),
      presence: { ...restorePresence(new Map()), boot: 7 },
      succession: createSuccession(self, restored),
      records: new Map(records.map((record) => [record.vm.uid, record])),
      peerAddresses: new Map(Object.entries(addresses)),
      now: 1000,
    };
    this.state = part as HostState;
    this.state.succession.hosts = new Set(["h1", "h2", "h3", "h4", "h5"].map(hostName));
    this.hear("h2", "h3", "h4", "h5");
    takeBeats(this.state, manager, { host: "h1", ends: records.map(({ vm }) => vm.uid).filter((vm) => vm !== "left") });
  }
  hear(...hosts: string[]): void {
    this.state.succession.heard.clear();
    for (const name of hosts) this.state.succession.heard.set(name as HostName, 1);
  }
  /** Time passes up to here, with the timer whenever it is due, or so much later. @param woke what it reads then */
  until(ms: number, lateMs = 0, woke = (): void => undefined): void {
    this.settle();
    while (this.timerMs !== null && this.timerMs + lateMs <= ms) {
      this.state.now = this.timerMs + lateMs;
      this.timerMs = null;
      this.settle();
      woke();
    }
    this.state.now = ms;
  }
  settle(): void {
    const effects: Effect[] = [];
    settleBeats(this.state, self, effects);
    const word = settleWatchdog(this.state);
    if (word !== null) this.told.push(`${word} ${this.state.now}`);
    for (const effect of effects) {
      if (effect.kind === "timer") this.timerMs = this.state.now + (effect.afterMs ?? 0);
      if (effect.kind === "desire") this.sent.push(`${effect.to} ${JSON.stringify(effect.value)}`);
      if (effect.kind === "subscribe") this.subscribed.add(effect.to);
      if (effect.kind === "unsubscribe") this.subscribed.delete(effect.to);
      if (effect.kind === "log" && effect.event === "host/isolated") this.lost.push(uid(String(effect.fields.vm)));
    }
  }
  answer(from: PeerName, count: number, boot = 7): void {
    hearBeat(this.state, self, from, "host.h1/beat", { boot, count });
    this.settle();
  }
}
