import type { Cell, CellControllerElement, Openness } from "../cell/cell.ts";
import { childOfElement, saidByChild } from "../cell/child-document.ts";
import { boundOfChildren, type Effective, effectiveOpenness, isLooser, opennessNames } from "../check/openness.ts";
import { printable } from "../diagnostics/render-diagnostic.ts";
import type { Json } from "../json/json.ts";

/**
 * What a change opens without a rule and without a word of the cell for which it opens: there it holds since the cell above
 * has it so (`x.defaults`). What a cell says of itself is a cause in the plan.
 */
export interface Opened {
  /** As the cell would write it, `x.policy.internet`. */
  readonly attribute: string;
  readonly from: Json;
  readonly to: Json;
  /** Of the cell itself, or of child cells, as far as they say nothing stricter, and of theirs. */
  readonly of: "own" | "children";
  /** The first names, in order. */
  readonly cells: readonly string[];
  /** How many there are beyond these. Absent: none. */
  readonly more?: number;
}
const mostNamed = 50;

/** @param bound what the cell may have, as its parent says it; null: it is the root cell */
export function openedBy(
  from: Cell | null,
  to: Cell | null,
  bound: Openness | null,
  nameOfChild: (label: string) => string,
): readonly Opened[] {
  if (to === null) return [];
  const most = bound ?? {};
  const own = { name: to.name, before: from === null ? nothingSaid : effectiveOpenness(from.policy, most) };
  const after = effectiveOpenness(to.policy, most);
  const taken = opennessNames.filter((name) => to.policy[name] === undefined);
  return [
    ...differences([{ ...own, after }], "own").filter(({ attribute }) =>
      taken.some((name) => attribute === `x.policy.${name}`),
    ),
    ...differences(childrenOf(from, to, bound, nameOfChild), "children"),
  ];
}

interface Change {
  readonly name: string;
  readonly before: Effective;
  readonly after: Effective;
}
const nothingSaid = effectiveOpenness({}, {});

/** A child that goes on may have said anything since: it counts as one that says nothing. */
function childrenOf(
  from: Cell | null,
  to: Cell,
  bound: Openness | null,
  nameOfChild: (label: string) => string,
): readonly Change[] {
  const [old, now] = [
    from === null ? {} : boundOfChildren(from.defaults ?? {}, bound),
    boundOfChildren(to.defaults ?? {}, bound),
  ];
  return [...to.elements.values()].flatMap((element) => {
    if (element.type !== "CellController") return [];
    const child = childOfElement(element);
    if (child === null) return [];
    const before = isThere(from, element) ? effectiveOpenness({}, old) : nothingSaid;
    const after = effectiveOpenness(isThere(from, element) ? {} : saidByChild(child), now);
    return [{ name: nameOfChild(child.label), before, after }];
  });
}
const isThere = (from: Cell | null, { path, movedFrom }: CellControllerElement): boolean =>
  from?.elements.get(path)?.type === "CellController" ||
  (movedFrom !== undefined && from?.elements.get(movedFrom)?.type === "CellController");

function differences(changes: readonly Change[], of: Opened["of"]): readonly Opened[] {
  return opennessNames.flatMap((name) => {
    const alike = new Map<string, { readonly from: Json; readonly to: Json; readonly names: string[] }>();
    for (const { name: cell, before, after } of changes) {
      const [from, to] = [before[name], after[name]];
      if (!isLooser(name, to, from)) continue;
      const group = alike.get(`${from} ${to}`) ?? { from, to, names: [] };
      group.names.push(cell);
      alike.set(`${from} ${to}`, group);
    }
    return [...alike.values()].map(({ from, to, names }): Opened => {
      const more = Math.max(0, names.length - mostNamed);
      return {
        attribute: `x.policy.${name}`,
        from,
        to,
        of,
        cells: names.sort().slice(0, mostNamed),
        ...(more === 0 ? {} : { more }),
      };
    });
  });
}

/** What is said above `openedSays`. */
export const openedTitle = "Open without a rule, by `x.defaults` of the cell above or by a child's own word:";

/** As a person reads it, one after another; nothing where there is nothing. */
export const openedSays = (opened: readonly Opened[]): readonly string[] =>
  opened.map(({ attribute, from, to, of, cells, more = 0 }) => {
    const others = more === 0 ? "" : ` and ${more} more`;
    const unless = of === "own" ? "" : ", where they and their child cells say nothing stricter";
    return printable(
      `${cells.join(", ")}${others}: ${attribute} ${JSON.stringify(from)} → ${JSON.stringify(to)}${unless}`,
    );
  });

/** The same in a terminal, a line each. */
export const openedLines = (opened: readonly Opened[]): readonly string[] =>
  opened.length === 0 ? [] : [openedTitle, ...openedSays(opened).map((line) => `  ${line}`)];
