import type { Filter } from "../candidate.ts";

/** A host takes new VMs only while it is up, and while the operator lets it. */
export const hostState: Filter = ({ actual, closed }) => {
  if (actual.state !== "up")
    return { kind: "closed", why: `it is ${actual.state}`, lifts: "the operator lets it take VMs again" };
  if (closed === undefined) return null;
  const why = closed === "disabled" ? "it is disabled" : "it is in maintenance";
  return { kind: "closed", why, lifts: `the operator lets it take VMs again: \`cells host resume ${actual.host}\`` };
};
