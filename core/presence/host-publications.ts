import type { Json } from "../../model/json.ts";
import { type ActualPresence, presenceKey } from "../documents.ts";
import { toJson } from "../outbox.ts";
import type { SwimState, VerdictChange } from "./swim-types.ts";

/** What a host publishes to the Presence group, by key; null takes it back. */
export interface HostPublication {
  readonly key: string;
  readonly value: Json;
}

/** Of itself; anew at the start and whenever its generation or incarnation changed. */
export const ownLife = ({ self }: SwimState): HostPublication => {
  const { host, generation, incarnation } = self;
  return { key: presenceKey.self, value: toJson({ host, generation, incarnation } satisfies ActualPresence) };
};
/** Of another: a report when it failed, and the report's end with any other verdict. */
export const reportOf = ({ host, generation, incarnation, verdict }: VerdictChange): HostPublication => {
  const report: ActualPresence = { host, generation, incarnation };
  return { key: presenceKey.report(host), value: verdict === "failed" ? toJson(report) : null };
};
