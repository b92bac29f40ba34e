import { count, document, type Fields, integer, object, oneOf, optional, wallMs } from "../../../model/json/reader.ts";
import { greatestBoot, greatestGeneration, greatestIncarnation } from "../life-numbers.ts";
import type { ActualOwnPresence, ActualPresence, ActualPresenceCall, ActualPresenceDeath } from "../presence.ts";
import { hostText } from "./values.ts";

/** Readers of what hosts and the Presence group say of who lives. */

/** Those that have a next one (`core/documents/life-numbers.ts`). */
const generation = integer(0, greatestGeneration - 1);
const boot = integer(0, greatestBoot - 1);
const lifeFields = {
  host: hostText,
  generation,
  incarnation: integer(0, greatestIncarnation),
} as const satisfies Fields<ActualPresence>;
const ofHost = { key: { field: "host", of: ({ host }: ActualPresence) => host } } as const;

/** A host of the previous version does not say that it answers. */
export const ownPresence = document(
  object<Partial<Pick<ActualOwnPresence, "answers">> & Omit<ActualOwnPresence, "answers">>({
    ...lifeFields,
    answers: optional(oneOf(true)),
    boot: optional(boot),
  }),
  { speaker: { field: "host", of: ({ host }) => `host.${host}` } },
);
/** A report of a host, or a member's vote or suspicion. */
export const presence = document(object<ActualPresence>(lifeFields), ofHost);
export const presenceCall = document(object<ActualPresenceCall>({ call: count }));
export const presenceDeath = document(
  object<ActualPresenceDeath>({
    ...lifeFields,
    declaredAt: wallMs,
    reporters: count,
    returned: optional(generation),
    ended: optional(boot),
    endedIn: optional(generation),
  }),
  ofHost,
);
