import type { Random } from "../kernel/random.ts";
import { type CellText, formatCell, type MachineText, offerings, type PoolText } from "../world/cell-text.ts";
import type { History, HistoryStep } from "../world/history.ts";

type Size = Pick<History, "hosts" | "cells" | "untilMs">;

/**
 * What an operator and users do: the first cell becomes the root cell, hosts are drained and come back, and are an account's for a while, machines are told where to
 * go, an account that has two cells may have only so many machines, and users hold doors open until a right is taken from them. What the
 * history had before goes on, the first cell under its other name.
 */
export const withAdministration = (
  steps: readonly HistoryStep[],
  random: Random,
  size: Size,
): readonly HistoryStep[] => {
  // The last host is then to be had whole, and nothing else becomes of it.
  const isPooled = size.hosts > 3 && random.fork("pools").chance(0.5);
  const others = isPooled ? { ...size, hosts: size.hosts - 1 } : size;
  return [
    ...sparing(steps.flatMap(ofRootCell), random.fork("spare"), size),
    ...(isPooled ? flavors(random.fork("flavor"), size) : []),
    ...(size.hosts > 1 ? drains(random.fork("drains"), others) : []),
    ...(size.hosts > 2 ? dedications(random.fork("dedications"), others) : []),
    ...limits(random.fork("limits"), size, isPooled ? random.fork("racks") : null),
    ...visits(random.fork("visits"), size),
  ];
};

const account = "ROOT/dev";
const labels = ["i", "j"];
/** Of another account. */
const [rival, rivals] = ["ROOT/ops", "o"];
const rootName = (word: string): string => word.replace(/\bk\.c1\b/g, "k").replace(/\bc1\b/g, "root");

/** An account without cells, which the root cell declares now in this way and now in that. */
const declared = (index: number): string =>
  `account:other:${["enabled", "locked", "disabled"][index % 3]}:${1 + (index % 4)}`;
/** The root cell is never deleted, and has the account's two cells, which begin with nothing. */
const ofRootCell = ({ atMs, words }: HistoryStep, index: number): readonly HistoryStep[] => {
  const renamed = words.map(rootName);
  const [verb, cell] = renamed;
  if (cell !== "root" || verb !== "apply")
    return verb === "delete" && cell === "root" ? [] : [{ atMs, words: renamed }];
  const children = [...labels.map((label) => [label, account]), [rivals, rival]];
  const text = children.flatMap(([label, of]) => [`child:${label}@${of}`, "(", ")"]);
  return [{ atMs, words: [...renamed, ...text, declared(index)] }];
};

/** In half of all histories with hosts enough the root cell has room kept for one; in the end for none, so that what waits has a place. */
const sparing = (steps: readonly HistoryStep[], random: Random, { hosts, untilMs }: Size): readonly HistoryStep[] => {
  const isOfRoot = ({ words }: HistoryStep): boolean => words[0] === "apply" && words[1] === "root";
  const last = steps.findLast(isOfRoot);
  if (hosts < 3 || !random.chance(0.5) || last === undefined) return steps;
  const kept = steps.map((step) => (isOfRoot(step) ? { ...step, words: [...step.words, "spare:1"] } : step));
  return [...kept, { atMs: Math.max(last.atMs, untilMs) - 1, words: last.words }];
};

/** One host at a time, so that there is always room; and now and then a machine is told to go to some host. */
const drains = (random: Random, { hosts, cells, untilMs }: Size): readonly HistoryStep[] => {
  const steps: HistoryStep[] = [];
  let freeMs = random.between(3000, 20_000);
  while (freeMs < untilMs) {
    const forMs = random.between(2000, 40_000);
    steps.push({ atMs: freeMs, words: ["drain", `h${random.between(1, hosts)}`, "for", String(forMs)] });
    freeMs += forMs + random.between(1000, 30_000);
  }
  for (let atMs = random.between(5000, 30_000); atMs < untilMs; atMs += random.between(5000, 40_000)) {
    const number = random.between(1, cells);
    const path = `c${number}/m${number}x${random.between(1, 6)}`;
    steps.push({ atMs, words: ["move", rootName(path), `h${random.between(1, hosts)}`] });
  }
  return steps;
};

/** One host at a time is an account's for a while. Most machines do not ask for that, so these go elsewhere meanwhile. */
const dedications = (random: Random, { hosts, untilMs }: Size): readonly HistoryStep[] => {
  const steps: HistoryStep[] = [];
  for (let atMs = random.between(3000, 20_000); atMs < untilMs; ) {
    const forMs = random.between(2000, 30_000);
    const owner = random.chance(0.7) ? account : rival;
    steps.push({ atMs, words: ["dedicate", `h${random.between(1, hosts)}`, owner, "for", String(forMs)] });
    atMs += forMs + random.between(1000, 20_000);
  }
  return steps;
};

/** The last host is of the flavour from early on, and now and then leaves it for a while, once no pool has it. */
const flavors = (random: Random, { hosts, untilMs }: Size): readonly HistoryStep[] => {
  const steps: HistoryStep[] = [{ atMs: random.between(200, 6000), words: ["flavor", `h${hosts}`, "drained"] }];
  for (let atMs = random.between(15_000, 40_000); atMs < untilMs; atMs += random.between(15_000, 40_000))
    steps.push({ atMs, words: ["unflavor", `h${hosts}`, "for", String(random.between(1000, 8000))] });
  return steps;
};

/**
 * Both cells of the account grow and shrink, while its limit changes. @param pools by which one of them, and the other account's, have a pool of the one
 * whole host that there is; null: there is none
 */
const limits = (random: Random, { untilMs }: Size, pools: Random | null): readonly HistoryStep[] => {
  const steps: HistoryStep[] = [];
  for (let atMs = random.between(2000, 12_000); atMs < untilMs; atMs += random.between(10_000, 40_000))
    steps.push({ atMs, words: ["limit", account, "vms", String(random.between(1, 5))] });
  for (const label of [...labels, rivals]) {
    const own = random.fork(label);
    const asking = random.fork(`wishes of ${label}`);
    const racks = label === labels[1] ? null : (pools?.fork(label) ?? null);
    if (pools !== null && racks !== null)
      steps.push(...atOnce(label, racks, pools).filter(({ atMs }) => atMs < untilMs - 1));
    for (let atMs = own.between(4000, 15_000); atMs < untilMs; atMs += own.between(2000, 20_000)) {
      const machines = [1, 2, 3].flatMap((each) =>
        own.chance(0.5) ? [machineOf(`${label}w${each}`, own, pooledOr(racks, wishOf(label, asking)))] : [],
      );
      steps.push(applied(label, atMs, machines, wholeOf(racks, machines)));
    }
    // What is waited for in the end must be had.
    const machines = [machineOf(`${label}w1`, own, { group: "g" })];
    // It leaves its pool only disabled and empty, and so it stays.
    const last = racks === null ? {} : wholeOf(racks, machines, true);
    steps.push(applied(label, untilMs - 1, machines, last));
  }
  return steps;
};
/** Both who have a pool want the host at once; some time later they want it no more, and it goes back disabled and empty. */
const atOnce = (label: string, racks: Random, pools: Random): readonly HistoryStep[] => {
  const wantedMs = pools.fork("at once").between(8000, 25_000) + racks.between(0, 2);
  const offMs = wantedMs + racks.between(8000, 20_000);
  const machines = [machineOf(`${label}w1`, racks, { pool })];
  return [
    applied(label, wantedMs, machines, wholeOf(racks, machines)),
    applied(label, offMs, [], { pools: [{ name: pool }], wholes: [{ name: "rack", pool, off: true }] }),
    applied(label, offMs + racks.between(3000, 9000), [], { pools: [{ name: pool }] }),
  ];
};
const applied = (
  label: string,
  atMs: number,
  machines: readonly MachineText[],
  whole: Partial<CellText>,
): HistoryStep => ({ atMs, words: `apply ${label} ${grouped(machines, whole)}`.trim().split(" ") });
const grouped = (machines: readonly MachineText[], whole: Partial<CellText> = {}): string =>
  formatCell({ machines, rules: [], allOrNone: false, groups: [{ name: "g", kind: "apart" }], ...whole });
const pool = "racks";
const pooledOr = (racks: Random | null, wish: Partial<MachineText>): Partial<MachineText> =>
  racks?.chance(0.4) !== true
    ? wish
    : { pool, ...(racks.chance(0.5) ? { offering: racks.pick(Object.keys(offerings)) } : {}) };
/** Which of its VMs it takes: the one image that there is, or one that nobody boots from. */
const allowing = (racks: Random): PoolText => ({
  name: pool,
  ...(racks.chance(0.4) ? { offerings: racks.pick([["small"], ["alone"], ["small", "alone"]]) } : {}),
  ...(racks.chance(0.3) ? { images: [racks.pick(["tiny", "tiny", "large"])] } : {}),
});
/** A pool with one host, now and then disabled or not asked for; `stays`: asked for in any case. */
const wholeOf = (racks: Random | null, machines: readonly MachineText[], stays = false): Partial<CellText> => {
  if (racks === null) return {};
  const [isGiven, off] = [racks.chance(0.8), racks.chance(0.3)];
  const isAsked = stays || isGiven || machines.some((machine) => machine.pool !== undefined);
  return { pools: [allowing(racks)], wholes: isAsked ? [{ name: "rack", pool, off }] : [] };
};
/** To have a host alone by what runs there, by dedication, or one for each of a group of all cells of the account. */
function wishOf(label: string, random: Random): Partial<MachineText> {
  if (random.chance(0.4)) return {};
  if (random.chance(0.4)) return { strict: true };
  return { group: random.chance(0.6) ? "g" : `DedicatedGrp-${label === rivals ? "ops" : "dev"}` };
}
const machineOf = (name: string, random: Random, wish: Partial<MachineText> = {}): MachineText => ({
  name,
  memoryMiB: 64,
  off: random.chance(0.5),
  data: false,
  live: false,
  once: false,
  apart: null,
  ...wish,
});

/** At the doors of the account's cells: one of its users, and a guest from another account. */
const visits = (random: Random, { untilMs }: Size): readonly HistoryStep[] =>
  labels.flatMap((cell) => {
    const own = random.fork(cell);
    if (own.chance(0.3)) return [];
    const atMs = own.between(3000, 15_000);
    const [user, guest] = [`owner${cell}`, `guest${cell}`];
    const guestMs = atMs + own.between(4000, 15_000);
    const someTime = (fromMs: number): number => fromMs + own.between(10_000, 40_000);
    const steps: HistoryStep[] = [{ atMs, words: ["visit", cell, user, account] }];
    if (own.chance(0.6)) steps.push({ atMs: someTime(atMs), words: ["disable-user", user] });
    if (own.chance(0.5)) {
      steps.push({ atMs: guestMs, words: ["invite", cell, guest, account] });
      if (own.chance(0.6)) steps.push({ atMs: someTime(guestMs), words: ["dismiss", guest] });
    }
    return steps.filter((step) => step.atMs < untilMs);
  });
