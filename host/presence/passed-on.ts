import type { ActualPresenceMissed } from "../../core/documents/presence.ts";
import type { HostName } from "../../model/cell/identifiers.ts";

/** What the Host Manager's service hears of the Presence group. */
export interface Hears {
  /** The group declared it. */
  declared(host: HostName, generation: number): void;
  /** A member of the group does not hear it. */
  missed(said: ActualPresenceMissed): void;
}
/** More than a large installation's members say in the moment of a start. */
export const mostEarly = 4096;

/** It is passed on to the host's part in Presence; what comes before there is one, as at a start, waits for it, since nobody says it twice. */
export function passedOn() {
  let part: Hears | null = null;
  let early: ((to: Hears) => void)[] = [];
  const pass = (what: (to: Hears) => void): void => {
    if (part !== null) what(part);
    else if (early.length < mostEarly) early.push(what);
  };
  return {
    heard: {
      onDeath: (host: HostName, generation: number): void => pass((to) => to.declared(host, generation)),
      onMissed: (missed: ActualPresenceMissed): void => pass((to) => to.missed(missed)),
    },
    begin: (to: Hears): void => {
      part = to;
      for (const what of early) what(to);
      early = [];
    },
  };
}
