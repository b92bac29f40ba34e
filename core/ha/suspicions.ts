import { type HostName, hostName, type PeerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { agreedOn } from "../documents/declaration.ts";
import { presenceKey } from "../documents/presence.ts";
import { presence } from "../documents/readers/presence.ts";
import { log } from "../outbox.ts";
import type { HaState } from "./state.ts";

/*
 * Hosts that most members of the Presence group suspect, some seconds before they can declare them. A suspicion may be refuted, so nothing
 * is done about any VM: its neighbours are asked (`probes.ts`), and whether it has power (`power/orders.ts`), so that the answers are there
 * when it is declared. A power that is off needs no declaration.
 */

/** @returns whether it was a word of that kind */
export function takeSuspicion(state: HaState, from: PeerName, key: string, value: Json): boolean {
  const { suspicions, deaths } = state;
  const prefix = presenceKey.suspected("");
  if (!deaths.members.has(from) || !key.startsWith(prefix)) return false;
  const host = hostName(key.slice(prefix.length));
  const before = isSuspected(state, host);
  const said = value === null ? null : presence.of(value, host);
  const byMember = suspicions.get(host) ?? new Map<PeerName, number>();
  if (said === null) byMember.delete(from);
  else byMember.set(from, said.generation);
  if (byMember.size === 0) suspicions.delete(host);
  else suspicions.set(host, byMember);
  const now = isSuspected(state, host);
  if (now !== before && state.at.has(host)) log(state.outbox, now ? "ha/suspected" : "ha/not-suspected", { host });
  return true;
}

/** One member alone may make up anything. */
export function isSuspected({ suspicions, deaths }: HaState, host: HostName): boolean {
  const said = suspicions.get(host);
  return said !== undefined && agreedOn(deaths.members, said) !== null;
}

/** Of these there is something to ask about. */
export const suspectedHosts = (state: HaState): readonly HostName[] =>
  [...state.suspicions.keys()].filter((host) => state.at.has(host) && isSuspected(state, host));
