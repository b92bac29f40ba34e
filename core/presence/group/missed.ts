import type { HostName } from "../../../model/cell/identifiers.ts";
import { type ActualPresenceMissed, presenceKey } from "../../documents/presence.ts";
import { type GroupState, publish } from "./state.ts";

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
