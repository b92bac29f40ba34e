import { type ElementPath, type Uid, uid } from "../cell/identifiers.ts";
import type { Plan } from "./plan-types.ts";

/**
 * The identities after a plan: elements that go on keep theirs, renamed ones too; created and replaced ones get
 * `<cellUid>-<n>`, counted from `nextNumber`, which never goes back. An element that went on without an identity gets one.
 */
export function identify(
  previous: ReadonlyMap<ElementPath, Uid>,
  plan: Plan,
  cellUid: string,
  nextNumber: number,
): { readonly uids: ReadonlyMap<ElementPath, Uid>; readonly nextNumber: number } {
  const uids = new Map<ElementPath, Uid>();
  let number = nextNumber;
  for (const { path, action, movedFrom } of plan.steps) {
    if (action === "delete") continue;
    const kept = action === "create" || action === "replace" ? undefined : previous.get(movedFrom ?? path);
    uids.set(path, kept ?? uid(`${cellUid}-${number++}`));
  }
  return { uids, nextNumber: number };
}
