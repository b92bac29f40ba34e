import type { Json } from "../../json/json.ts";

export const powerVerbs = ["start", "stop", "restart"] as const;
export type PowerVerb = (typeof powerVerbs)[number];
/** What of a VM's document and state decides by which attribute it is ordered. */
export interface Powered {
  readonly phase: string;
  readonly wanted: "on" | "off";
  /** `x.restart`; 0 where it has none. */
  readonly counter: number;
}

/** `x.desiredState` as a document has it. */
export const wantedOf = (desiredState: Json | undefined): "on" | "off" => (desiredState === "off" ? "off" : "on");

/** The attribute that is put, and its value. The same value as before: nothing is to be done. */
export function powerOrder(verb: PowerVerb, { phase, wanted, counter }: Powered): readonly [string, string | number] {
  const again = ["x.restart", counter + 1] as const;
  if (verb === "stop") return ["x.desiredState", "off"];
  // One that is to run and has failed is not wanted any more than before: it is started once more.
  if (verb === "start") return wanted === "on" && phase === "failed" ? again : ["x.desiredState", "on"];
  return again;
}
