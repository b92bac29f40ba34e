import type { HostName, Uid } from "../../model/cell/identifiers.ts";
import { rootCell } from "../documents/cells.ts";
import type { Instant } from "../env.ts";
import { log, write } from "../outbox.ts";
import { deathOf } from "../presence/group/deaths.ts";
import type { WorkItem } from "./item.ts";
import type { HaState, Storm } from "./state.ts";

/*
 * What holds the queue up until a person has looked. A VM that takes its hosts down would go from one to the next; what looks
 * like the loss of many hosts at once is more often the loss of a network, whose machines all run on. Items that are held go no
 * further than they are; a fence that has begun is carried through.
 */

/** So many hosts at least, and more than this share of all, lost within this time are a storm. */
const storm = { hosts: 3, share: 0.1, withinMs: 300_000 } as const;
/** A host that dies so soon after the VM came may have died of it; the second one is no accident. */
export const youngMs = 600_000;

/** A host's life was declared over, or came back: counted by host, in this process' own time. */
export function noteLoss(state: HaState, host: HostName, { ms, wallMs }: Instant): void {
  const death = deathOf(state.deaths, host);
  if (death === null) {
    state.losses.delete(host);
    return;
  }
  const known = state.losses.get(host);
  if (known === undefined || known.generation < death.generation)
    // Of one that was declared long before this process heard it, the time counts that is told to people.
    state.losses.set(host, { generation: death.generation, ms: ms - Math.max(0, wallMs - death.declaredAt) });
  noteStorm(state, { ms, wallMs });
}

/** A host that has no power is lost, whether it was declared or not yet; it counts once. */
export function noteOff(state: HaState, host: HostName, now: Instant): void {
  if (state.losses.has(host)) return;
  state.losses.set(host, { generation: undeclared, ms: now.ms });
  noteStorm(state, now);
}
/** Below every generation. */
const undeclared = -1;

function noteStorm(state: HaState, { ms, wallMs }: Instant): void {
  if (state.storm !== null) return;
  // That a host in maintenance is switched off is no accident.
  const lost = [...state.losses]
    .filter(([name, loss]) => ms - loss.ms < storm.withinMs && !state.maintained.has(name))
    .map(([name]) => name);
  if (lost.length < storm.hosts || lost.length <= storm.share * state.options.hosts.length) return;
  state.storm = { since: wallMs, hosts: lost.sort() };
  write(state.outbox, "storm", state.storm satisfies Storm);
  log(state.outbox, "ha/paused", { hosts: state.storm.hosts });
}

/** Hosts will be switched off, or the whole cloud: until somebody says that it goes on, nothing is concluded from their loss. */
export function beginPause(state: HaState, { wallMs }: Instant): void {
  if (state.storm?.asked === true) return;
  state.storm = { since: wallMs, hosts: state.storm?.hosts ?? [], asked: true };
  write(state.outbox, "storm", state.storm satisfies Storm);
  log(state.outbox, "ha/paused", { hosts: state.storm.hosts });
  for (const vm of state.active.keys()) state.dirty.add(vm);
}

/** Somebody has looked: what was held goes on. The losses up to now are no storm any more. */
export function endStorm(state: HaState): void {
  if (state.storm === null) return;
  state.storm = null;
  write(state.outbox, "storm", null);
  for (const loss of state.losses.values()) loss.ms = Number.NEGATIVE_INFINITY;
  log(state.outbox, "ha/released", { vm: null });
  for (const vm of state.active.keys()) state.dirty.add(vm);
}

/**
 * Why an item waits for a person; null: it does not. The VMs of the root cell, on which others rest, and of the cell with
 * the gateway, without which nobody can release anything, are held by nothing but the operator's own word.
 */
export function heldBy(state: HaState, item: WorkItem, { wallMs }: Instant): string | null {
  if (state.storm?.asked === true)
    return "the operator has said that hosts will be switched off: `cells ha release` goes on";
  if (item.cell === rootCell || item.cell === state.entrance) return null;
  if (state.storm !== null)
    return `${state.storm.hosts.length} hosts were lost within minutes (${state.storm.hosts.join(", ")}): \`cells ha release\` goes on`;
  if (item.released === true) return null;
  const before = earlierOf(state, item.vm);
  const lately = before.filter(({ since }) => wallMs - since < state.settings.withinMs);
  const other = item.young === true ? lately.find((each) => each.young === true && each.host !== item.host) : undefined;
  if (other !== undefined)
    return `${other.host} and ${item.host} were both lost soon after it came: \`cells ha release ${item.path}\` has it start once more`;
  if (lately.length < state.settings.restarts) return null;
  const minutes = Math.round(state.settings.withinMs / 60_000);
  return `it was started again ${lately.length} times within ${minutes} min: \`cells ha release ${item.path}\` goes on`;
}

/** Restarts of a VM that are done, as far as they are still known. */
const earlierOf = ({ ended }: HaState, vm: Uid): readonly WorkItem[] =>
  [...ended.values()].filter((item) => item.vm === vm && item.step === "Done" && item.type === "HA");
