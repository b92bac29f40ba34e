import type { HostName } from "../../../model/cell/identifiers.ts";
import { isPlausible } from "../../documents/life-numbers.ts";
import { type ActualPresenceMissed, presenceKey } from "../../documents/presence.ts";
import { type GroupState, type HostView, type Life, publish } from "./state.ts";

/**
 * Of more hosts than this nothing is said: a member that hears none of them any more was itself away, as after a pause, and hears them again one
 * after the other; each of a thousand would be told of each, and then that it is heard.
 */
export const mostMissed = 64;

export function noteMissed(state: GroupState, host: HostName, said: ActualPresenceMissed | null): void {
  const { missed } = state;
  if (said === null) missed.hosts.delete(host);
  else missed.hosts.set(host, said);
  const { size } = missed.hosts;
  const areTooMany = size > (missed.areTooMany ? mostMissed / 2 : mostMissed);
  const all = areTooMany === missed.areTooMany ? [] : [...missed.hosts.keys()];
  missed.areTooMany = areTooMany;
  for (const each of [...all, host])
    publish(state, presenceKey.missed(each), areTooMany ? null : (missed.hosts.get(each) ?? null));
}

/**
 * The latest life that is known of a host; where that is over, a later one in which another member has heard it, which may be lost with the host by now. One member's word has others look
 * for the host, as `missed` does, and ends nothing; a life that is said here is believed no further than one that a host reports.
 */
export function lookedFor({ declared, known, returned }: HostView, life: Life | null): Life | null {
  if (declared === null || (life !== null && life.generation > declared.generation)) return life;
  let since = 0;
  // What cannot be is passed over: by it one member would hide what another one has heard.
  for (const each of returned.values())
    if (known === null || isPlausible(each, known.generation)) since = Math.max(since, each);
  return since <= declared.generation ? life : { generation: since, incarnation: 0 };
}
