import type { Random } from "../kernel/random.ts";
import type { History, HistoryStep } from "../world/history.ts";
import type { FaultKind } from "./fault-kinds.ts";

type Size = Pick<History, "hosts" | "cells" | "untilMs">;

/** By any of these there is something for a person to look at, or a guard of HA to hold. */
const kinds: readonly FaultKind[] = ["storm", "poison", "watchdog"];
export const triesHa = (faults: readonly FaultKind[]): boolean => faults.some((kind) => kinds.includes(kind));

const rootName = (word: string): string => word.replace(/\bk\.c1\b/g, "k").replace(/\bc1\b/g, "root");

/**
 * What makes the guards of HA worth having: machines have priorities, the operator has set how often what is tried, a host is kept for lost VMs for a while, all hosts have watchdogs where
 * some fail, the HA Manager itself crashes at any step, and somebody looks at what is held some time later. The first cell is the root cell; its settings are as preset in the end.
 * `isAdministered`: it is that already; `isOwn`: the root controller's own VM is among its machines.
 */
export const withHa = (
  steps: readonly HistoryStep[],
  random: Random,
  size: Size & { readonly faults: readonly FaultKind[]; readonly isAdministered: boolean; readonly isOwn: boolean },
): readonly HistoryStep[] => {
  const { hosts, untilMs, faults, isAdministered, isOwn } = size;
  const renamed = isAdministered ? steps : steps.flatMap(ofRootCell);
  const set = settingsOf(random.fork("settings"));
  const own = isOwn ? ["vm:core1:64:own"] : [];
  const priorities = random.fork("priorities");
  const withWords = renamed.map((step): HistoryStep => {
    const [verb, cell] = step.words;
    if (verb !== "apply" && verb !== "patch") return step;
    const words = step.words.map((word) => prioritized(word, priorities));
    return { ...step, words: cell === "root" ? [...words, ...own, ...set] : words };
  });
  return [
    ...withWords,
    ...(faults.includes("watchdog") ? watchdogs(hosts, untilMs) : []),
    ...(hosts > 4 ? reservations(random.fork("reserved"), size) : []),
    ...crashes(random.fork("crashes"), size),
    ...releases(renamed, random.fork("releases"), untilMs),
  ];
};

/** The root cell is never deleted. */
const ofRootCell = ({ atMs, words }: HistoryStep): readonly HistoryStep[] => {
  const [verb, cell] = words.map(rootName);
  return verb === "delete" && cell === "root" ? [] : [{ atMs, words: words.map(rootName) }];
};

/** By its name, so that no later text changes it. */
const prioritized = (word: string, random: Random): string => {
  const name = /^vm:([^:]+):/.exec(word)?.[1];
  if (name === undefined || word.includes(":prio=")) return word;
  const priority = random.fork(name).pick([0, 0, 3, 9]);
  return priority === 0 ? word : `${word}:prio=${priority}`;
};

const settingsOf = (random: Random): readonly string[] => [
  ...(random.chance(0.6) ? [`set:maxRetries:${random.between(1, 2)}`] : []),
  ...(random.chance(0.5) ? [`set:restartRetryInterval:${random.between(10, 60)}`] : []),
  ...(random.chance(0.5) ? [`set:haWorkers:${random.between(1, 2)}`] : []),
  // Fewer are asked, so that what runs on is fenced and goes on sending.
  ...(random.chance(0.4) ? ["asked:power,host-manager"] : []),
];

const watchdogs = (hosts: number, untilMs: number): readonly HistoryStep[] =>
  Array.from({ length: hosts }, (_, at) => ({
    atMs: 50,
    words: ["watchdog", `h${at + 1}`, "works", "for", String(untilMs)],
  }));

/** One host at a time. */
const reservations = (random: Random, { hosts, untilMs }: Size): readonly HistoryStep[] => {
  const steps: HistoryStep[] = [];
  for (let atMs = random.between(500, 8000); atMs < untilMs; ) {
    const forMs = random.between(15_000, 60_000);
    steps.push({ atMs, words: ["reserve", `h${random.between(1, hosts)}`, "for", String(forMs)] });
    atMs += forMs + random.between(1000, 10_000);
  }
  return steps;
};

const crashes = (random: Random, { untilMs }: Size): readonly HistoryStep[] => {
  const steps: HistoryStep[] = [];
  for (let atMs = random.between(5000, 20_000); atMs < untilMs; atMs += random.between(5000, 30_000)) {
    const point = random.pick(["", " before-commit", " after-commit", " between-sends"]);
    const words = `crash ha-manager${point} for ${random.between(50, 4000)}`;
    steps.push({ atMs, words: words.split(" ") });
  }
  return steps;
};

/** Somebody looks some time after many hosts were lost, and now and then at a VM. */
const releases = (steps: readonly HistoryStep[], random: Random, untilMs: number): readonly HistoryStep[] => {
  const after = steps.flatMap(({ atMs, words: [verb, what = ""] }): readonly HistoryStep[] => {
    const laterMs = atMs + random.between(15_000, 60_000);
    if (verb === "storm" && random.chance(0.7)) return [{ atMs: laterMs, words: ["ha-release"] }];
    return verb === "poison" && random.chance(0.5) ? [{ atMs: laterMs, words: ["ha-release", what] }] : [];
  });
  return after.filter(({ atMs }) => atMs < untilMs);
};
