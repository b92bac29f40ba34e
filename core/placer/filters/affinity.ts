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
  const there = use.cells.get(request.cell);
  // Of nearly all hosts: nothing of its cell is there.
  if (there === undefined) return null;
  // Both ways, or the order of starting would decide.
  const named = apartFrom(request.placement).flatMap((path) =>
    [path, `${request.path.split("/")[0]}/${path}`].flatMap((each) => [...(there.byPath.get(each) ?? [])]),
  );
  const naming = [...there.keepingApart].filter((other) => names(other.apartFrom, other.path, request.path));
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
