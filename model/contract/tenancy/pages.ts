import type { Json, JsonObject } from "../../json/json.ts";
import { fail, ok, type Result } from "../../result.ts";
import { sha256 } from "../audit/sha256.ts";

/*
 * Lists of tenants come in pages, for whoever asks for that. A cursor says behind which item the next page begins, by what the list is in the order
 * of: whatever came or went meanwhile, what is there all the while is in one page, and in one alone. Nothing is kept for it, and it never gets old.
 */

/** Of two times as services write them (ISO 8601, all in one form), or numbers of one length, the later one is before the earlier one. */
const beforeOthers = (written: string): string => written.replace(/\d/g, (digit) => String(9 - Number(digit)));

const toText = (to: Json | undefined): string => canonical(to ?? null);
/** Of each list, what it is in the order of; no two items have the same, but those that say the same of nothing that has a name. */
const orders = {
  listDomains: ({ path }) => `${path}`,
  listAccounts: ({ path }) => `${path}`,
  listUsers: ({ domain, name }) => `${domain}/${name}`,
  listRoles: ({ builtIn, domain, name }) => `${builtIn === true ? 0 : 1} ${domain}/${name}`,
  listKeys: ({ id }) => `${id}`,
  listDelegations: ({ account, uid }) => `${account} ${uid}`,
  listSubscriptions: ({ uid }) => `${uid}`,
  listProviders: ({ name, uid }) => `${name} ${uid}`,
  listInvitations: ({ domain, uid }) => `${domain} ${uid}`,
  listOpenings: ({ domain, uid }) => `${domain} ${uid}`,
  listApplications: ({ domain, name, uid }) => `${domain} ${name} ${uid}`,
  listQuotas: ({ path }) => `${path}`,
  listCells: ({ cell }) => `${cell}`,
  listCredentials: ({ id }) => `${id}`,
  listImages: ({ name }) => `${name}`,
  listElements: ({ uid }) => `${uid}`,
  listAllElements: ({ cell, uid }) => `${cell} ${uid}`,
  // The last that was deleted comes first, as in the whole list.
  listBin: ({ deleted, server, file }) => `${beforeOthers(`${deleted}`)} ${server} ${file}`,
  listOrphans: ({ service }) => `${service}`,
  listBackups: ({ name }) => `${name}`,
  listVolumes: ({ uid }) => `${uid}`,
  listUploads: ({ id }) => `${id}`,
  listFlavors: ({ name }) => `${name}`,
  // Hosts that are dedicated have neither name nor UID for a user.
  listDedications: ({ uid = "", of, level, to }) => `${uid} ${level} ${of ?? ""} ${toText(to)}`,
  // By what stays: a pool and a host in it may get other names.
  listPools: ({ cell, uid }) => `${cell} ${uid}`,
  listPoolHosts: ({ uid }) => `${uid}`,
  // The last change first.
  listVersions: ({ version }) => beforeOthers(`${version}`.padStart(16, "0")),
  listUsage: ({ day, account, number }) => `${day} ${account} ${number}`,
} as const satisfies Readonly<Record<string, (item: JsonObject) => string>>;
export type PagedList = keyof typeof orders;
/** Of these the items are a part of the answer, beside what could not be heard. */
export type PartlyPaged = "listBin" | "listOrphans" | "listBackups" | "listVersions";
export const isPaged = (name: string): name is PagedList => Object.hasOwn(orders, name);

/** Of an answer: the cursor of the next page. */
export const nextHeader = "cells-next";
export const mostOfPage = 1000;
export const longestCursor = 8192;

/** Of what a list shows. */
export interface Tagged {
  /** What `If-Match` of a change may demand (RFC 9110, section 13.1.1). Absent: the list was not asked for in pages. */
  readonly etag?: string;
}
export interface Page {
  readonly items: readonly JsonObject[];
  /** Cursor of the next one; null: there is none. */
  readonly next: string | null;
}
/** The error is a sentence. */
export function pageOf(
  list: PagedList,
  all: readonly JsonObject[],
  { limit = mostOfPage, after }: { readonly limit?: number; readonly after?: string },
): Result<Page, string> {
  const orderOf: (item: JsonObject) => string = orders[list];
  const from = after === undefined ? "" : cursorIn(list, after);
  if (from === null)
    return fail("after in the query: it is no cursor that this list has given; without it the list begins anew");
  const behind = all
    .map(eachOnce(orderOf))
    .filter(({ order }) => order > from)
    .sort((one, other) => (one.order < other.order ? -1 : 1));
  const page = behind.slice(0, limit);
  const last = page.at(-1);
  const isMore = last !== undefined && behind.length > page.length;
  return ok({ items: page.map(({ item }) => item), next: isMore ? cursorOf(list, last.order) : null });
}

/** Of several that say the same each has a number: which of them is which nobody can tell. */
function eachOnce(orderOf: (item: JsonObject) => string) {
  const seen = new Map<string, number>();
  return (item: JsonObject): { readonly item: JsonObject; readonly order: string } => {
    const order = orderOf(item);
    const before = seen.get(order) ?? 0;
    seen.set(order, before + 1);
    return { item, order: before === 0 ? order : `${order} ${String(before).padStart(9, "0")}` };
  };
}

const checkLength = 8;
const checkOf = (list: PagedList, order: string): string => sha256(`${list} ${order}`).slice(0, checkLength);
/** Of a list that is put together elsewhere, by what it is in the order of. */
export const cursorOf = (list: PagedList, order: string): string =>
  checkOf(list, order) + [...order].map((each) => (each.codePointAt(0) ?? 0).toString(16).padStart(6, "0")).join("");
/** Null: it is none of this list. */
export function cursorIn(list: PagedList, cursor: string): string | null {
  const written = cursor.slice(checkLength);
  if (!/^(?:[0-9a-f]{6})+$/.test(written)) return null;
  const points = (written.match(/.{6}/g) ?? []).map((each) => Number.parseInt(each, 16));
  if (points.some((point) => point > 0x10ffff)) return null;
  const order = String.fromCodePoint(...points);
  return cursor === cursorOf(list, order) ? order : null;
}

// --- what an item is now --------------------------------------------------------------------------------------------

/** Each request that changes an item, and the list that shows it. */
const shownIn = {
  changeDomain: "listDomains",
  deleteDomain: "listDomains",
  changeAccount: "listAccounts",
  deleteAccount: "listAccounts",
  changeUser: "listUsers",
  deleteUser: "listUsers",
  linkUser: "listUsers",
  changeRole: "listRoles",
  deleteRole: "listRoles",
  changeKey: "listKeys",
  deleteKey: "listKeys",
  deleteDelegation: "listDelegations",
  deleteProvider: "listProviders",
  deleteInvitation: "listInvitations",
  deleteOpening: "listOpenings",
  approveApplication: "listApplications",
  rejectApplication: "listApplications",
  setQuota: "listQuotas",
} as const satisfies Readonly<Record<string, PagedList>>;
export type Conditional = keyof typeof shownIn;
export const isConditional = (name: string): name is Conditional => Object.hasOwn(shownIn, name);
export const listShowing = (name: Conditional): (typeof shownIn)[Conditional] => shownIn[name];

/** Stands for all that a list shows of an item: it is another one with each change that may be seen, and with no other. */
export const tagOf = ({ etag: _tag, plan: _plan, ...item }: JsonObject): string => sha256(canonical(item)).slice(0, 32);
/** Whatever the order of the fields. */
function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value as JsonObject).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${fields.map(([name, each]) => `${JSON.stringify(name)}:${canonical(each)}`).join(",")}}`;
}

export const ifMatchRule = 'If-Match is one tag as `etag` of a page or the header ETag gave it, such as "0f3c…", or *';
/** The tag of a header If-Match (RFC 9110, section 13.1.1); null: any will do; the error is a sentence. */
export function tagIn(written: string): Result<string | null, string> {
  const text = written.trim();
  if (text === "*") return ok(null);
  const [, tag] = /^"([0-9a-f]{32})"$/.exec(text) ?? [];
  return tag === undefined ? fail(`${ifMatchRule}; it was ${text.slice(0, 80)}`) : ok(tag);
}
