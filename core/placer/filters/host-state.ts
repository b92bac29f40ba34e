import type { Filter } from "../candidate.ts";

/** A host takes new VMs only while it is up, and while the operator lets it; one that is reserved only those whose host was lost. */
export const hostState: Filter = ({ actual, closed }, { restart }) => {
  if (actual.state !== "up")
    return { kind: "closed", why: `it is ${actual.state}`, lifts: "the operator lets it take VMs again" };
  if (closed === undefined || (closed === "reserved" && restart === true)) return null;
  if (closed === "reserved")
    return {
      kind: "closed",
      why: "it is kept for VMs whose host was lost",
      lifts: `take \`ha\` out of \`x.tags\` of root/hosts/${actual.host}, or let one more host join`,
    };
  const why = closed === "disabled" ? "it is disabled" : "it is in maintenance";
  return { kind: "closed", why, lifts: `the operator lets it take VMs again: \`cells host resume ${actual.host}\`` };
};
