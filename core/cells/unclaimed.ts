import type { PeerName, Uid } from "../../model/cell/identifiers.ts";
import type { DesiredCell } from "../documents/cells.ts";
import type { Progress } from "../documents/vocabulary.ts";
import type { AdoptRequest } from "../env.ts";
import { progress } from "../outbox.ts";
import type { CellRecord } from "./record.ts";

/**
 * A cell lives, and its parent, which has lost its store, knows nothing of it: what that declares under the name is another
 * child to it, with a UID of its own, and is refused the name. An operator may say that the two are one: the parent is told so, takes the UID that the
 * cell has, and desires it; nothing of the cell changes.
 *
 * Not by itself: a name that is declared again may be meant for a new cell, which would have the machines of the former one.
 */
export interface Claims {
  readonly cells: ReadonlyMap<Uid, CellRecord>;
  readonly wanted: ReadonlyMap<Uid, { readonly client: PeerName; readonly document: DesiredCell }>;
}

/** The child of that name that its parent desires under another UID, and that is not made; undefined: there is none. */
export const rivalOf = ({ cells, wanted }: Claims, record: CellRecord): Uid | undefined =>
  [...wanted].find(
    ([uid, { client, document }]) =>
      !cells.has(uid) && client === record.client && document.cell === record.cell && document.ending !== true,
  )?.[0];

/** The cell's record after an operator has given it to its parent; a sentence: that cannot be. */
export function adopted(claims: Claims, { client, key }: AdoptRequest): CellRecord | string {
  const record = [...claims.cells.values()].find(
    ({ uid, client: parent }) => key === `cell/${uid}` && parent === client,
  );
  if (record === undefined) return `there is no child cell ${key} of ${client}`;
  const { cell, stage } = record;
  if (stage !== "living") return `the child cell ${cell} is being ended already`;
  if (rivalOf(claims, record) === undefined)
    return `${client} desires no child cell ${cell} that could be this one: declare it in its parent's specification, and say this again`;
  return { ...record, given: true };
}

/** What its parent is told of a child whose name another cell has. */
export function nameIsTaken({ client, cell, stage, uid, unclaimed }: CellRecord): Progress {
  const former = `${uid}, of which nothing is known here since stores were lost`;
  const verb = `\`cells orphans end cell-manager ${client} cell/${uid}\``;
  if (unclaimed === true)
    return progress(
      "failed",
      `the name ${cell} is that of a former child cell (${former}): give this one another x.name, or let an operator end the former one with all that it has (${verb}), or say that it is this one (\`cells orphans adopt\`, likewise)`,
    );
  if (stage === "living")
    return progress(
      "failed",
      `the name ${cell} is that of another child cell (${uid}): give one of the two another x.name`,
    );
  return progress("waiting", `waits until the former cell ${cell} is gone`);
}
