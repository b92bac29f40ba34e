import type { CellName, Uid } from "../../model/cell/identifiers.ts";
import { mostRulesOfModeCell } from "../../model/cell/network/modes.ts";
import { xmlLimits } from "../../model/eucalyptus/xml/read-xml.ts";
import type { DesiredSecurityGroup } from "../documents/network/eucalyptus.ts";

/*
 * One view is for all cells, and one that is too long no host could read: it would keep what it has for ever. So what is too much of it is left
 * out, said to whom it belongs, and nothing of what others have had before. A model with too many rules is refused before
 * (`model/check/network/check-mode.ts`; how many a cell may have: `mostRulesOfModeCell` in `model/cell/network/modes.ts`).
 */

/** What a reader of views counts: elements and characters of the text. At most, of each, with what `writeView` writes around numbers and names. */
export interface Room {
  readonly elements: number;
  readonly characters: number;
}
/** A part is for clusters, subnets and ranges. */
export const viewRoom: Room = { elements: xmlLimits.elements - 10_000, characters: xmlLimits.length - 1_000_000 };
export const roomOfInstance = (cell: string): Room => ({ elements: 9, characters: 400 + cell.length });
export const roomOfGroup = (cell: string, rules: number): Room => ({
  elements: 4 + 5 * rules,
  characters: 200 + cell.length + 190 * rules,
});
export const sum = (rooms: Iterable<Room>): Room => {
  let [elements, characters] = [0, 0];
  for (const room of rooms) {
    elements += room.elements;
    characters += room.characters;
  }
  return { elements, characters };
};
export const fits = (...rooms: readonly Room[]): boolean => {
  const { elements, characters } = sum(rooms);
  return elements <= viewRoom.elements && characters <= viewRoom.characters;
};

type Groups = Iterable<readonly [Uid, { readonly document: DesiredSecurityGroup }]>;
export type Beyond = ReadonlyMap<Uid, "cell" | "view">;

export const whyBeyond = {
  cell: `the groups of the cell have more than ${mostRulesOfModeCell} rules together`,
  view: "a view of the network has no room for its rules beside those of all other groups",
} as const;

/**
 * Groups that are in no view with their rules: their cell has too many in all, or the view has no room for them beside those that it has had before.
 * @param instances what these take
 * @param before how many rules a group has in the view now; null: none
 */
export function groupsBeyond(groups: Groups, instances: Room, before: (group: Uid) => number | null): Beyond {
  const counts = new Map<CellName, number>();
  const beyond = new Map<Uid, "cell" | "view">();
  const rules = new Map<Uid, readonly [cell: CellName, count: number]>();
  for (const [uid, { document }] of [...groups].sort(([one], [other]) => (one < other ? -1 : 1))) {
    const { cell, ingress, egress } = document;
    const own = ingress.length + egress.length;
    const count = (counts.get(cell) ?? 0) + own;
    if (count > mostRulesOfModeCell) beyond.set(uid, "cell");
    else {
      counts.set(cell, count);
      rules.set(uid, [cell, own]);
    }
  }
  // Each group is there at least by its name.
  const has = ([uid, [cell, count]]: readonly [Uid, readonly [CellName, number]]): Room =>
    roomOfGroup(cell, Math.min(count, before(uid) ?? 0));
  let taken = sum([instances, ...[...rules].map(has)]);
  for (const [uid, [cell, count]] of rules) {
    const held = before(uid) ?? 0;
    if (count <= held) continue;
    const more: Room = { elements: 5 * (count - held), characters: 190 * (count - held) };
    if (fits(taken, more)) taken = sum([taken, more]);
    else {
      beyond.set(uid, "view");
      // What it had before is another's now.
      const less = roomOfGroup(cell, held);
      const bare = roomOfGroup(cell, 0);
      taken = {
        elements: taken.elements - less.elements + bare.elements,
        characters: taken.characters - less.characters + bare.characters,
      };
    }
  }
  return beyond;
}
