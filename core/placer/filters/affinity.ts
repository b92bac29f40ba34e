import type { ElementPath } from "../../../model/cell/identifiers.ts";
import { isObject } from "../../outbox.ts";
import { apartFrom, type Filter } from "../candidate.ts";

/** `x.placement.host` pins a VM to one host; `x.placement.apartFrom` keeps it off the hosts of the VMs it names. */
export const affinity: Filter = ({ actual, use }, request) => {
  const pin = isObject(request.placement) ? request.placement.host : undefined;
  if (typeof pin === "string" && pin !== actual.host) {
    const lifts = `leave out x.placement.host, or make room at ${pin}`;
    return { kind: "pinned", why: `x.placement.host asks for ${pin}`, lifts };
  }
  const wished = apartFrom(request.placement);
  // Of nearly all hosts: nobody keeps apart from anybody.
  if (wished.length === 0 && use.keepingApart === undefined) return null;
  // Both ways, or the order of starting would decide.
  const named =
    wished.length === 0
      ? []
      : [...use.reservations.values()].filter(
          ({ cell, path, off }) => off !== true && cell === request.cell && names(wished, request.path, path),
        );
  const naming = [...(use.keepingApart ?? [])].filter(
    (other) => other.cell === request.cell && names(other.apartFrom, other.path, request.path),
  );
  for (const other of [...named, ...naming]) {
    if (other.vm !== request.vm) {
      const its = named.includes(other) ? [`"${other.path}" out of x.placement.apartFrom`] : [];
      const theirs = naming.includes(other) ? [`"${request.path}" out of that of "${other.path}"`] : [];
      return {
        kind: "apart",
        why: `x.placement.apartFrom keeps it apart from "${other.path}", which is there`,
        lifts: `take ${[...its, ...theirs].join(" and ")}, or let one more host join`,
      };
    }
  }
  return null;
};

export const names = (list: readonly string[], owner: ElementPath, path: ElementPath): boolean =>
  list.some((listed) => listed === path || `${owner.split("/")[0]}/${listed}` === path);
