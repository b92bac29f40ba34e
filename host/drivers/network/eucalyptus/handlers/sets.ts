import type { AddressSet } from "../plan/plan.ts";
import type { Run } from "./run.ts";

/** Sets of this machine by their names, as `ipset save` shows them. */
export type Sets = ReadonlyMap<string, ReadonlySet<string>>;

export async function readSets(run: Run): Promise<Sets> {
  const sets = new Map<string, Set<string>>();
  for (const line of (await run("ipset", ["save"])).split("\n")) {
    const [verb, name, member] = line.split(" ");
    if (name === undefined) continue;
    if (verb === "create") sets.set(name, new Set());
    else if (verb === "add" && member !== undefined)
      sets.get(name)?.add(member.includes("/") ? member : `${member}/32`);
  }
  return sets;
}

const ofNetworks = "hash:net family inet hashsize 2048 maxelem 65536";
const ofAddresses = "hash:ip family inet hashsize 1024 maxelem 1048576";
/** What `ipset restore` has to do, as lines; none: all is in place. Sets that nobody wants go later, when no rule names them. */
export function setChanges(found: Sets, wanted: readonly AddressSet[]): readonly string[] {
  return wanted.flatMap(({ name, members, isOfAddresses }) => {
    const present = found.get(name);
    const keep = new Set(members);
    return [
      ...(present === undefined ? [`create ${name} ${isOfAddresses === true ? ofAddresses : ofNetworks}`] : []),
      // First, since a set may be full.
      ...[...(present ?? [])].filter((member) => !keep.has(member)).map((member) => `del ${name} ${member}`),
      ...members.filter((member) => present?.has(member) !== true).map((member) => `add ${name} ${member}`),
    ];
  });
}
/** Ours that nobody wants any more. */
export const staleSets = (found: Sets, wanted: readonly AddressSet[]): readonly string[] => {
  const keep = new Set(wanted.map(({ name }) => name));
  return [...found.keys()].filter((name) => /^(?:EUCA_|EU_|sg-|CELLS_)/.test(name) && !keep.has(name));
};
const asInput = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join("");
const restored = (run: Run, lines: readonly string[]): Promise<string> =>
  run("ipset", ["-exist", "restore"], asInput(lines));
/**
 * A set that takes no more members keeps those that it has, and keeps nothing from the others.
 * @returns by the names of sets that lack members, why; anything else that fails fails all
 */
export async function applySets(run: Run, lines: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const short = new Map<string, string>();
  for (let due = lines; due.length > 0; ) {
    try {
      await restored(run, due);
      break;
    } catch (error) {
      const { message } = error as Error;
      const at = Number(/Error in line (\d+):/.exec(message)?.[1] ?? 0);
      const [verb, name = ""] = (due[at - 1] ?? "").split(" ");
      if (verb !== "add") throw error;
      short.set(name, message.replace(/^.*Error in line \d+: */s, "").trim());
      due = due.slice(at).filter((line) => line.split(" ")[1] !== name);
    }
  }
  return short;
}
/**
 * Sets that no rule of ours names any more. One that a rule of the site's own still names stays, and keeps no other from going.
 * @returns the names of those that stay
 */
export async function destroySets(run: Run, names: readonly string[]): Promise<readonly string[]> {
  if (names.length === 0) return [];
  try {
    await restored(
      run,
      names.map((name) => `destroy ${name}`),
    );
    return [];
  } catch {
    // The first that is in use has ended that.
  }
  const there = await readSets(run);
  const left: string[] = [];
  for (const name of names)
    if (there.has(name)) await run("ipset", ["destroy", name]).catch(() => void left.push(name));
  return left;
}
