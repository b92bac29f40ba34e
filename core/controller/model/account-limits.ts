import type { Cell, CellControllerElement } from "../../../model/cell/cell.ts";
import type { Uid } from "../../../model/cell/identifiers.ts";
import type { Owner } from "../../../model/cell/tenants/dedication/dedication.ts";
import { type Usage, usageKeys } from "../../../model/check/check-limits.ts";
import { type LimitKey, type Limits, limitKeys } from "../../../model/contract/tenancy/quotas.ts";
import type { Diagnostic } from "../../../model/diagnostics/diagnostic.ts";
import type { Json } from "../../../model/json/json.ts";
import { desiredLimits } from "../../documents/readers/tenancy.ts";
import { type DesiredLimits, tenancy } from "../../documents/tenancy.ts";
import { actualKey } from "../../documents/vocabulary.ts";
import { publishValue } from "../../outbox.ts";
import { Granted } from "../changes/granted.ts";
import { TrackedMap, type Tracking } from "../changes/tracked.ts";
import type { ElementRecord } from "../records.ts";
import { takeOver } from "../rules/derived.ts";
import { endingOwners, isEnding, isOwner } from "../services/ending-owners.ts";
import { type PoolAccounts, unitsByChild } from "../services/pools/given.ts";
import { type ControllerState, childRecords } from "../state.ts";
import { accountOf } from "./owners.ts";

/*
 * What all cells of an account may have together, and all accounts of a domain. All of them are children of the root cell, so its controller
 * grants all that there is, one grant after the other: it counts there what it has granted to the cells of an account, and grants nothing by
 * which that would be more than the account, or a domain above it, may have. A limit below what is granted takes nothing away.
 */

export const noLimits = (tracking: Tracking): Pick<ControllerState, "accountLimits" | "accountUids" | "granted"> => ({
  accountLimits: new TrackedMap(tracking),
  accountUids: { byPath: new Map(), pathOf: new Map() },
  granted: new Granted(tracking),
});
export function takeLimits(state: ControllerState, key: string, value: Json): void {
  const uid = key.slice("limits/".length);
  const limits = desiredLimits.of(value, uid);
  noteUids(state, uid, limits);
  const bounds = limits !== null && (Object.keys(limits.limits).length > 0 || limits.off === true || isEnding(limits));
  if (bounds) state.accountLimits.set(uid, limits);
  else state.accountLimits.delete(uid);
}
/** Of each account that has cells its UID is said, and those of its domains, also where nothing bounds it. */
function noteUids({ accountUids: { byPath, pathOf } }: ControllerState, uid: string, said: DesiredLimits | null): void {
  const before = pathOf.get(uid);
  pathOf.delete(uid);
  // Whoever has that path now may have been said before.
  if (before !== undefined && byPath.get(before)?.[0] === uid) byPath.delete(before);
  if (said?.within === undefined) return;
  pathOf.set(uid, said.path);
  byPath.set(said.path, [uid, ...said.within]);
}

/** Of a domain's limit every account below it has a part. */
const covers = ({ path }: DesiredLimits, account: string): boolean =>
  account === path || account.startsWith(`${path}/`);

/** Is the account of this path being deleted? */
export const isAccountEnding = (state: ControllerState, account: string | undefined): boolean =>
  account !== undefined && endingOwners(state).some(({ kind, path }) => kind === "account" && path === account);

/** Is its account, or a domain above it, disabled? Machines of its cells are off then. */
export function isAccountOff(state: ControllerState, record: ElementRecord): boolean {
  const off = [...state.accountLimits.values()].filter((limit) => limit.off === true);
  const account = off.length === 0 ? null : accountOf(state, record);
  return account !== null && off.some((limit) => covers(limit, account));
}

interface Share {
  readonly name: string;
  readonly account: string;
  readonly amount: Limits;
}
/** @param units of whole hosts; undefined: it has none, as one that is made */
const ofCell = (amount: Usage, units = 0): Limits => ({ ...amount, cells: 1, units });

/** What each child was granted that is an account's, those that are ending included. */
function shares(state: ControllerState, isLeftOut: (record: ElementRecord) => boolean = () => false): readonly Share[] {
  const units = unitsByChild(state);
  return childRecords(state).flatMap((record) => {
    const [grant, account] = [state.grants.get(record.uid), accountOf(state, record)];
    if (isLeftOut(record) || grant === undefined || account === null) return [];
    return [{ name: nameOf(record.path), account, amount: ofCell(grant.amount, units.get(record.uid)) }];
  });
}
const nameOf = (path: string): string => path.split("/").at(-1) ?? path;
const sumOf = (limit: DesiredLimits, all: readonly Share[], key: LimitKey): number =>
  all.reduce((sum, { account, amount }) => sum + (covers(limit, account) ? (amount[key] ?? 0) : 0), 0);

const words: Readonly<Record<LimitKey, string>> = {
  vms: "VMs",
  memoryMiB: "MiB of memory",
  cpus: "processors",
  volumes: "volumes",
  storageMiB: "MiB of storage",
  subnets: "subnets",
  addresses: "addresses",
  cells: "cells",
  publicAddresses: "public addresses",
  units: "units of whole hosts",
};

/** Whose limit, how much is held, and by which cells of this account: of others' cells nothing but how much they have together. */
function told(limit: DesiredLimits, key: LimitKey, account: string, others: readonly Share[], more: number): string {
  const own = others.filter((each) => each.account === account && (each.amount[key] ?? 0) > 0);
  const held = sumOf(limit, others, key);
  const names = own.slice(0, named).map(({ name, amount }) => `${name} ${amount[key] ?? 0}`);
  const rest = own.length > named ? ` and ${own.length - named} more cells` : "";
  const by = names.length === 0 ? "" : `, of ${account} by ${names.join(", ")}${rest}`;
  return `the ${limit.kind} ${limit.path} may have ${limit.limits[key]} ${words[key]}; ${held} are held${by}, and ${more} more are asked for`;
}
const named = 5;

/**
 * Why a child must not be granted so much; null: as far as its account goes it may. What it has already it keeps.
 * @param had what was granted to it, or is held by it
 */
export function whyBeyondAccount(
  state: ControllerState,
  record: ElementRecord | undefined,
  amount: Usage,
  had: Usage,
): string | null {
  const account = record === undefined ? null : accountOf(state, record);
  if (account === null || state.accountLimits.size === 0) return null;
  const others = shares(state, (each) => each === record);
  for (const limit of state.accountLimits.values()) {
    if (!covers(limit, account)) continue;
    const over = usageKeys.find((key) => {
      const most = limit.limits[key];
      return most !== undefined && amount[key] > had[key] && sumOf(limit, others, key) + amount[key] > most;
    });
    if (over !== undefined) return told(limit, over, account, others, amount[over]);
  }
  return null;
}

/** Why an account must not have whole hosts of so many more units; null: it may. */
function whyBeyondUnits(state: ControllerState, account: string, units: number): string | null {
  if (state.accountLimits.size === 0) return null;
  const all = shares(state);
  for (const limit of state.accountLimits.values()) {
    const most = limit.limits.units;
    if (most === undefined || !covers(limit, account) || sumOf(limit, all, "units") + units <= most) continue;
    return told(limit, "units", account, all, units);
  }
  return null;
}
/** What pools have to know of accounts. */
export const poolAccounts: PoolAccounts = { accountOf, whyBeyondUnits };

/** What a child has with a new model; `uid` undefined: it is made. */
export interface ChildAfter {
  readonly element: CellControllerElement;
  readonly uid: Uid | undefined;
  readonly amount: Usage;
}
/** Why a model must not give its children what it gives them anew: a cell that is made, or that becomes another account's. */
export function accountLimitFaults(
  state: ControllerState,
  cell: Cell,
  children: readonly ChildAfter[],
): readonly Diagnostic[] {
  if (state.accountLimits.size === 0) return [];
  const late = children.flatMap(({ element: { account, path } }): readonly Diagnostic[] => {
    if (!isAccountEnding(state, account)) return [];
    const message = `\`${path}\` is given to ${account}, which is being deleted`;
    return [{ code: "cell/account", message, hint: "Give it to another account, or leave it out.", path }];
  });
  if (late.length > 0) return late;
  const before = shares(state);
  const units = unitsByChild(state);
  const inModel = children.flatMap(({ element, amount, uid }) =>
    element.account === undefined
      ? []
      : [
          {
            name: nameOf(element.path),
            account: element.account,
            path: element.path,
            amount: ofCell(amount, uid === undefined ? 0 : units.get(uid)),
          },
        ],
  );
  // What leaves the model is held until it has ended.
  const staying = new Set(children.flatMap(({ uid }) => uid ?? []));
  const ending = shares(state, (record) => staying.has(record.uid));
  const after: readonly Share[] = [...inModel, ...ending];
  return [...state.accountLimits.values()].flatMap((limit) =>
    limitKeys.flatMap((key): readonly Diagnostic[] => {
      const most = limit.limits[key];
      const [now, then] = [sumOf(limit, before, key), sumOf(limit, after, key)];
      if (most === undefined || then <= most || then <= now) return [];
      const at = inModel.findLast((each) => covers(limit, each.account));
      const message = told(limit, key, at?.account ?? limit.path, before, then - now);
      const hint =
        "Let cells of it give something back, delete one, or have the limit raised: `cells quota list` shows it.";
      return [{ code: "cell/limits", message, hint, path: at?.path ?? cell.path }];
    }),
  );
}

/**
 * Says to the service `tenancy` what was granted of each limit, where that is another thing than was said last. Only cells of which something is
 * another thing are looked at, and limits of theirs: there may be thousands of both.
 */
export function publishGranted(state: ControllerState): void {
  const { outbox, accountLimits, granted, indexes, pass } = state;
  const prefix = actualKey(tenancy, "limits/");
  if (accountLimits.size > 0) {
    if (pass.isWhole) granted.clear();
    pass.whole("units", () => takeOver(granted.units, unitsByChild(state), (one, other) => one === other));
    pass.each("granted", indexes.children, (_is, child) => granted.part(child, partOf(state, child)));
    pass.each("limits", accountLimits, (limit, uid) => {
      const { sum, own, all } = granted.at(limit.path);
      // Before there is a model nobody knows what would be left; an older store says nothing at all (`reconcile.ts`).
      const isWhole = state.cell !== null;
      const cells = limit.kind === "account" ? own : all - own;
      const left = isEnding(limit) && isWhole ? { left: cells + dedicatedTo(state, limit) } : {};
      publishValue(outbox, `${prefix}${uid}`, { granted: sum, ...left });
    });
  }
  for (const uid of granted.ended) publishValue(outbox, `${prefix}${uid}`, null);
  granted.ended.clear();
}
function partOf(state: ControllerState, child: Uid): Parameters<Granted["part"]>[1] {
  const record = state.elements.get(child);
  const account = record === undefined ? null : accountOf(state, record);
  if (account === null) return null;
  const [grant, units] = [state.grants.get(child), state.granted.units.get(child)];
  return { account, amount: grant === undefined ? null : ofCell(grant.amount, units) };
}
/** What is said of a limit goes with it; a cell that has gone counts no more. */
export function followGranted({ accountLimits, granted, indexes }: ControllerState): void {
  accountLimits.watch((uid, _before, after) => {
    if (after === undefined) granted.ended.add(uid);
    else granted.ended.delete(uid);
  });
  indexes.children.watch((child, _before, after) => void (after === undefined && granted.part(child, null)));
}
/** How many cells there are of whom, those included that have yet to end; of a domain those of all accounts in it. All are looked through once. */
export function cellCounts(state: ControllerState): (owner: Owner) => number {
  const counts = new Map<string, number>();
  for (const record of childRecords(state)) {
    const account = accountOf(state, record);
    if (account !== null) counts.set(account, (counts.get(account) ?? 0) + 1);
  }
  return ({ kind, path }) => {
    if (kind === "account") return counts.get(path) ?? 0;
    let sum = 0;
    for (const [account, count] of counts) if (account.startsWith(`${path}/`)) sum += count;
    return sum;
  };
}

const dedicatedTo = ({ cell }: ControllerState, owner: Owner): number =>
  [...(cell?.elements.values() ?? [])].filter((each) => each.type === "Dedication" && isOwner(owner, each)).length;
