import type { Effect, Input } from "../../core/env.ts";
import { createHaManager } from "../../core/ha/manager.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";

/**
 * The HA Manager alone, in a process of its own: `manager-process.ts HOSTS VMS-OF-EACH VMS-OF-THE-LOST-ONE`. What it is told is what controllers, hosts
 * and one member of Presence say; nothing is stored and nothing is sent. Prints a `HaReport`.
 */
export interface HaReport {
  readonly heldMiB: number;
  /** CPU time of a minute in which every host says once more what it runs. */
  readonly idleMs: number;
  /** From the word that a host is dead to the last fence that is asked for; and from the last answer of it to the last word that it is over. */
  readonly fencesMs: number;
  readonly oversMs: number;
}
const [hosts = 0, each = 0, lost = 0] = process.argv.slice(2).map(Number);
const [member, manager, root] = ["presence.1", "storage-manager", "controller.shop"].map((name) => peerName(name)) as [
  ReturnType<typeof peerName>,
  ReturnType<typeof peerName>,
  ReturnType<typeof peerName>,
];
const wallMs = 1_700_000_000_000;
let ms = 1000;
const memory = (): number => {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed / 2 ** 20;
};
const before = memory();
const service = createHaManager({
  self: peerName("ha-manager"),
  presence: [member],
  storageManagers: [manager],
  hosts: Array.from({ length: hosts }, (_, index) => peerName(`host.h${index + 1}`)),
});
const state = service.restore({ records: new Map(), desiredAt: new Map() });
const give = (input: Input): readonly Effect[] => service.step(state, input, { ms, wallMs: wallMs + ms }).effects;
const spent = (work: () => void): number => {
  const from = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(from);
  return (user + system) / 1000;
};

give({ kind: "start" });
give({ kind: "reachable", peer: member, reachable: true });
const of = (host: number): number => (host === 1 ? lost : each);
const machinesOf = (host: number): Json => ({
  host: `h${host}`,
  boot: 7,
  machines: Array.from({ length: of(host) }, (_, vm) => ({ vm: `c${host}-${vm}`, incarnation: 1, power: "on" })),
});
for (let host = 1; host <= hosts; host += 1) {
  give({ kind: "reachable", peer: peerName(`host.h${host}`), reachable: true });
  for (let vm = 0; vm < of(host); vm += 1) {
    const value: JsonObject = {
      vm: `c${host}-${vm}`,
      cell: "shop",
      path: `shop/m${host}x${vm}`,
      incarnation: 1,
      host: `h${host}`,
      boot: 7,
      lost: "restart",
      priority: vm % 5,
      isolated: "keep",
      storageManager: "storage-manager",
      address: `10.${64 + (host >> 8)}.${host & 255}.${vm}`,
    };
    give({ kind: "desired", from: root, key: `protected/c${host}-${vm}`, value });
  }
  give({ kind: "actual", from: peerName(`host.h${host}`), key: "machines", value: machinesOf(host) });
}
const heldMiB = memory() - before;
const idleMs = spent(() => {
  for (let host = 1; host <= hosts; host += 1)
    give({ kind: "actual", from: peerName(`host.h${host}`), key: "machines", value: machinesOf(host) });
});

give({ kind: "reachable", peer: peerName("host.h1"), reachable: false });
let asked: string[] = [];
const note = (effects: readonly Effect[]): void => {
  for (const effect of effects)
    if (effect.kind === "desire" && effect.key.startsWith("fence/")) asked.push(effect.key.slice("fence/".length));
};
const fencesMs = spent(() => {
  const value = { host: "h1", generation: 1, incarnation: 0, declaredAt: wallMs + ms, reporters: 3 };
  note(give({ kind: "actual", from: member, key: "dead/h1", value }));
  // Nobody who was asked about it answers.
  ms += 6000;
  note(give({ kind: "timer", name: "asked" }));
});
if (asked.length !== lost) throw new Error(`${asked.length} fences were asked for, of ${lost}`);
const oversMs = spent(() => {
  for (const vm of asked)
    give({
      kind: "actual",
      from: manager,
      key: `ha-manager/fence/${vm}`,
      value: { incarnation: 1, complete: true, volumes: [], reason: null },
    });
});
if (state.over.size !== lost) throw new Error(`${state.over.size} are said to be over, of ${lost}`);
asked = [];
process.stdout.write(`${JSON.stringify({ heldMiB, idleMs, fencesMs, oversMs } satisfies HaReport)}\n`);
