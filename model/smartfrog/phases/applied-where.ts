import type { Position, RelatedPosition } from "../../diagnostics/diagnostic.ts";
import { type Holder, NamePlaces, usesAlong } from "../../diagnostics/used-where.ts";
import type { Component } from "../component.ts";

/** Names of a component's attributes, with where they were written. */
const namesIn = (component: Component): NamePlaces =>
  new NamePlaces(() => Array.from(component.attributes.values(), ({ namePosition }) => namePosition));

/** Where templates were used so that a fault at `fault` came to be one of this component; empty if it was written out. */
export function usesOf(component: Component, fault: Position): { readonly related?: readonly RelatedPosition[] } {
  const ancestors: Component[] = [];
  for (let at: Component | null = component; at; at = at.parent) ancestors.unshift(at);
  const [root] = ancestors;
  if (!root) return {};
  const outermost = namesIn(root);
  const holders: Holder[] = [];
  for (const each of ancestors.slice(1)) {
    const name = each.parent?.attributes.get(each.name)?.namePosition;
    if (!each.parent || !name) return {};
    const path = `${holders.length > 0 ? `${holders.at(-1)?.path}/` : ""}${each.name}`;
    holders.push({ path, name, others: each.parent === root ? [outermost] : [namesIn(each.parent), outermost] });
  }
  const related = usesAlong(holders, fault);
  return related.length === 0 ? {} : { related };
}
