import type { CauseOf } from "../../../model/cause/cause.ts";
import type { HostName } from "../../../model/cell/identifiers.ts";
import { deathOf, diedAt } from "../../presence/group/deaths.ts";
import type { ControllerState } from "../state.ts";

/**
 * Said of what is at a host that is declared dead and not heard; null: it is not. What it said is withdrawn, and nothing
 * follows from that: whether its machines run is not known, and unknown is never stopped.
 */
export function hostDied(state: ControllerState, host: HostName): CauseOf<"host-declared-dead"> | null {
  const death = deathOf(state.deaths, host);
  return death === null ? null : { kind: "host-declared-dead", host, since: diedAt(death) };
}
