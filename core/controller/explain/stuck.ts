import type { ElementPath, Uid } from "../../../model/cell/identifiers.ts";
import { dependenciesOf } from "../../../model/plan/plan.ts";
import type { ElementRecord } from "../records.ts";
import { type ControllerState, recordAt } from "../state.ts";

/**
 * Elements that stay as they are until somebody changes something: those that have failed, those of which something is owed until a
 * machine starts anew, and those that are not ready and need one of them. Whoever waits for the cell waits in vain for these.
 */
export function stuckElements(state: ControllerState): ReadonlySet<Uid> {
  const { cell } = state;
  const staying = [...state.indexes.staying.keys()].flatMap((uid) => state.elements.get(uid) ?? []);
  if (cell === null || staying.length === 0) return new Set();
  const users = new Map<ElementPath, ElementPath[]>();
  const uses = (user: ElementPath, used: ElementPath): void => {
    const known = users.get(used);
    if (known === undefined) users.set(used, [user]);
    else known.push(user);
  };
  for (const [path, needs] of dependenciesOf(cell)) for (const need of needs) uses(path, need);
  // A link is ready with its VM.
  for (const element of cell.elements.values())
    if (element.type === "VirtualInterface" || element.type === "VolumeConnection") uses(element.path, element.vm);
  const stuck = new Set<Uid>();
  const add = (record: ElementRecord | undefined): void => {
    if (record === undefined || record.phase === "ready" || stuck.has(record.uid)) return;
    stuck.add(record.uid);
    queue.push(record);
  };
  const queue: ElementRecord[] = [];
  for (const record of staying) add(record);
  for (let next = queue.pop(); next !== undefined; next = queue.pop())
    for (const user of users.get(next.path) ?? []) add(recordAt(state, user));
  return stuck;
}
