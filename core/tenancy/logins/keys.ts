import { isoTime } from "../../../model/cell/iso-time.ts";
import type { KeyState, KeySummary, MadeKey, NewKey } from "../../../model/contract/tenancy/tenancy.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { type Actor, type By, denied, reaches, userFor } from "../actor.ts";
import type { KeyRecord, UserRecord } from "../records.ts";
import { noSuch, type Refused, refused } from "../refused.ts";
import { labelOf, save, type TenancyState } from "../state.ts";
import { endSession } from "./logins.ts";

/*
 * Access keys, for scripts and for requests that are signed. One's own need no right, as one's own password needs none. A key begins
 * sessions, and makes no other key: so when it is disabled or deleted nothing is left of what it opened.
 */
const most = { ofUser: 16, inAll: 200_000 } as const;

const summaryOf = (
  state: TenancyState,
  id: string,
  { user, state: standing, note, madeMs, usedMs }: KeyRecord,
): KeySummary => {
  const known = state.tables.user.get(user);
  const used = usedMs === undefined ? null : isoTime(usedMs);
  return {
    id,
    user: known === undefined ? "" : labelOf(state, known),
    state: standing,
    note,
    made: isoTime(madeMs),
    used,
  };
};
const keysOf = ({ tables }: TenancyState, { uid }: UserRecord) =>
  [...tables.key].filter(([, { user }]) => user === uid);

export function listKeys(state: TenancyState, actor: Actor): Result<readonly KeySummary[], Refused> {
  const maySeeOthers = denied(state, actor, "key.read") === null;
  const isSeen = ({ user }: KeyRecord): boolean => {
    const account = state.tables.user.get(user)?.account ?? "";
    return user === actor.user?.uid || (maySeeOthers && reaches(state, actor, { account }));
  };
  const seen = [...state.tables.key].filter(([, key]) => isSeen(key));
  return ok(seen.map(([id, key]) => summaryOf(state, id, key)));
}

export function addKey(
  state: TenancyState,
  actor: Actor,
  { by, asked, key }: { readonly by: By; readonly asked: NewKey; readonly key: FreshKey },
): Result<Omit<MadeKey, "secret">, Refused> {
  if ("session" in by && state.tables.session.get(by.session)?.key !== undefined)
    return fail(refused(403, "forbidden", "this session was begun by a key, which makes no other: log in by password"));
  const uid = asked.user ?? actor.user?.uid;
  if (uid === undefined)
    return fail(refused(400, "bad-request", "the operator's credential is no user's: say whose key it is to be"));
  const user = uid === actor.user?.uid ? ok(actor.user) : userFor(state, actor, uid, "key.add");
  if (!user.ok) return user;
  if (keysOf(state, user.value).length >= most.ofUser)
    return fail(refused(409, "conflict", `a user has at most ${most.ofUser} keys: delete one that is not used`));
  if (state.tables.key.size >= most.inAll)
    return fail(refused(409, "conflict", `there are ${most.inAll} keys, and that is the limit`));
  if (state.tables.key.has(key.id))
    return fail(refused(503, "busy", "the id that was drawn is another key's; try again"));
  const record: KeyRecord = {
    user: uid,
    note: asked.note ?? "",
    state: "enabled",
    madeMs: state.now.wallMs,
    sealed: key.sealed,
  };
  save(state, "key", key.id, record);
  return ok({ key: summaryOf(state, key.id, record) });
}
/** What the edge has drawn. */
export interface FreshKey {
  readonly id: string;
  readonly sealed: string;
}

function keyFor(state: TenancyState, actor: Actor, id: string, verb: string): Result<KeyRecord, Refused> {
  const no = noSuch("key", id, "`cells key list` shows those that you may see");
  const key = state.tables.key.get(id);
  if (key === undefined) return fail(no);
  if (key.user === actor.user?.uid) return ok(key);
  const user = userFor(state, actor, key.user, verb);
  if (user.ok) return ok(key);
  return user.error.status === 404 ? fail(no) : user;
}
export function changeKey(
  state: TenancyState,
  actor: Actor,
  { id, standing, dryRun }: { readonly id: string; readonly standing: KeyState; readonly dryRun: boolean },
): Result<KeySummary, Refused> {
  const found = keyFor(state, actor, id, "key.change");
  if (!found.ok) return found;
  const record: KeyRecord = { ...found.value, state: standing };
  if (dryRun) return ok(summaryOf(state, id, record));
  if (standing === "disabled") endSessionsBy(state, id);
  save(state, "key", id, record);
  return ok(summaryOf(state, id, record));
}
export function deleteKey(
  state: TenancyState,
  actor: Actor,
  { id, dryRun }: { readonly id: string; readonly dryRun: boolean },
): Result<KeySummary, Refused> {
  const found = keyFor(state, actor, id, "key.delete");
  if (!found.ok) return found;
  const gone = summaryOf(state, id, found.value);
  if (!dryRun) drop(state, id);
  return ok(gone);
}

function endSessionsBy(state: TenancyState, id: string): void {
  for (const hash of [...(state.sessionsBy.get(id) ?? [])]) endSession(state, hash);
}
function drop(state: TenancyState, id: string): void {
  endSessionsBy(state, id);
  save(state, "key", id, null);
}
export function dropKeysOf(state: TenancyState, user: UserRecord): void {
  for (const [id] of keysOf(state, user)) drop(state, id);
}
/** A version before this one deletes users and knows no keys. */
export function dropKeysOfNobody(state: TenancyState): void {
  for (const [id, { user }] of [...state.tables.key]) if (!state.tables.user.has(user)) drop(state, id);
}
