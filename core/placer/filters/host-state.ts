import type { Filter } from "../candidate.ts";

/** A host takes new VMs only while it is up. */
export const hostState: Filter = ({ actual }) =>
  actual.state === "up"
    ? null
    : { kind: "closed", why: `it is ${actual.state}`, lifts: "the operator lets it take VMs again" };
