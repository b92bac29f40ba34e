import { labelOf, type MachineText } from "../../world/cell-text.ts";
import type { Invariant } from "../invariant.ts";

/**
 * A volume that its cell's user was told is held for a copy has its file until that copy has one, and for as long as that one
 * is there: whatever has become of the cell since, its bytes are in one of the two. At rest the copy is there, where its own
 * cell's user wants it still.
 */
export const heldVolumes: Invariant = {
  number: 79,
  title: "a held volume is not destroyed before its copy is made",
  watch: ({ kernel, truth, users }, verdict) => {
    const paths = new Map<string, string>();
    const files = new Set<string>();
    const everMade = new Set<string>();
    /** By volume: path of the copy, whose cell is the second. */
    const held = new Map<string, { readonly copy: string; readonly cell: string }>();
    const at = (path: string): readonly string[] => [...paths].flatMap(([uid, own]) => (own === path ? [uid] : []));
    /** Volumes that an accepted text has left out: what a later one says of their path is about another. */
    const left = new Set<string>();
    const learn = (cell: string): void => {
      const text = users.accepted.get(cell);
      const prefix = `${labelOf(cell)}/`;
      const own = new Map((text?.holds ?? []).map(({ own: volume, other }) => [`${prefix}${volume}`, other]));
      for (const [uid, path] of paths) {
        if (left.has(uid) || !path.startsWith(prefix)) continue;
        // What was held is so still, also where the cell is deleted.
        if (text == null || !isThere(path, text)) {
          left.add(uid);
          continue;
        }
        const other = own.get(path)?.split("/");
        if (other !== undefined && files.has(uid))
          held.set(uid, { copy: `${labelOf(other[0] ?? "")}/${other[1]}`, cell: other[0] ?? "" });
        else if (other === undefined) held.delete(uid);
      }
    };
    const isThere = (path: string, { machines }: { readonly machines: readonly MachineText[] }): boolean =>
      machines.some(({ name, data }) => data && path.endsWith(`/${name}Data`));
    kernel.watchers.push({
      log: (who, event, { volume, path, status }) => {
        if (event === "volume/placed") paths.set(String(volume), String(path));
        // The user takes note of it in the same moment.
        if (event === "answered" && status === 200 && who.startsWith("user.")) learn(who.slice("user.".length));
      },
    });
    truth.watchers.push({
      fileMade: (_server, volume) => {
        files.add(volume);
        everMade.add(volume);
      },
      fileRemoved: (_server, volume) => {
        files.delete(volume);
        const hold = held.get(volume);
        if (hold === undefined) return;
        const copies = at(hold.copy);
        verdict.check(
          copies.some((uid) => everMade.has(uid)) && !copies.some((uid) => files.has(uid)),
          () => `the file of ${paths.get(volume)} is removed, which is held for ${hold.copy}`,
        );
      },
    });
    return () => {
      for (const [uid, { copy, cell }] of held) {
        const wanted = users.accepted.get(cell)?.keeps?.some(({ own }) => `${labelOf(cell)}/${own}` === copy) === true;
        if (!wanted) continue;
        verdict.check(
          files.has(uid) && at(copy).some((each) => files.has(each)),
          () => `${copy} should have the bytes of ${paths.get(uid)}, and one of the two has no file`,
        );
      }
    };
  },
};
