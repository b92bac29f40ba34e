import { audit, log } from "../../outbox.ts";
import { dropKeysOf } from "../logins/keys.ts";
import { endSessionsOf } from "../logins/logins.ts";
import { dropInvitationsBy, dropOpening, dropOpeningsOf } from "../logins/openings.ts";
import { cellsByAccount, isKept } from "../owners/owners.ts";
import type { AccountRecord, DomainRecord } from "../records.ts";
import { accountPath, domainPath, save, type TenancyState } from "../state.ts";
import { countSubscriptionsOf, dropSubscriptionsOf } from "../subscriptions/subscriptions.ts";

/*
 * The end of accounts and domains. That one is to end is one durable record; what is to be done next follows from what is still held, so a
 * crash anywhere goes on where it was. Whoever keeps something of accounts is in the list below, and nothing else knows what an account has.
 */
export interface Holder {
  /** What is held of the account, as people read it; empty: nothing. */
  held(state: TenancyState, account: AccountRecord): readonly string[];
  /** Gives it up, or has it given up elsewhere. Called again as long as something is held. */
  giveUp(state: TenancyState, account: AccountRecord): void;
  /** Can nothing more come of it? Absent: it is kept here, and what is not there is gone. */
  isOver?(state: TenancyState, account: AccountRecord): boolean;
}

const usersOf = ({ tables }: TenancyState, { uid }: AccountRecord) =>
  [...tables.user.values()].filter(({ account }) => account === uid);

const mappedTo = ({ tables }: TenancyState, { uid }: AccountRecord) =>
  [...tables.provider.values()].filter(({ mappings }) => mappings.some(({ account }) => account === uid));

/** From it, to it, and to its users. */
const delegationsAbout = (state: TenancyState, account: AccountRecord) => {
  const whose = new Set([account.uid, ...usersOf(state, account).map(({ uid }) => uid)]);
  return [...state.tables.delegation.values()].filter(({ account: from, to }) => whose.has(from) || whose.has(to));
};

/** In this order: nobody makes anything anew who is out, and whoever is asked what is left needs the account's name. */
const holders: readonly Holder[] = [
  {
    held: (state, account) => {
      const users = new Set(usersOf(state, account).map(({ uid }) => uid));
      const count = [...state.tables.session.values()].filter(({ user }) => users.has(user)).length;
      return count === 0 ? [] : [`${count} ${count === 1 ? "session" : "sessions"}`];
    },
    giveUp: (state, account) => {
      for (const user of usersOf(state, account)) endSessionsOf(state, user);
    },
  },
  {
    held: (state, account) => {
      const users = new Set(usersOf(state, account).map(({ uid }) => uid));
      const count = [...state.tables.key.values()].filter(({ user }) => users.has(user)).length;
      return count === 0 ? [] : [`${count} ${count === 1 ? "key" : "keys"}`];
    },
    giveUp: (state, account) => {
      for (const user of usersOf(state, account)) dropKeysOf(state, user);
    },
  },
  {
    held: (state, account) => {
      const count = usersOf(state, account).reduce((sum, user) => sum + countSubscriptionsOf(state, user), 0);
      return count === 0 ? [] : [`${count} ${count === 1 ? "subscription" : "subscriptions"}`];
    },
    giveUp: (state, account) => {
      for (const user of usersOf(state, account)) dropSubscriptionsOf(state, user);
    },
  },
  {
    held: (state, { uid }) => (cellsByAccount(state).get(uid) ?? []).map((cell) => `the cell ${cell}`),
    // The root controller is told with what the account may have (`quotas.ts`), and takes them out of its model.
    giveUp: () => undefined,
    isOver: (state, { uid }) => isLeft(state, uid),
  },
  {
    held: (state, account) => mappedTo(state, account).map(({ name }) => `what the provider ${name} maps to it`),
    giveUp: (state, account) => {
      for (const provider of mappedTo(state, account)) {
        const mappings = provider.mappings.filter((each) => each.account !== account.uid);
        save(state, "provider", provider.uid, { ...provider, mappings });
      }
    },
  },
  {
    held: (state, account) => {
      const count = delegationsAbout(state, account).length;
      return count === 0 ? [] : [`${count} ${count === 1 ? "delegation" : "delegations"}`];
    },
    giveUp: (state, account) => {
      for (const { uid } of delegationsAbout(state, account)) save(state, "delegation", uid, null);
    },
  },
  {
    held: (state, account) => {
      const users = new Set<string | null>(usersOf(state, account).map(({ uid }) => uid));
      const count = [...state.tables.invitation.values()].filter(({ by }) => users.has(by)).length;
      return count === 0 ? [] : [`${count} ${count === 1 ? "invitation" : "invitations"}`];
    },
    giveUp: (state, account) => {
      for (const { uid } of usersOf(state, account)) dropInvitationsBy(state, uid);
    },
  },
  {
    held: (state, account) => usersOf(state, account).map(({ name }) => `the user ${name}`),
    giveUp: (state, account) => {
      for (const { uid } of usersOf(state, account)) save(state, "user", uid, null);
    },
  },
];

/** What goes with an account, in the order in which it goes. */
export const planOf = (state: TenancyState, account: AccountRecord): readonly string[] =>
  holders.flatMap(({ held }) => held(state, account));

/** From now on nobody gets in, and it ends. */
export function beginAccountEnd(state: TenancyState, account: AccountRecord): void {
  save(state, "account", account.uid, { ...account, state: "disabled", deleting: true });
}
export function beginDomainEnd(state: TenancyState, domain: DomainRecord): void {
  save(state, "domain", domain.uid, { ...domain, state: "disabled", deleting: true });
}

/** What a version that knows no such things has left of accounts, users and domains that it deleted. */
export function dropWhatIsNobodys(state: TenancyState): void {
  const { account, user, domain, delegation, provider, invitation, opening } = state.tables;
  for (const { uid, account: from, to } of [...delegation.values()])
    if (!account.has(from) || !(account.has(to) || user.has(to))) save(state, "delegation", uid, null);
  for (const each of [...provider.values()]) {
    const mappings = each.mappings.filter((mapping) => account.has(mapping.account));
    if (mappings.length < each.mappings.length) save(state, "provider", each.uid, { ...each, mappings });
  }
  for (const each of [...opening.values()]) if (!domain.has(each.domain)) dropOpening(state, each.uid);
  for (const each of [...invitation.values()])
    if (!domain.has(each.domain) || !(each.by === null || user.has(each.by))) save(state, "invitation", each.uid, null);
}

/** As far as it goes now. @param isAsked within the request for it, whose record says all */
export function advanceEnds(state: TenancyState, isAsked = false): void {
  // What an older store would end may have been made anew since.
  if (!state.started || state.held !== null) return;
  for (const uid of [...state.ending]) {
    const account = state.tables.account.get(uid);
    if (account !== undefined && holders.every((holder) => isGivenUp(state, holder, account))) {
      const path = accountPath(state, uid);
      save(state, "account", uid, null);
      state.left.delete(uid);
      if (!isAsked) tell(state, "deleteAccount", path, account.domain);
    }
  }
  for (let isNews = true; isNews; ) {
    isNews = false;
    for (const uid of [...state.ending]) {
      const domain = state.tables.domain.get(uid);
      if (domain === undefined || isFilled(state, uid) || !isLeft(state, uid)) continue;
      for (const role of [...state.tables.role.values()]) if (role.domain === uid) save(state, "role", role.uid, null);
      for (const each of [...state.tables.invitation.values()])
        if (each.domain === uid) save(state, "invitation", each.uid, null);
      dropOpeningsOf(state, uid);
      const path = domainPath(state, uid);
      save(state, "domain", uid, null);
      state.left.delete(uid);
      if (!isAsked) tell(state, "deleteDomain", path, domain.parent ?? uid);
      isNews = true;
    }
  }
}

function isGivenUp(state: TenancyState, holder: Holder, account: AccountRecord): boolean {
  if (holder.held(state, account).length > 0) holder.giveUp(state, account);
  return holder.held(state, account).length === 0 && holder.isOver?.(state, account) !== false;
}
/** The root controller has said that no cell of it is left, and no host is dedicated to it; where there is none nobody has. */
const isLeft = (state: TenancyState, uid: string): boolean => !isKept(state) || state.left.get(uid) === 0;
const isFilled = ({ tables }: TenancyState, uid: string): boolean =>
  [...tables.domain.values()].some(({ parent }) => parent === uid) ||
  [...tables.account.values()].some(({ domain }) => domain === uid);

/** The request has its record from when it was accepted; this is of its end. */
function tell(state: TenancyState, verb: string, target: string, within: string): void {
  const actor = { who: "tenancy", door: "tenancy" };
  audit(state.outbox, state.now, {
    ...actor,
    verb,
    target,
    what: "nothing is left",
    outcome: "done",
    within: [within],
  });
  log(state.outbox, "tenancy/changed", { verb, by: "tenancy", target });
}
