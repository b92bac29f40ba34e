import type { Mode } from "../../model/cell/network/modes.ts";

/**
 * A history: the size of an installation and what is done to it when. It is the same thing whether a seed made it, a scenario
 * wrote it down or the shrinker left it over, and its text is what a failing run prints.
 *
 *   hosts 3
 *   servers 2
 *   seed 7
 *   memory 2048
 *   operator 1
 *   ha 1
 *   slices 1
 *   root 1
 *   own 1
 *   edge 1
 *   carriers 2
 *   system 1
 *   at 0 apply c1 vm:a1:256 vm:a2:256 rule:a1>a2:80
 *   at 5000 crash host.h1 before-commit for 2000
 */
export interface HistoryStep {
  readonly atMs: number;
  readonly words: readonly string[];
}
export interface History {
  readonly hosts: number;
  readonly servers: number;
  readonly cells: number;
  /** Placers, and Storage Managers; cells are bound to them in turn. */
  readonly services: number;
  readonly seed: number;
  /** Of each host, for VMs and their overhead. */
  readonly memoryMiB: number;
  /** Somebody looks after stores that were lost (`caretaker.ts`). */
  readonly operator: boolean;
  /** There is an HA Manager. */
  readonly ha: boolean;
  /** So many, of which each cell is bound to one. Absent: one looks after all. */
  readonly haManagers?: number;
  /** However few the rules of a cell are, hosts get them in slices. */
  readonly slices: boolean;
  /** The first cell is the root cell, whose child cells have accounts. Absent: there is none. */
  readonly root?: true;
  /** The root controller is one of an installation, which has service VMs, its own among them (`vm:NAME:MEMORY:own`). Absent: it has none. */
  readonly own?: true;
  /** Hosts offer the mode EDGE of Eucalyptus, and it makes the networks of so many cells, the last ones. Absent: none offers it. */
  readonly edge?: number;
  /** The last hosts are network hosts of the cluster, and its mode is MANAGED-NOVLAN in place of EDGE. Absent: none is. */
  readonly carriers?: number;
  /** The mode is one that isolates nothing, in place of EDGE. Absent: it is not. */
  readonly plain?: "STATIC" | "SYSTEM";
  /** Faults end and healing begins. */
  readonly untilMs: number;
  readonly steps: readonly HistoryStep[];
}

/** Of which the cells are that are on one. */
export const modeOf = ({ carriers, plain }: Pick<History, "carriers" | "plain">): Mode =>
  plain ?? (carriers === undefined ? "EDGE" : "MANAGED-NOVLAN");

const numbers = [
  "hosts",
  "servers",
  "cells",
  "services",
  "seed",
  "memory",
  "operator",
  "ha",
  "slices",
  "root",
  "own",
  "edge",
  "carriers",
  "static",
  "system",
  "until",
] as const;
type NumberName = (typeof numbers)[number];
const isNumberName = (word: string): word is NumberName => numbers.some((name) => name === word);

/** Lines of `#` are comments. Throws a sentence for what is none of these. */
export const parseHistory = (text: string): History => {
  const found: Record<NumberName, number> = {
    hosts: 2,
    servers: 1,
    cells: 1,
    services: 1,
    seed: 1,
    memory: 4096,
    operator: 0,
    ha: 0,
    slices: 0,
    root: 0,
    own: 0,
    edge: 0,
    carriers: 0,
    static: 0,
    system: 0,
    until: 0,
  };
  const steps: HistoryStep[] = [];
  for (const raw of text.split("\n")) {
    const line = raw.replace(/#.*$/, "").trim();
    if (line === "") continue;
    const [first = "", second = "", ...rest] = line.split(/\s+/);
    const value = Number(second);
    if (!Number.isFinite(value) || value < 0) throw new Error(`"${line}" needs a number behind "${first}"`);
    if (isNumberName(first)) found[first] = value;
    else if (first === "at" && rest.length > 0) steps.push({ atMs: value, words: rest });
    else
      throw new Error(`"${line}" is neither "at MILLISECONDS WHAT …" nor one of ${numbers.join(", ")} with a number`);
  }
  const last = steps.reduce((latest, { atMs }) => Math.max(latest, atMs), 0);
  const { hosts, servers, cells, services, seed, memory, operator, ha, slices, root, own, edge, carriers, until } =
    found;
  const sizes = { hosts, servers, cells, services, seed, memoryMiB: memory };
  const are = {
    operator: operator > 0,
    ha: ha > 0,
    slices: slices > 0,
    ...(ha > 1 ? { haManagers: ha } : {}),
    ...(root > 0 ? { root: true as const } : {}),
    ...(own > 0 ? { own: true as const } : {}),
    ...(edge > 0 ? { edge } : {}),
    ...(carriers > 0 ? { carriers } : {}),
    ...(found.static > 0 ? { plain: "STATIC" as const } : found.system > 0 ? { plain: "SYSTEM" as const } : {}),
  };
  return { ...sizes, ...are, untilMs: Math.max(until, last), steps };
};

export const formatHistory = (history: History): string => {
  const {
    hosts,
    servers,
    cells,
    services,
    seed,
    memoryMiB,
    operator,
    ha,
    haManagers = 1,
    slices,
    root,
    own,
    edge = 0,
    carriers = 0,
    plain,
    untilMs,
    steps,
  } = history;
  return [
    `hosts ${hosts}`,
    `servers ${servers}`,
    `cells ${cells}`,
    `services ${services}`,
    `seed ${seed}`,
    `memory ${memoryMiB}`,
    ...(operator ? ["operator 1"] : []),
    ...(ha ? [`ha ${haManagers}`] : []),
    ...(slices ? ["slices 1"] : []),
    ...(root === true ? ["root 1"] : []),
    ...(own === true ? ["own 1"] : []),
    ...(edge > 0 ? [`edge ${edge}`] : []),
    ...(carriers > 0 ? [`carriers ${carriers}`] : []),
    ...(plain === undefined ? [] : [`${plain.toLowerCase()} 1`]),
    `until ${untilMs}`,
    ...steps.map(({ atMs, words }) => `at ${atMs} ${words.join(" ")}`),
    "",
  ].join("\n");
};
