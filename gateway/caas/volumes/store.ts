import { uidPattern } from "../../../model/contract/tenancy/volumes/volumes.ts";
import type { Json } from "../../../model/json/json.ts";
import type { JsonPatchOperation } from "../../../model/json/patch.ts";
import { RefusedError, refused } from "../../requests/refused.ts";
import { applyEdit } from "../../shared/edits.ts";
import { leftBehind, withoutLost } from "./edits.ts";
import {
  isLeft,
  neededOf,
  originsIn,
  pathOf,
  pointerOf,
  readVolume,
  type StoredVersion,
  type StoredVolume,
} from "./layout.ts";
import type { Primary } from "./primary.ts";
import type { StorageLimit } from "./quota.ts";
import { type Asker, manages, rightsOf } from "./rights.ts";
import { requireRoom, type Weight, weightAfter, weightOf } from "./room.ts";
import type { VolumeIndex } from "./search.ts";

type Home = Pick<StoredVolume, "uid" | "account" | "owner">;
const mostOfAccount = 1000;
/** Looked at when a clone goes. */
const mostOrigins = 100;

export const missing = (uid: string) => refused(404, "not-found", `there is no persistent volume ${uid.slice(0, 80)}`);
export const forbidden = () => refused(403, "forbidden", "your role does not let you change persistent volumes");

/** Who looks whether a name is free sees all of them. */
const everybody: Asker = {
  account: null,
  reach: "installation",
  mayRead: true,
  mayChange: true,
  accounts: new Map(),
  domains: new Map(),
  cells: new Set(),
};

/** Volumes as somebody may see and change them, each time as the primary cell has them now. */
export function createStore({ primary, index }: { readonly primary: Primary; readonly index: VolumeIndex }) {
  /** The index is of the model as it is now. */
  const refresh = async (): Promise<void> => {
    const version = await primary.version();
    if (version !== null && version === index.version) return;
    const all = await primary.read("");
    index.fill(version ?? all.version, all.json ?? {});
  };
  const found = async (asker: Asker, uid: string): Promise<{ readonly volume: StoredVolume; readonly json: Json }> => {
    // What is no UID is no part of a path.
    const json = uidPattern.test(uid) ? (await primary.read(uid)).json : null;
    const volume = json === null ? null : readVolume(uid, json);
    if (json === null || volume === null || rightsOf(asker, volume).length === 0) throw missing(uid);
    return { volume, json };
  };
  const stored = async (asker: Asker, uid: string): Promise<StoredVolume> => (await found(asker, uid)).volume;
  const requireManaged = (asker: Asker, volume: StoredVolume): void => {
    if (!asker.mayChange) throw forbidden();
    if (!manages(asker, volume))
      throw refused(403, "forbidden", `${volume.name} is shared with you, and changed by those who manage it alone`);
  };
  const managed = async (asker: Asker, uid: string): Promise<StoredVolume> => {
    const volume = await stored(asker, uid);
    requireManaged(asker, volume);
    return volume;
  };
  /** Beside what its account has already. */
  const requireRoomFor = (
    { name, uid, account, owner }: Home & { readonly name: string },
    before: Json,
    after: Weight,
    limit: StorageLimit | null,
  ) => {
    const others = account === null ? null : index.others(account, owner, uid);
    requireRoom({ name, account }, weightOf(before), after, others, limit);
  };
  /** What is asked is looked at by each try anew: somebody may have taken the right back. */
  const edit = async (
    asker: Asker,
    uid: string,
    of: (volume: StoredVolume, json: Json) => readonly JsonPatchOperation[],
    /** Of its account's storage, where it may become larger. */
    limit: StorageLimit | null = null,
    /** Paths of what is destroyed by it. */
    destroys: () => readonly string[] = () => [],
  ): Promise<StoredVolume> => {
    let volume = await managed(asker, uid);
    await refresh();
    const document = {
      read: async () => {
        const now = await found(asker, uid);
        requireManaged(asker, now.volume);
        volume = now.volume;
        return now.json;
      },
      patch: (operations: readonly JsonPatchOperation[]) => primary.patch(operations, destroys()),
    };
    const operationsOn = (json: Json): readonly JsonPatchOperation[] => {
      const operations = of(volume, json);
      const after = weightAfter(uid, json, operations);
      if (after !== null) requireRoomFor(volume, json, after, limit);
      return operations;
    };
    if (!(await applyEdit(document, operationsOn)))
      throw refused(409, "conflict", `${volume.name} is changed by others all the time`);
    return volume;
  };
  const requireFree = async (name: string, { account, owner, uid }: Home): Promise<void> => {
    await refresh();
    const its = { account: account ?? "", owner: owner ?? undefined };
    const same = index.find(everybody, { ...its, name, limit: 2 });
    if (same.some((each) => each.uid !== uid))
      throw refused(409, "conflict", `the account has a persistent volume ${name} already`);
    if (index.find(everybody, { ...its, limit: mostOfAccount }).length >= mostOfAccount)
      throw refused(409, "conflict", `an account has at most ${mostOfAccount} persistent volumes`);
  };
  /**
   * Versions that nobody is a clone of, and none of those that somebody is; none where something else needs it, of which nobody here knows what.
   * By the index as it was refreshed last.
   */
  const lostOf = ({ uid, versions }: StoredVolume, json: Json): readonly StoredVersion[] => {
    const needed = neededOf(uid, json, index.clonesOf(uid));
    return needed.size === 0 ? [] : versions.filter(({ number }) => !needed.has(number));
  };
  const pathsOf = (uid: string, versions: readonly StoredVersion[]): readonly string[] =>
    versions.map(({ number }) => `${pathOf(uid)}/v${number}`);
  /** What others are clones of stays with the provider. */
  const leave = async (asker: Asker, uid: string): Promise<void> => {
    let lost: readonly StoredVersion[] = [];
    const operations = (volume: StoredVolume, json: Json) => {
      lost = lostOf(volume, json);
      return leftBehind(volume, json, lost);
    };
    await edit(asker, uid, operations, null, () => pathsOf(uid, lost));
  };
  /** False: it is gone. Null: others are clones of it. */
  const taken = async (uid: string, versions: readonly StoredVersion[]): Promise<boolean | null> => {
    return primary.patch([{ op: "remove", path: pointerOf(uid) }], pathsOf(uid, versions)).catch((error: unknown) => {
      if (error instanceof RefusedError && error.statusCode === 400) return null;
      throw error;
    });
  };
  /** What was left for a clone that is gone goes as well, and what that was a clone of. What fails here the provider still sees. */
  const takeLeft = async (origins: readonly string[]): Promise<void> => {
    const next = [...new Set(origins)];
    for (let uid = next.pop(), looked = 0; uid !== undefined && looked < mostOrigins; uid = next.pop(), looked += 1) {
      const { json } = await primary.read(uid);
      const volume = json !== null && isLeft(json) ? readVolume(uid, json) : null;
      if (volume === null) continue;
      const isGone = (await taken(uid, volume.versions).catch(() => null)) === true;
      if (!isGone) await refresh();
      const lost = isGone ? [] : lostOf(volume, json);
      const isLess =
        lost.length > 0 &&
        (await primary.patch(withoutLost(volume, json, lost), pathsOf(uid, lost)).catch(() => false));
      if (isGone || isLess) next.push(...originsIn(json));
    }
  };
  return { refresh, stored, managed, edit, requireFree, requireRoomFor, leave, taken, takeLeft };
}
