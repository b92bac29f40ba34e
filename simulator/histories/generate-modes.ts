import type { Random } from "../kernel/random.ts";
import { type CellText, formatCell, type MachineText, parseCell, type RuleText, subnetOf } from "../world/cell-text.ts";
import type { History, HistoryStep } from "../world/history.ts";
import type { FaultKind } from "./fault-kinds.ts";

type Frame = Pick<History, "hosts" | "cells" | "untilMs"> & { readonly faults: readonly FaultKind[] };

/**
 * Has the mode EDGE, or MANAGED-NOVLAN with one network host or two, make the networks of some histories' last cells: what such a cell cannot ask for is left out of its texts, and its
 * rules are about its machines' subnets. Trouble of the Network View Manager comes beside the others. What has no such cell is to the byte
 * what it would be without.
 * @returns of how many cells, and how many hosts are network hosts
 */
export const withModes = (
  steps: HistoryStep[],
  random: Random,
  { hosts, cells, untilMs, faults }: Frame,
): Pick<History, "edge" | "carriers"> => {
  if (!random.chance(0.25)) return {};
  const edge = random.between(1, Math.max(1, cells - 1));
  // Each machine of such a subnet has an elastic address.
  const elastic = random.chance(0.5) ? [`net${random.between(0, 1)}`] : [];
  const isOfMode = (cell: string): boolean => Number(/^c(\d+)$/.exec(cell)?.[1] ?? 0) > cells - edge;
  steps.forEach((step, index) => {
    const [verb = "", cell = "", ...words] = step.words;
    if ((verb !== "apply" && verb !== "patch") || !isOfMode(cell)) return;
    const text = formatCell({ ...forMode(parseCell(words)), elastic });
    steps[index] = { ...step, words: `${verb} ${cell} ${text}`.trim().split(" ") };
  });
  const troubles = faults.flatMap((kind) => ofManager[kind] ?? []);
  for (
    let atMs = random.between(500, 6000);
    troubles.length > 0 && atMs < untilMs;
    atMs += random.between(500, 14_000)
  ) {
    const trouble = random.pick(troubles);
    const words = trouble === copied ? trouble : `${trouble} for ${random.between(50, 6000)}`;
    steps.push({ atMs, words: words.split(" ") });
  }
  return { edge, ...carriersOf(random.fork("network hosts"), hosts) };
};

/** Three hosts at least are nodes: machines that keep apart have room while one is away. */
function carriersOf(random: Random, hosts: number): Pick<History, "carriers"> {
  const most = Math.min(2, hosts - nodes);
  return most > 0 && random.chance(0.4) ? { carriers: random.between(1, most) } : {};
}
const nodes = 3;

const self = "network-view-manager";
/** An older store is put back from it. */
const copied = `copy ${self}`;
const ofManager: Readonly<Partial<Record<FaultKind, readonly string[]>>> = {
  crash: ["", " before-commit", " after-commit", " between-sends"].map((point) => `crash ${self}${point}`),
  pause: [`pause ${self}`],
  disk: [`disk ${self} slow`, `disk ${self} failing`],
  partition: [`cut ${self} *`],
  store: [copied, copied, `lose ${self}`, `put-back ${self}`],
};

const forMode = (text: CellText): CellText => {
  const groups = new Map(text.machines.map(({ name }, index) => [name, subnetOf(name, index)]));
  const rules = new Map<string, RuleText>();
  for (const rule of text.rules) {
    // Other cells' machines are no ends there.
    const [from, to] = [groups.get(rule.from), groups.get(rule.to)];
    if (from === undefined || to === undefined || from === to) continue;
    const { protocol = "tcp", port } = rule;
    rules.set(`${from} ${to} ${protocol} ${port}`, { ...rule, from, to });
  }
  return { ...text, allOrNone: false, rules: [...rules.values()], machines: text.machines.map(unasked) };
};
/** Nobody asks it by its interface whether it lives, and no other cell names it. */
const unasked = ({ shown: _, ...machine }: MachineText): MachineText => ({ ...machine, live: false });
