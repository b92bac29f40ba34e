import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { ServiceEvent } from "../../model/api.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import { createEventRing } from "../../runtime/observation/events.ts";
import type { Sources } from "./sources.ts";
import { attach, createTimeline } from "./timeline.ts";

const event = (service: string, id: string, seconds: number): ServiceEvent => ({
  id,
  service,
  time: new Date(seconds * 1000).toISOString(),
  event: "placement/state",
  cell: null,
  path: null,
  fields: {},
});
const own = () => createEventRing("gateway", "g");

/** Services that are VMs: nobody supervises them, and their first handshakes take long. */
class Vms implements Sources {
  readonly supervisor: readonly string[] = [];
  readonly known = new Map<PeerName, readonly ServiceEvent[]>();
  readonly silent = new Set<string>();
  handshakeMs = 0;
  changed: () => void = () => undefined;
  services = async (): Promise<readonly PeerName[]> => [...this.known.keys()];
  watch = (changed: () => void): (() => void) => {
    this.changed = changed;
    return () => undefined;
  };
  metrics = (): Promise<string> => Promise.reject(new Error("nobody asks"));
  async *events(source: string, follow: boolean, signal: AbortSignal): AsyncGenerator<ServiceEvent> {
    await sleep(this.handshakeMs, undefined, { signal });
    if (this.silent.has(source)) throw new Error("it does not answer");
    yield* this.known.get(peerName(source)) ?? [];
    if (follow) await new Promise((_resolve, reject) => signal.addEventListener("abort", reject));
  }
  has(name: string, events: readonly ServiceEvent[]): void {
    this.known.set(peerName(name), events);
  }
}

test("services in VMs have the time that their handshakes take, and who is silent all the same is named", async () => {
  const vms = new Vms();
  vms.handshakeMs = 2_500;
  vms.has("placer", [event("placer", "a-1", 2)]);
  vms.has("controller.root", [event("controller.root", "b-1", 1)]);
  vms.has("host.h9", []);
  vms.silent.add("host.h9");
  const { events, silent, leftOut } = await createTimeline(vms, own()).past();
  assert.deepEqual(
    events.map(({ service }) => service),
    ["controller.root", "placer"],
  );
  assert.deepEqual([silent, leftOut], [["host.h9"], 0]);
});

test("of more than one answer may hold the newest are given, and it is said how many are not", async () => {
  const vms = new Vms();
  const each = 1_000;
  const of = (service: string, from: number) =>
    Array.from({ length: each }, (_, number) => event(service, `a-${number}`, from + number));
  for (let number = 1; number <= 45; number += 1) vms.has(`host.h${number}`, of(`host.h${number}`, number * each));
  const { events, leftOut } = await createTimeline(vms, own()).past();
  assert.deepEqual([events.length, leftOut], [20_000, 25_000]);
  assert.deepEqual([events[0]?.service, events.at(-1)?.service], ["host.h26", "host.h45"]);
  const onlyOne = await createTimeline(vms, own()).past(({ service }) => service === "host.h2");
  assert.deepEqual([onlyOne.events.length, onlyOne.leftOut], [each, 0], "what is not wanted takes no room");
});

test("who follows hears of a service that comes to be there, though no supervisor tells", async () => {
  const vms = new Vms();
  vms.has("placer", []);
  const timeline = createTimeline(vms, own());
  const attached = await attach(timeline);
  const heard = new Promise<string>((resolve) => attached.listen(({ service }) => resolve(service)));
  vms.has("controller.new", [event("controller.new", "n-1", 3)]);
  vms.changed();
  assert.equal(await heard, "controller.new");
  timeline.stop();
});
