import { randomUUID } from "node:crypto";
import { tagOf } from "../../../model/contract/tenancy/pages.ts";
import type {
  NewShare,
  NewVolume,
  PersistentVolume,
  VolumeChange,
  VolumeDeletion,
  VolumeDetails,
  VolumeRight,
  VolumeSource,
  VolumeVersion,
} from "../../../model/contract/tenancy/volumes/volumes.ts";
import { isObject, type Json, type JsonObject } from "../../../model/json/json.ts";
import { createTurns, type InTurn } from "../../../runtime/process/one-at-a-time.ts";
import { RefusedError, refused } from "../../requests/refused.ts";
import { uuidOf } from "../../shared/uuid.ts";
import {
  changed,
  letGo,
  markedDone,
  newGroup,
  shared,
  shareId,
  unshared,
  withoutVersion,
  withVersion,
} from "./edits.ts";
import { type Release, usersIn } from "./harvest.ts";
import {
  isDone,
  originsIn,
  pathOf,
  pointerOf,
  readVolume,
  referenceOf,
  type StoredVersion,
  type StoredVolume,
  versionIn,
} from "./layout.ts";
import type { Primary } from "./primary.ts";
import { type Asker, manages, reaches, rightsOf } from "./rights.ts";
import { weightOf } from "./room.ts";
import type { Question, VolumeIndex } from "./search.ts";
import { requireFits, requireGrantee } from "./shares.ts";
import { type Asked, elementFrom, type Made, requireCopied } from "./sources.ts";
import { createStore, forbidden, missing } from "./store.ts";

/*
 * The Persistent Volume Manager. It decides who may do what, by `rights.ts` alone; what is asked becomes a change of the primary
 * cell's model by its own credential, and of a cell that is harvested by the credential of who asks. *Missing* and *not yours* are
 * told in the same words.
 */
export interface Volumes {
  find(asker: Asker, question: Question): Promise<readonly PersistentVolume[]>;
  read(asked: Asked, uid: string): Promise<VolumeDetails>;
  /** @param once what names the request, and who asks it; null: nothing does */
  add(asked: Asked, volume: NewVolume, once: readonly string[] | null): Promise<VolumeDetails>;
  change(asked: Asked, uid: string, change: VolumeChange): Promise<VolumeDetails>;
  addVersion(asked: Asked, uid: string, source: VolumeSource): Promise<VolumeDetails>;
  /** @param holder UID of the domain that is named, if it is known */
  share(asker: Asker, uid: string, share: NewShare, holder?: string): Promise<VolumeDetails>;
  unshare(asker: Asker, uid: string, id: string): Promise<VolumeDetails>;
  remove(
    asked: Asked,
    uid: string,
    options: { readonly allowDestroy?: string | undefined; readonly dryRun?: boolean | undefined },
  ): Promise<VolumeDeletion>;
}
interface Means {
  readonly primary: Primary;
  readonly index: VolumeIndex;
  readonly nowMs: () => number;
}

const mostVersions = 100;
const mostShares = 100;
const mostWaiting = 64;

const shownOf = (asker: Asker, volume: StoredVolume): PersistentVolume => {
  const { uid, name, account, tags, text, made, version } = volume;
  const { sizeMiB = null, access = "rw" } = versionIn(volume, version) ?? {};
  return {
    uid,
    name,
    account,
    tags,
    text,
    made,
    version,
    sizeMiB,
    access,
    reference: referenceOf(uid, version),
    rights: rightsOf(asker, volume).filter(fits(access)),
  };
};
/** To read and to write: one of the two there is. */
const fits =
  (access: "rw" | "ro") =>
  (right: VolumeRight): boolean =>
    right !== (access === "rw" ? "read" : "write");

const detailsOf = (asker: Asker, volume: StoredVolume): VolumeDetails => ({
  ...shownOf(asker, volume),
  versions: volume.versions.map(
    ({ number, sizeMiB, access, phase, reason }): VolumeVersion => ({
      number,
      sizeMiB,
      access,
      phase,
      reason,
      reference: referenceOf(volume.uid, number),
    }),
  ),
  shares: manages(asker, volume) ? volume.shares.map(({ holder: _, ...share }) => share) : null,
});

/**
 * One request that adds or names a volume after the other: names are unique in an account, and this is the only one who gives them.
 * Nobody is asked in a turn but the primary cell: a cell that is harvested may be silent, and would hold up everybody.
 */
function createBoundedTurns(): InTurn {
  const inTurn = createTurns();
  let waiting = 0;
  return (work) => {
    if (waiting >= mostWaiting) throw refused(503, "busy", "too many changes of persistent volumes are under way");
    waiting += 1;
    return inTurn(work).finally(() => {
      waiting -= 1;
    });
  };
}

export function createVolumes({ primary, index, nowMs }: Means): Volumes {
  const inTurn = createBoundedTurns();
  const store = createStore({ primary, index });
  const { refresh, stored, managed, edit, requireFree, requireRoomFor } = store;
  const details = async (asker: Asker, uid: string): Promise<VolumeDetails> =>
    detailsOf(asker, await stored(asker, uid));
  /**
   * The grant by which a volume was held for its copy is taken back by the first who may, once that copy is there. Where it is not
   * known whether it is gone, the next one tries it: it is a wish of nobody who looks at a volume.
   */
  const ended = async (uid: string, version: StoredVersion, release: Release): Promise<void> => {
    const { number, held, phase } = version;
    if (held === null || phase !== "ready") return;
    try {
      await release({ at: held, hold: `${pathOf(uid)}/v${number}` });
      await primary.patch(letGo(uid, version));
    } catch {
      return;
    }
  };
  return {
    find: async (asker, question) => {
      await refresh();
      const found = index.find(asker, question).filter((each) => rightsOf(asker, each).length > 0);
      return found.map((each) => shownOf(asker, each));
    },
    read: async ({ asker, release }, uid) => {
      const volume = await stored(asker, uid);
      if (asker.mayChange) await Promise.all(volume.versions.map((version) => ended(uid, version, release)));
      return detailsOf(asker, volume);
    },
    add: async (by, volume, once) => {
      const { asker } = by;
      const asked = once === null ? null : digestOf(volume);
      if (!asker.mayChange) throw forbidden();
      const { account, owner } = ownerOf(asker, volume);
      const uid = `pv-${once === null ? randomUUID() : uuidOf("volume", ...once)}`;
      const kept = once === null ? null : (await primary.read(uid)).json;
      if (kept !== null) {
        requireSame(kept, asked);
        // Whatever has become of where it is from, and of who may have it.
        if (isDone(kept)) return details(asker, uid);
      }
      const source = await elementFrom(by, volume, { at: `${pathOf(uid)}/v1`, stored }).catch((error: unknown) => {
        if (error instanceof RefusedError && error.statusCode === 404) return error;
        throw error;
      });
      const limit = await by.storage(account);
      const isNew = await inTurn(async () => {
        const before = once === null ? null : (await primary.read(uid)).json;
        if (before !== null) {
          requireSame(before, asked);
          return false;
        }
        await requireFree(volume.name, { account, owner, uid });
        if (source instanceof RefusedError) throw source;
        await requireCopied(by, volume, stored);
        const made = new Date(nowMs()).toISOString();
        const { element, originMiB, held } = source;
        const value = newGroup(volume, { account, owner, made, asked, element, originMiB, held });
        requireRoomFor({ uid, account, owner, name: volume.name }, null, weightOf(value), limit);
        if (!(await primary.patch([{ op: "add", path: pointerOf(uid), value }])))
          throw refused(409, "conflict", "the primary cell has no place for persistent volumes");
        return true;
      });
      // It was made before, and where it comes from may be gone by now.
      if (source instanceof RefusedError) return details(asker, uid);
      await granted(source.next, async () => {
        if (isNew) await primary.patch([{ op: "remove", path: pointerOf(uid) }], [`${pathOf(uid)}/v1`]);
      });
      // Where this is lost, who asks again has it granted again, which changes nothing.
      if (asked !== null && source.next !== undefined)
        await primary.patch(markedDone(uid, asked)).catch(() => undefined);
      return details(asker, uid);
    },
    addVersion: async (asked, uid, source) => {
      const before = await managed(asked.asker, uid);
      if (before.versions.length >= mostVersions)
        throw refused(409, "conflict", `a persistent volume has at most ${mostVersions} versions`);
      const number = before.last + 1;
      const made = await elementFrom(asked, source, {
        at: `${pathOf(uid)}/v${number}`,
        stored,
      });
      const { next } = made;
      const limit = await asked.storage(before.account);
      const version = (volume: StoredVolume) => {
        // What is held elsewhere is held for this number.
        if (next !== undefined && volume.last + 1 !== number)
          throw refused(409, "conflict", `${volume.name} was given a version ${volume.last} meanwhile`);
        return withVersion(volume, made);
      };
      await inTurn(async () => {
        await requireCopied(asked, source, stored);
        await edit(asked.asker, uid, version, limit);
      });
      await granted(next, async () => {
        const { json } = await primary.read(uid);
        const volume = json === null ? null : readVolume(uid, json);
        if (volume !== null)
          await primary.patch(withoutVersion(volume, { ...made, number }, before.version), [
            `${pathOf(uid)}/v${number}`,
          ]);
      });
      return details(asked.asker, uid);
    },
    change: async ({ asker, storage }, uid, change) => {
      const { name, version, sizeMiB } = change;
      const limit = sizeMiB === undefined ? null : await storage((await managed(asker, uid)).account);
      return inTurn(async () => {
        const volume = await managed(asker, uid);
        if (name !== undefined && name !== volume.name) await requireFree(name, volume);
        if (version !== undefined && versionIn(volume, version) === undefined)
          throw refused(404, "not-found", `${volume.name} has no version ${version}`);
        const { sizeMiB: has = null } = versionIn(volume, version ?? volume.version) ?? {};
        if (sizeMiB !== undefined && has !== null && sizeMiB < has)
          throw refused(409, "conflict", `${volume.name} has ${has} MiB, and a volume only grows`);
        await edit(asker, uid, (found) => changed(found, change), limit);
        return details(asker, uid);
      });
    },
    share: (asker, uid, share, domain) =>
      inTurn(async () => {
        requireGrantee(share);
        const holder = share.kind === "domain" ? domain : asker.accounts.get(share.path ?? "");
        const id = shareId(share, holder);
        const before = await managed(asker, uid);
        requireFits(share, before);
        if (before.shares.length >= mostShares && !before.shares.some((each) => each.id === id))
          throw refused(409, "conflict", `a persistent volume is shared with at most ${mostShares}`);
        await edit(asker, uid, (volume) =>
          shared(volume, { id, ...share, ...(holder === undefined ? {} : { holder }) }),
        );
        return details(asker, uid);
      }),
    // In turn, so that who copies it by that share has done so, or sees that it is gone.
    unshare: (asker, uid, id) =>
      inTurn(async () => {
        const before = await managed(asker, uid);
        if (!before.shares.some((each) => each.id === id))
          throw refused(404, "not-found", `${before.name} has no share ${id.slice(0, 80)}`);
        await edit(asker, uid, (volume) => unshared(volume, id));
        const { json } = await primary.read(uid);
        const left = json === null ? null : readVolume(uid, json);
        if (left === null) throw missing(uid);
        return detailsOf(asker, left);
      }),
    remove: createRemove(primary, store, inTurn),
  };
}

/** What others are clones of is left to these, and goes with the last of them. */
function createRemove(
  primary: Pick<Primary, "read">,
  { managed, leave, taken, takeLeft }: ReturnType<typeof createStore>,
  inTurn: InTurn,
): Volumes["remove"] {
  return async ({ asker, users }, uid, { allowDestroy, dryRun = false }) => {
    const { name, account, versions } = await managed(asker, uid);
    const its = usersIn(await users(), uid);
    const answer = { uid, name, versions: versions.map(({ number }) => number), users: its, dryRun };
    if (dryRun) return answer;
    if (allowDestroy !== uid && allowDestroy !== name) throw losesData(name, its);
    const { json: group } = await primary.read(uid);
    const done = await taken(uid, versions);
    if (done === false) throw missing(uid);
    if (done === null) {
      if (account === null) throw hasClones(name);
      await inTurn(() => leave(asker, uid));
      await takeLeft(originsIn(group));
      return { ...answer, stays: true };
    }
    await takeLeft(originsIn(group));
    return answer;
  };
}
/** Whose they are is not said: they may be anybody's. */
const hasClones = (name: string): RefusedError =>
  refused(409, "conflict", `${name} has clones among persistent volumes, which need it as long as they are there`);

function losesData(name: string, users: readonly string[]): RefusedError {
  const used = users.length === 0 ? "" : `, which is used by ${users.slice(0, 10).join(", ")}`;
  const message = `the data of ${name}${used} would be lost, and allowDestroy does not name it`;
  return refused(409, "change/destroys-data", message);
}
/** What was asked, whatever the order of its fields. */
const digestOf = (volume: NewVolume): string => tagOf(volume as unknown as JsonObject);
/** The volume was made under this key. One that a previous version made does not say by which request. */
function requireSame(group: Json, asked: string | null): void {
  const before = isObject(group) && typeof group.asked === "string" ? group.asked : asked;
  if (before === asked) return;
  const message =
    "this Idempotency-Key was used for another request, which was done: each change has a key of its own, also where it is asked for again with another body";
  throw refused(422, "idempotency/other-request", message);
}
/** The account that a new one is for, which is there and in the reach of who asks. */
function ownerOf(asker: Asker, { account: named }: NewVolume): Pick<StoredVolume, "account" | "owner"> {
  const account = named ?? asker.account;
  const owner = asker.accounts.get(account ?? "") ?? null;
  if (!reaches(asker, account) || (named !== undefined && owner === null))
    throw refused(404, "not-found", `there is no account ${account ?? ""}`);
  return { account, owner };
}

/**
 * What is refused in the cell that is harvested is taken back. Where its answer is lost nobody knows whether it holds the volume
 * for the copy, so the copy stays: a hold whose copy is gone would never end.
 */
async function granted(next: Made["next"], takeBack: () => Promise<void>): Promise<void> {
  if (next === undefined) return;
  try {
    await next();
  } catch (error) {
    if (!(error instanceof RefusedError) || error.statusCode >= 500)
      throw refused(
        502,
        "unreachable",
        "the cell did not answer whether it holds the volume; the copy stays, and waits",
      );
    await takeBack();
    throw error;
  }
}
