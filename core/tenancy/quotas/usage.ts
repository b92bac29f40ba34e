import { isoTime, wallMsOf } from "../../../model/cell/iso-time.ts";
import { type LimitKey, type Limits, limitKeys } from "../../../model/contract/tenancy/quotas.ts";
import { mostDays, type UsageDay, usualDays } from "../../../model/contract/tenancy/usage.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import type { DesiredOwner } from "../../documents/tenancy.ts";
import { type Actor, denied, reaches } from "../actor.ts";
import { isKept } from "../owners/owners.ts";
import type { AccountRecord, UsageRecord } from "../records.ts";
import { type Refused, refused } from "../refused.ts";
import { accountPath, operatorUid, payerOf, save, type TenancyState } from "../state.ts";

/*
 * What accounts have had, for how long. The root controller says of each cell how much it has granted to it, which is what quotas count, and how much it
 * uses, which its own controller knows; here both are counted up over time, by account and day, before anything of them changes. Time is that of the monotonic clock, so that a clock which is put
 * right makes nobody's hours more or less; which day it is says the clock of the wall.
 *
 * While this service is away everybody has what he had last: that counts too, for a day at most.
 */
const dayMs = 24 * 3_600_000;
/** What is lost of a crash is counted again from the last record; so seldom is one written where nothing changes. */
const countEveryMs = 5 * 60_000;
const mostAwayMs = dayMs;
/** Half a KiB each in memory, which they share with users: of 50,000 and all these days the service would be too large. */
const [mostUsage, leastUsage] = [32_768, 8_192] as const;
export const roomForUsage = ({ tables }: Pick<TenancyState, "tables">): number =>
  Math.max(leastUsage, mostUsage - Math.floor(tables.user.size / 2));

const keyOf = (day: string, number: string): string => `${day}/${number}`;
const dayOf = (ms: number): string => isoTime(ms).slice(0, 10);

const amountOf = (each: DesiredOwner, key: LimitKey): number => (key === "cells" ? 1 : (each.has?.[key] ?? 0));
const usedOf = ({ uses }: DesiredOwner, key: LimitKey): number => (uses as Limits | undefined)?.[key] ?? 0;
const limitsFrom = (amount: (key: LimitKey) => number): Limits =>
  Object.fromEntries(limitKeys.flatMap((key) => (amount(key) > 0 ? [[key, amount(key)] as const] : [])));

/** What an account has had since it was counted last, in pieces that are each of one day. */
function* since(
  state: TenancyState,
  account: string,
): Generator<{ readonly untilMs: number; readonly amounts: Limits; readonly used: Limits }> {
  const { ms, wallMs } = state.now;
  const cells = [...state.payers.cellsOf(account)];
  const during = (took: number, amount: (each: DesiredOwner, key: LimitKey) => number): Limits =>
    limitsFrom((key) => took * cells.reduce((sum, each) => sum + amount(each, key), 0));
  for (let left = Math.max(0, ms - (state.counted.get(account) ?? ms)), isFirst = true; left > 0 || isFirst; ) {
    isFirst = false;
    const fromMs = wallMs - left;
    const took = Math.min(left, dayMs - (((fromMs % dayMs) + dayMs) % dayMs));
    yield { untilMs: fromMs + took, amounts: during(took, amountOf), used: during(took, usedOf) };
    left -= took;
  }
}
/** The day that a piece is of, which ends with it at the latest. */
const dayUntil = (untilMs: number): string => dayOf(Math.max(0, untilMs - 1));
const sum = (one: Limits, other: Limits): Limits => limitsFrom((key) => (one[key] ?? 0) + (other[key] ?? 0));
/** Where nothing was in use nothing is said of that, as by the version before. */
function together(one: Counted, other: Counted = { amounts: {} }): Counted {
  const used = sum(one.used ?? {}, other.used ?? {});
  return { amounts: sum(one.amounts, other.amounts), ...(Object.keys(used).length === 0 ? {} : { used }) };
}
type Counted = Pick<UsageRecord, "amounts" | "used">;

function count(state: TenancyState, { uid, number, domain }: AccountRecord): void {
  for (const { untilMs, amounts, used } of since(state, uid)) {
    const key = keyOf(dayUntil(untilMs), number);
    const before = state.tables.usage.get(key);
    save(state, "usage", key, {
      number,
      account: accountPath(state, uid),
      domain,
      untilMs,
      ...together({ amounts, used }, before),
    });
  }
  state.counted.set(uid, state.now.ms);
}

/** To be called before a cell is another's, or has another amount: until now it was as before. */
export function countBefore(state: TenancyState, before: DesiredOwner | null, after: DesiredOwner | null): void {
  if (!state.started) return;
  const accounts = [before, after].flatMap((each) => (each === null ? [] : [payerOf(state, each)]));
  for (const uid of new Set(accounts)) {
    const account = state.tables.account.get(uid);
    if (account !== undefined) count(state, account);
  }
}

/** An account is added: cells that were said to be its before are its from now on, and were the operator's until now. */
export function countFrom(state: TenancyState, uid: string, add: () => void): void {
  const operator = state.tables.account.get(operatorUid);
  if (operator !== undefined && state.counted.has(operatorUid)) count(state, operator);
  add();
  const account = state.tables.account.get(uid);
  // Nothing yet, and written: where this service crashes before it counts, it has to know since when.
  if (account !== undefined && state.payers.cellsOf(uid).size > 0) count(state, account);
}

/** At a start: what was counted last was so until now, as long as it is not long ago. */
export function beginCounting(state: TenancyState): void {
  const { ms, wallMs } = state.now;
  state.countedAllMs = ms;
  const last = new Map<string, number>();
  for (const { number, untilMs } of state.tables.usage.values())
    last.set(number, Math.max(untilMs, last.get(number) ?? 0));
  for (const uid of state.payers.all) {
    const untilMs = last.get(state.tables.account.get(uid)?.number ?? "") ?? wallMs;
    state.counted.set(uid, ms - Math.min(mostAwayMs, Math.max(0, wallMs - untilMs)));
  }
}

export function countAll(state: TenancyState): void {
  if (state.now.ms - state.countedAllMs < countEveryMs) return;
  state.countedAllMs = state.now.ms;
  // Those that have cells now; what is said of others is over.
  const having = new Set(state.payers.all);
  for (const uid of having) {
    const account = state.tables.account.get(uid);
    if (account !== undefined) count(state, account);
  }
  for (const uid of [...state.counted.keys()]) if (!having.has(uid)) state.counted.delete(uid);
  trim(state);
}

/** Of the part of the tree that has most, the oldest go first: whoever makes accounts without end forgets his own days alone. */
function trim(state: TenancyState): void {
  const { usage } = state.tables;
  const room = roomForUsage(state);
  if (usage.size <= room) return;
  const parts = Map.groupBy([...usage], ([, { account }]) => account.split("/").slice(0, 2).join("/"));
  for (const days of parts.values()) days.sort(([one], [other]) => (one < other ? 1 : -1));
  while (usage.size > room) {
    const [largest] = [...parts.values()].sort((one, other) => other.length - one.length);
    const [oldest] = largest?.pop() ?? [];
    if (oldest === undefined) return;
    save(state, "usage", oldest, null);
  }
}

// --- who asks for it -----------------------------------------------------------------------------------------------

/** An account that has gone is seen by who administers what it was in. */
function mayRead(
  state: TenancyState,
  actor: Actor,
  { number, domain }: UsageRecord,
  uids: ReadonlyMap<string, string>,
): boolean {
  const account = uids.get(number);
  if (account !== undefined) return reaches(state, actor, { account });
  return actor.user === null || actor.reach === "installation" || reaches(state, actor, { domain });
}

const hoursOf = (amounts: Limits): Limits => limitsFrom((key) => Math.round((amounts[key] ?? 0) / 3600) / 1000);

export function listUsage(state: TenancyState, actor: Actor, query: JsonObject): Result<readonly UsageDay[], Refused> {
  const no = denied(state, actor, "account.read");
  if (no !== null) return fail(no);
  if (!isKept(state))
    return fail(
      refused(
        409,
        "conflict",
        "what accounts have is counted by the root controller, and here there is none: the services are processes",
      ),
    );
  const { wallMs } = state.now;
  const until = typeof query.until === "string" ? query.until : dayOf(wallMs);
  const from =
    typeof query.from === "string"
      ? query.from
      : dayOf((wallMsOf(`${until}T00:00:00`) ?? wallMs) - (usualDays - 1) * dayMs);
  for (const day of [from, until])
    if (wallMsOf(`${day}T00:00:00`) === null)
      return fail(refused(400, "bad-request", `there is no day ${day}: write it as 2026-11-26`));
  if (from > until)
    return fail(refused(400, "bad-request", `from ${from} until ${until} there is no day: say the earlier one first`));
  const path = typeof query.path === "string" ? query.path : "";
  const uids = new Map([...state.tables.account.values()].map(({ uid, number }) => [number, uid]));
  const days = new Map<string, UsageRecord>();
  const take = (record: UsageRecord, day: string): void => {
    if (day < from || day > until || !`${record.account}/`.startsWith(path === "" ? "" : `${path}/`)) return;
    if (!mayRead(state, actor, record, uids)) return;
    const key = keyOf(day, record.number);
    days.set(key, { ...record, ...together(record, days.get(key)) });
  };
  for (const [key, record] of state.tables.usage) take(record, key.split("/")[0] ?? "");
  // And what no record has yet.
  for (const uid of state.counted.keys()) {
    const account = state.tables.account.get(uid);
    if (account === undefined) continue;
    const { number, domain } = account;
    for (const piece of since(state, uid))
      take({ number, account: accountPath(state, uid), domain, ...piece }, dayUntil(piece.untilMs));
  }
  if (days.size > mostDays)
    return fail(
      refused(400, "bad-request", `that is ${days.size} days of accounts: ask for fewer days, or for a domain`),
    );
  return ok(
    [...days]
      .sort(([one, { account }], [other, { account: another }]) => {
        const [first, second] = [`${one.split("/")[0]} ${account}`, `${other.split("/")[0]} ${another}`];
        return first < second ? -1 : first > second ? 1 : one < other ? -1 : 1;
      })
      .map(([key, { account, number, amounts, used = {} }]) => ({
        day: key.split("/")[0] ?? "",
        account,
        number,
        hours: hoursOf(amounts),
        used: hoursOf(used),
      })),
  );
}
