import { createDirectory } from "../../core/directory/directory.ts";
import { createDnsManager } from "../../core/dns/manager.ts";
import type { Effect, Input, Service } from "../../core/env.ts";
import { createPlacer } from "../../core/placer/placer.ts";
import { createStorageManager } from "../../core/storage/manager/manager.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";

/*
 * One process with one service that takes so many documents one by one, of `documents.ts`. Arguments: service, documents.
 */
export interface DocumentsReport {
  /** Processor time until all are taken and answered. */
  readonly cpuMs: number;
  /** Of one step. */
  readonly longestMs: number;
  /** A new start with all of them stored. */
  readonly againMs: number;
  /** What it holds of them, with garbage collected. */
  readonly heldMiB: number;
}
interface Document {
  readonly from: PeerName;
  readonly key: string;
  readonly value: Json;
}
/** What a service is asked for, and who answers it. */
interface Case {
  readonly service: Service<unknown>;
  readonly documents: (count: number) => Iterable<Document>;
  /** At each start. */
  readonly first: readonly Input[];
  readonly answer?: (effect: Effect) => readonly Input[];
}

const cells = 10;
const cellOf = (at: number): string => `c${at % cells}`;
const controller = (cell: string): PeerName => peerName(`controller.${cell}`);
const addressOf = (at: number): string => `10.${(at >> 16) & 255}.${(at >> 8) & 255}.${at & 255}`;
function* each(count: number, make: (at: number) => Document): Iterable<Document> {
  for (let at = 0; at < count; at += 1) yield make(at);
}
const named = <Item>(count: number, make: (at: number) => Item): readonly Item[] =>
  Array.from({ length: count }, (_, at) => make(at));

const names: Case = {
  service: createDnsManager({ self: peerName("dns-manager") }),
  first: [],
  documents: (count) =>
    each(count, (at) => ({
      from: controller(cellOf(at)),
      key: `name/n${at}`,
      value: {
        uid: `n${at}`,
        name: `vm${at}.${cellOf(at)}.cells.internal`,
        address: addressOf(at),
        ...(at % 4 === 0 ? { public: true } : {}),
      },
    })),
};

/** Half of them show something, and half ask for what a neighbour shows; one in a hundred is a rule between two of them. */
const directory: Case = {
  service: createDirectory({ self: peerName("directory") }),
  first: [],
  documents: (count) =>
    each(count, (at) => {
      const cell = cellOf(at);
      const nth = Math.floor(at / cells);
      const kind = nth % 100 === 99 ? "rule" : nth % 2 === 0 ? "shown" : "want";
      const number = Math.floor(nth / 2);
      const isFirst = (at % cells) % 2 === 0;
      const other = `c${(at % cells) + (isFirst ? 1 : -1)}`;
      const theirs = { domain: `${other}.cells.internal`, path: `${other}/vm${number}` };
      if (kind === "shown")
        return {
          from: controller(cell),
          key: `public/v${at}`,
          value: {
            uid: `v${at}`,
            path: `${cell}/vm${number}`,
            shows: { kind: "addresses", type: "VM", networks: [`${addressOf(at)}/32`] },
          },
        };
      if (kind === "want")
        return { from: controller(cell), key: `want/${theirs.domain}/${theirs.path}`, value: theirs };
      const uid = `r${at}`;
      const port = { from: 5432, to: 5432 };
      const openings = [
        { direction: isFirst ? "out" : "in", protocol: "tcp", sourcePorts: { from: 0, to: 65_535 }, ports: port },
      ];
      // The element of this rule is the one that was shown by the same number.
      const address = addressOf(at - cells);
      return {
        from: controller(cell),
        key: `reach/${uid}`,
        value: { uid, other: theirs, networks: [`${address}/32`], placed: [{ address, host: "h1" }], openings },
      };
    }),
};

const hosts = named(100, (at) => peerName(`host.h${at}`));
const placements: Case = {
  service: createPlacer({ self: peerName("placer"), hosts }),
  first: hosts.flatMap((host, at): readonly Input[] => [
    { kind: "reachable", peer: host, reachable: true },
    {
      kind: "actual",
      from: host,
      key: "host",
      value: {
        host: `h${at}`,
        state: "up",
        address: `10.0.2.${at + 1}`,
        mac: "02:00:00:00:00:01",
        accelerator: "kvm",
        memoryMiB: 1_000_000,
        reservedMiB: 0,
        cpus: 512,
        cpuSpeedMHz: 3000,
        boot: 1,
      },
    },
  ]),
  documents: (count) =>
    each(count, (at) => ({
      from: controller(cellOf(at)),
      key: `placement/p${at}`,
      value: {
        vm: `p${at}`,
        path: `${cellOf(at)}/vm${at}`,
        cell: cellOf(at),
        incarnation: 1,
        memoryMiB: 64,
        cpus: 1,
        cpuSpeedMHz: 0,
        placement: {},
      },
    })),
};

const agents = named(8, (at) => peerName(`agent.s${at}`));
/** Of ten volumes nine are copies of the tenth. */
const volumes: Case = {
  service: createStorageManager({ self: peerName("storage-manager"), agents }),
  first: agents.flatMap((agent, at): readonly Input[] => [
    {
      kind: "actual",
      from: agent,
      key: "server",
      value: { server: `s${at}`, address: `10.0.2.${at + 1}`, totalMiB: 1e9, freeMiB: 1e9 },
    },
    {
      kind: "actual",
      from: agent,
      key: "image/tiny",
      value: { name: "tiny", digest: "d-tiny", sizeMiB: 64 },
    },
    { kind: "reachable", peer: agent, reachable: true },
  ]),
  documents: (count) =>
    each(count, (at) => {
      const [tens, one] = [Math.floor(at / 10), at % 10];
      const cell = cellOf(tens);
      const origin = one === 0 ? { kind: "image", image: "tiny" } : { kind: "copy", volume: `v${tens * 10}` };
      return {
        from: controller(cell),
        key: `volume/v${at}`,
        value: { uid: `v${at}`, cell, path: `${cell}/v${at}`, origin, sizeMiB: 64, access: "rw" },
      };
    }),
  answer: (effect) => {
    if (effect.kind !== "desire" || effect.value === null || !effect.key.startsWith("volume/")) return [];
    const value = { phase: "ready", reason: null, sizeMiB: 64, usedMiB: 1, boot: null };
    return [{ kind: "actual", from: effect.to, key: effect.key, value }];
  },
};

const cases: Readonly<Record<string, Case>> = { names, directory, placements, volumes };

const cpu = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};
const heldMiB = (): number => {
  (globalThis as { readonly gc?: () => void }).gc?.();
  return process.memoryUsage().heapUsed / 1_048_576;
};

function run(name: string, count: number): DocumentsReport {
  const known = cases[name];
  if (known === undefined) throw new Error(`there is no service "${name}"`);
  const { service, first, documents, answer = () => [] } = known;
  const records = new Map<string, Json>();
  const desiredAt = new Map<PeerName, Map<string, Json>>();
  let longestMs = 0;
  let ms = 0;
  const keep = (effect: Effect): void => {
    if (effect.kind === "write" && effect.value === null) records.delete(effect.key);
    else if (effect.kind === "write") records.set(effect.key, effect.value);
    if (effect.kind !== "desire") return;
    const there = desiredAt.get(effect.to) ?? new Map<string, Json>();
    desiredAt.set(effect.to, there);
    if (effect.value === null) there.delete(effect.key);
    else there.set(effect.key, effect.value);
  };
  let state = service.restore({ records, desiredAt });
  const take = (input: Input): void => {
    const inputs = [input];
    for (const next of inputs) {
      ms += 1;
      const begin = cpu();
      const step = service.step(state, next, { ms, wallMs: ms });
      longestMs = Math.max(longestMs, cpu() - begin);
      state = step.state;
      for (const effect of step.effects) {
        keep(effect);
        inputs.push(...answer(effect));
      }
    }
  };
  take({ kind: "start" });
  for (const input of first) take(input);
  const empty = heldMiB();
  const begin = cpu();
  for (const { from, key, value } of documents(count)) take({ kind: "desired", from, key, value });
  const cpuMs = cpu() - begin;
  const held = heldMiB() - empty;
  const longest = longestMs;
  const againAt = cpu();
  state = service.restore({ records, desiredAt });
  for (const { from, key, value } of documents(count)) take({ kind: "desired", from, key, value });
  take({ kind: "start" });
  for (const input of first) take(input);
  return { cpuMs, longestMs: longest, againMs: cpu() - againAt, heldMiB: held };
}

if (import.meta.main) {
  const [service = "", count = "0"] = process.argv.slice(2);
  process.stdout.write(`${JSON.stringify(run(service, Number(count)))}\n`);
}
