import type { HostName } from "../../../model/cell/identifiers.ts";
import { deathOf, diedAt } from "../../presence/group/deaths.ts";
import type { ControllerState } from "../state.ts";

/**
 * Said of what is at a host that is declared dead and not heard; null: it is not. What it said is withdrawn, and nothing
 * follows from that: whether its machines run is not known, and unknown is never stopped.
 */
export function hostDied(state: ControllerState, host: HostName): string | null {
  const death = deathOf(state.deaths, host);
  if (death === null) return null;
  return `host ${host} was declared dead at ${diedAt(death)}; its machines are not started elsewhere until it comes back, or its power is known to be off: then say so with \`cells host dead ${host}\``;
}
