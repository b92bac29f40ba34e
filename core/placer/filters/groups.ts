import { whichRefuses } from "../../../model/cell/tenants/affinity/affinity.ts";
import type { Filter } from "../candidate.ts";

/** A host is not one that a strict affinity group of the VM keeps it off. */
export const groups: Filter = ({ actual, groups = [] }) => {
  const group = whichRefuses(groups, actual.host);
  if (group === null) return null;
  const [named, out] = [JSON.stringify(group.name), `take ${JSON.stringify(group.name)} out of x.placement.groups`];
  return group.kind === "host anti-affinity"
    ? {
        kind: "apart",
        why: `the group ${named} is "host anti-affinity", and a VM of it is there`,
        lifts: `${out}, or let one more host join`,
      }
    : {
        kind: "pinned",
        why: `the group ${named} is "host affinity", and its VMs are at another host`,
        lifts: `${out}, or make room where its VMs are`,
      };
};
