import { setTimeout as sleep } from "node:timers/promises";
import { policyAt, type SlicedPolicy, sliceKey, slicePolicy } from "../../core/controller/rules/policy-slices.ts";
import type { ActualHost, ActualLocation, CellPolicy, DesiredVm } from "../../core/documents/vocabulary.ts";
import type { Effect, Input } from "../../core/env.ts";
import type { HypervisorDriver } from "../../host/drivers/hypervisor/driver.ts";
import { createDiverter } from "../../host/drivers/network/diverter/diverter.ts";
import { type MapName, mapSizes, policyState, word } from "../../host/drivers/network/diverter/program/layout.ts";
import { BpfMap, openPinned } from "../../host/drivers/network/diverter/program/libbpf.ts";
import { rule } from "../../host/drivers/network/diverter/testing/installation.testing.ts";
import { serve } from "../../host/drivers/network/diverter/testing/serve.testing.ts";
import type { NetworkDriver } from "../../host/drivers/network/driver.ts";
import type { StorageDriver } from "../../host/drivers/storage/driver.ts";
import { createExecutor } from "../../host/service/executor.ts";
import { createHostManager } from "../../host/service/manager.ts";
import {
  cellName,
  cidr,
  elementPath,
  hostName,
  ipv4,
  mac,
  type PeerName,
  peerName,
  uid,
} from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { openStore } from "../../runtime/process/store.ts";
import { tableBytes } from "./in-machine.ts";

/**
 * A Host Manager in a machine of its own: its service with its store, its executor, its network driver and the kernel's maps. Documents
 * come as they were sent, as text; machines have no process. Arguments: directory, run directory.
 */
const [directory = "", runDirectory = ""] = process.argv.slice(2);
const [cells, hosts] = [40, 40];
const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, at) => at);
const self: ActualHost = {
  host: hostName("h0"),
  state: "up",
  address: ipv4("10.0.1.1"),
  mac: mac("02:00:00:00:01:01"),
  memoryMiB: 65_536,
  reservedMiB: 0,
  cpus: 64,
  cpuSpeedMHz: 3000,
  accelerator: "tcg",
};

/** The process around the service, without its connections: what waits is stepped in one go, and what it writes is durable before anybody is told. */
class HostProcess {
  readonly #store = openStore(`${directory}/state.sqlite`);
  readonly #service = createHostManager({ host: self, wake: () => this.#executor.wake() });
  readonly #requests = new Map<number, (response: Json) => void>();
  readonly #network = createDiverter({ directory, runDirectory });
  readonly #executor = createExecutor({
    hypervisor: noMachines,
    storage: noDisks,
    network: this.#network satisfies NetworkDriver,
    request: (request) => this.#ask(request),
    log: (event, fields) => problems.push(`${event} ${JSON.stringify(fields)}`),
  });
  #state = this.#service.restore({ records: this.#store.load(), desiredAt: new Map() });
  #queue: Input[] = [];
  #last = 0;

  async start(): Promise<void> {
    await this.#network.init({ device: "eth0", address: self.address, mac: self.mac });
    this.#enqueue({ kind: "start" });
    await this.#executor.start();
  }
  desire(from: PeerName, documents: readonly (readonly [string, string])[]): void {
    for (const [key, text] of documents) this.#take("desired", from, key, text);
  }
  say(from: PeerName, documents: readonly (readonly [string, string])[]): void {
    for (const [key, text] of documents) this.#take("actual", from, key, text);
  }
  #take(kind: "desired" | "actual", from: PeerName, key: string, text: string): void {
    const read = this.#service.read(kind, from, key, JSON.parse(text) as Json);
    if (!read.ok) throw new Error(`${key} is refused: ${read.error}`);
    this.#enqueue({ kind, from, key, value: read.value });
  }
  #ask(request: Json): Promise<Json> {
    return new Promise((resolve) => {
      this.#last += 1;
      this.#requests.set(this.#last, resolve);
      this.#enqueue({ kind: "request", id: this.#last, request });
    });
  }
  #enqueue(input: Input): void {
    this.#queue.push(input);
    if (this.#queue.length === 1) setImmediate(() => this.#turn());
  }
  #turn(): void {
    const queue = this.#queue;
    this.#queue = [];
    const effects: Effect[] = [];
    for (const input of queue) {
      const now = { ms: performance.now(), wallMs: Date.now() };
      const step = this.#service.step(this.#state, input, now);
      this.#state = step.state;
      effects.push(...step.effects);
    }
    const writes = effects.flatMap((effect): [string, Json][] =>
      effect.kind === "write" ? [[effect.key, effect.value]] : [],
    );
    if (writes.length > 0) this.#store.commit(new Map(writes));
    for (const effect of effects) {
      if (effect.kind === "log" && effect.event.endsWith("refused")) problems.push(JSON.stringify(effect.fields));
      if (effect.kind !== "reply") continue;
      this.#requests.get(effect.id)?.(effect.response);
      this.#requests.delete(effect.id);
    }
  }
}
const problems: string[] = [];
const noMachines = {
  list: async () => [],
  start: async () => null,
  stop: async () => undefined,
  onEnd: () => undefined,
  onCondition: () => undefined,
} satisfies Partial<HypervisorDriver> as unknown as HypervisorDriver;
const noDisks = {} as StorageDriver;

interface Size {
  /** Of all cells together, elsewhere. */
  readonly vms: number;
  readonly subnets: number;
}
/** Identities of a cell: of its machine here, and from where its other machines' and its subnets' begin. */
const here = { identity: 1, vmIdentity: 2, subnetIdentity: 3 } as const;
const first = { vm: 1_000, machine: 50_000, subnet: 100_000 } as const;
const addressOf = (cell: number, at: number): string => `10.${64 + cell}.${(at * 4) >> 8}.${(at * 4) & 255}`;
const nameOf = (cell: number) => cellName(`cell${cell}`);
const controllerOf = (cell: number): PeerName => peerName(`controller.cell${cell}`);
const hostOf = (cell: number, at: number): number => 1 + ((cell * 7 + at) % (hosts - 1));

/** A cell's machine at this host is reached from each of its subnets, by a rule of its own. */
function policyOf(cell: number, version: number, { subnets }: Size, port: number): CellPolicy {
  const count = subnets / cells;
  const number = cell + 1;
  return {
    cell: nameOf(cell),
    cellNumber: number,
    version,
    networks: [],
    rules: numbers(count).map((at) =>
      rule(at + 1, first.subnet + at, here.identity, "tcp", at === 0 ? port : 1024 + at),
    ),
    controller: {
      address: ipv4(`10.0.3.${number}`),
      mac: mac(`02:00:00:00:03:${number.toString(16).padStart(2, "0")}`),
      identity: 900_000,
    },
    hosts: numbers(hosts)
      .map((at) => hostName(`h${at}`))
      .sort(),
    subnets: numbers(count).map((at) => ({ identity: first.subnet + at, cidr: cidr(`${addressOf(cell, at + 1)}/30`) })),
  };
}
function machineOf(cell: number): DesiredVm {
  const [vm, nic] = [uid(`c${cell}-1`), uid(`c${cell}-2`)];
  const name = `vm${cell}`;
  return {
    uid: vm,
    cell: nameOf(cell),
    path: elementPath(`cell${cell}/${name}`),
    name,
    incarnation: 1,
    power: "on",
    memoryMiB: 64,
    cpus: 1,
    disks: [],
    data: null,
    interfaces: [
      {
        uid: nic,
        path: elementPath(`cell${cell}/${name}/nic`),
        mac: mac(`52:54:00:00:01:${cell.toString(16).padStart(2, "0")}`),
        address: ipv4(`10.${64 + cell}.255.2`),
        prefixLength: 30,
        gateway: ipv4(`10.${64 + cell}.255.1`),
        nameServer: ipv4(`10.0.3.${cell + 1}`),
        hostName: name,
        domain: "cells.internal",
        ...here,
        audience: [],
      },
    ],
  };
}
/** Where machines of a cell are that are elsewhere. */
const placesOf = (cell: number, { vms }: Size) =>
  numbers(vms / cells).map((at) => ({
    address: ipv4(addressOf(cell, at + 1).replace(/\d+$/, (last) => String(Number(last) + 2))),
    host: hostName(`h${hostOf(cell, at)}`),
    identity: first.vm + at,
    vmIdentity: first.machine + at,
    subnetIdentity: first.subnet + at,
  }));

export interface InForce {
  /** From the documents' arrival until packets meet the changed rule, in milliseconds. */
  readonly changes: readonly number[];
  /** Documents that were refused, and reports that failed. */
  readonly problems: readonly string[];
  /** From when the last machine was said until the kernel knew all of them. */
  readonly learntMs: number;
  readonly addressBytes: number;
  /** Of the documents of one change, at most. */
  readonly slicesKB: number;
}

/** The cell's documents at this host that are others than before. */
function newsOf(
  cell: number,
  before: SlicedPolicy | null,
  after: SlicedPolicy,
): readonly (readonly [string, string])[] {
  const identities = new Set<number>([here.identity, here.vmIdentity, here.subnetIdentity]);
  const [was, is] = [before === null ? null : policyAt(before, identities), policyAt(after, identities)];
  const name = nameOf(cell);
  const slices = [...is.slices].filter(([slice, value]) => was?.slices.get(slice) !== value);
  return [
    ...slices.map(([slice, value]) => [sliceKey(name, slice), JSON.stringify(value)] as const),
    [`policy/${name}`, JSON.stringify(is.manifest)],
  ];
}

const openMap = (name: MapName): BpfMap => {
  const fd = openPinned(`${runDirectory}/bpf/diverter/maps/${name}`);
  if (fd === null) throw new Error(`the map ${name} is not there`);
  const [keySize, valueSize] = mapSizes[name];
  return new BpfMap(fd, keySize, valueSize);
};

async function until(holds: () => boolean, what: string, everyMs = 1): Promise<void> {
  const end = performance.now() + 120_000;
  while (!holds()) {
    if (performance.now() > end) throw new Error(`${what}; ${problems.slice(-3).join("; ")}`);
    await sleep(everyMs);
  }
}

async function inForce(size: Size, rounds: number): Promise<InForce> {
  const host = new HostProcess();
  await host.start();
  const emptyBytes = tableBytes(runDirectory);
  const [versions, locations] = [openMap("policies"), openMap("locations")];
  const versionOf = (cell: number): number => {
    const value = versions.get(word.encode({ value: cell + 1 }));
    return value === null ? 0 : policyState.decode(value).version;
  };
  const sliced = numbers(cells).map((cell) => slicePolicy(policyOf(cell, 1, size, 80), () => [], 1, null));
  for (const [cell, policy] of sliced.entries()) {
    host.desire(controllerOf(cell), [
      ...newsOf(cell, null, policy),
      [`places/${nameOf(cell)}`, JSON.stringify({ cell: nameOf(cell), own: placesOf(cell, size), foreign: [] })],
      [`vm/${machineOf(cell).uid}`, JSON.stringify(machineOf(cell))],
    ]);
  }
  await until(() => numbers(cells).every((cell) => versionOf(cell) === 1), "the first rules do not come in force");
  const claims = numbers(cells).flatMap((cell) =>
    placesOf(cell, size).map((place) => ({ ...place, cellNumber: cell + 1 })),
  );
  const known = Map.groupBy(claims, ({ host: at }) => at);
  const began = performance.now();
  for (const [at, own] of known)
    host.say(
      peerName(`host.${at}`),
      own.map((place) => {
        const location: ActualLocation = {
          ...place,
          hostMac: mac(`02:00:00:00:01:${Number(at.slice(1)).toString(16).padStart(2, "0")}`),
        };
        return [`location/${place.address}`, JSON.stringify(location)] as const;
      }),
    );
  await until(() => locations.keys().length >= size.vms, `${size.vms} machines do not become known`, 10);
  const learntMs = performance.now() - began;
  const addressBytes = tableBytes(runDirectory) - emptyBytes;
  await sleep(500);
  const changes: number[] = [];
  let slicesKB = 0;
  for (let round = 0; round < rounds; round += 1) {
    const cell = round % cells;
    const before = sliced[cell];
    if (before === undefined) throw new Error("there is no such cell");
    const version = before.policy.version + 1;
    const after = slicePolicy(policyOf(cell, version, size, 80 + version), () => [], 1, before);
    const news = newsOf(cell, before, after);
    slicesKB = Math.max(slicesKB, news.reduce((sum, [key, text]) => sum + key.length + text.length, 0) / 1000);
    sliced[cell] = after;
    const sentMs = performance.now();
    host.desire(controllerOf(cell), news);
    await until(() => versionOf(cell) === version, `version ${version} of cell ${cell} does not come in force`);
    changes.push(performance.now() - sentMs);
    await sleep(20);
  }
  for (const each of [versions, locations]) each.close();
  return { changes, problems, learntMs, addressBytes, slicesKB };
}

serve(async (method, args) => {
  if (method !== "inForce") throw new Error(`no method ${method}`);
  return inForce(args[0] as Size, Number(args[1]));
});
