import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import {
  type ActualOwnPresence,
  type ActualPresence,
  type ActualPresenceCall,
  presenceKey,
} from "../../documents/presence.ts";
import { toJson } from "../../outbox.ts";
import type { SwimState, VerdictChange } from "../swim/types.ts";
import { callIn } from "./call.ts";

/** What a host publishes to the Presence group, by key; null takes it back. */
export interface HostPublication {
  readonly key: string;
  readonly value: Json;
}

/** Of itself; anew at the start and whenever its generation or incarnation changed. */
export const ownLife = ({ self }: SwimState): HostPublication => {
  const { host, generation, incarnation } = self;
  return {
    key: presenceKey.self,
    value: toJson({ host, generation, incarnation, answers: true } satisfies ActualOwnPresence),
  };
};
/** Of another: a report when it failed, and the report's end with any other verdict; a doubt from the first own suspicion on, until the report ends. */
export const reportsOf = ({ host, generation, incarnation, verdict }: VerdictChange): readonly HostPublication[] => {
  const report = toJson({ host, generation, incarnation } satisfies ActualPresence);
  const [isFailed, isDoubted] = [verdict === "failed", verdict === "failed" || verdict === "doubted"];
  return [
    { key: presenceKey.report(host), value: isFailed ? report : null },
    { key: presenceKey.doubt(host), value: isDoubted ? report : null },
  ];
};
/** To a member of the group, on hearing something of it; null: that was no call. */
export const answerTo = (member: PeerName, key: string, value: Json): HostPublication | null => {
  const call = key === presenceKey.call ? callIn(value) : null;
  if (call === null) return null;
  return { key: presenceKey.answer(member), value: toJson({ call } satisfies ActualPresenceCall) };
};
