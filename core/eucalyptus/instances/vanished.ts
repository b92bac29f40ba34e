import { formatIpv4, parseIpv4 } from "../../../model/addresses/addresses.ts";
import type { HostName, Uid } from "../../../model/cell/identifiers.ts";
import type { Input, Instant } from "../../env.ts";
import { log } from "../../outbox.ts";
import { ask, hostOf, type NetworkViewState } from "../state.ts";

/*
 * Instances of hosts of which nothing is heard. They keep all that they have, for ever, unless the configuration says `InstanceTimeout`: after so many
 * minutes of silence their addresses leave the view. They are nobody else's for that: only their host's word, or a fence, makes an address free.
 * An instance that returns has its own again where that is still its own or free, and another one otherwise.
 */

const timer = "vanished";
const minuteMs = 60_000;

/** Takes what says something of silence. */
export function takeSilence(state: NetworkViewState, input: Input, now: Instant): void {
  switch (input.kind) {
    case "start":
      // Whoever had something may have been silent for longer: nobody knows, and it counts from here.
      for (const { node } of state.book.instances.values()) if (node !== null) noteSilent(state, node as HostName, now);
      return;
    case "reachable": {
      const host = hostOf(input.peer);
      if (host === null) return;
      if (!input.reachable) noteSilent(state, host, now);
      else {
        state.silentSince.delete(host);
        for (const [uid, gone] of state.vanished)
          if (gone.host === host) {
            state.vanished.delete(uid);
            state.returning.set(uid, gone.address);
          }
      }
      return;
    }
    case "timer":
      if (input.name === timer) state.silenceDueMs = null;
      return;
    default:
  }
}
function noteSilent(state: NetworkViewState, host: HostName, now: Instant): void {
  if (!state.silentSince.has(host)) state.silentSince.set(host, now.ms);
}

/** Ends instances of hosts that have been silent for too long; asks for the next look. */
export function endVanished(state: NetworkViewState, now: Instant): void {
  const { book, silentSince, vanished, ids, outbox } = state;
  const minutes = book.configuration?.instanceTimeout;
  const afterMs = minutes === undefined ? null : minutes * minuteMs;
  let next: number | null = null;
  for (const [host, since] of afterMs === null ? [] : silentSince) {
    const dueMs = since + (afterMs ?? 0);
    if (dueMs > now.ms) {
      next = Math.min(next ?? dueMs, dueMs);
      continue;
    }
    for (const { id, node, privateIp: address } of [...book.instances.values()]) {
      const uid = node === host ? ids.uidOf(id) : undefined;
      if (uid === undefined) continue;
      vanished.set(uid, { host, address, minutes: minutes ?? 0 });
      ask(state, { kind: "terminate", id });
      log(outbox, "instance/vanished", { instance: id, host, minutes: minutes ?? 0 });
    }
  }
  if (next === state.silenceDueMs) return;
  state.silenceDueMs = next;
  outbox.effects.push({ kind: "timer", name: timer, afterMs: next === null ? null : next - now.ms });
}

/** Why a machine is in no view though it is wanted; null: it may be in one. */
export function whyVanished({ vanished }: NetworkViewState, uid: Uid, host: HostName): string | null {
  const gone = vanished.get(uid);
  if (gone?.host !== host) return null;
  return `nothing is heard of its host ${host} for ${gone.minutes} minutes: its addresses have left the view`;
}

/** The address that an instance had before it vanished, or that its host says to be in place for it still. */
export function addressBefore(state: NetworkViewState, uid: Uid, id: string, host: HostName): number | undefined {
  const named = state.said.get(host)?.instances?.find((each) => each.id === id)?.private?.address;
  return beforeSilence(state, uid) ?? (named === undefined ? undefined : (parseIpv4(named) ?? undefined));
}
const beforeSilence = ({ returning, vanished }: NetworkViewState, uid: Uid): number | undefined =>
  returning.get(uid) ?? vanished.get(uid)?.address;
/** It is in the view again, here or at another host. */
export function noteReturn(state: NetworkViewState, uid: Uid, id: string, address: number): void {
  const before = beforeSilence(state, uid);
  if (before === undefined) return;
  state.returning.delete(uid);
  state.vanished.delete(uid);
  const was = before === address ? {} : { was: formatIpv4(before) };
  const has = address === 0 ? {} : { address: formatIpv4(address) };
  log(state.outbox, "instance/returned", { instance: id, ...has, ...was });
}
