import {
  type NewProvider,
  type ProviderSummary,
  usualNameClaim,
  usualScopes,
} from "../../../model/contract/tenancy/oidc.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { type Actor, denied } from "../actor.ts";
import { roleFor } from "../people.ts";
import { accountFor } from "../places.ts";
import type { MappingRecord, ProviderRecord } from "../records.ts";
import { noSuch, type Refused, refused } from "../refused.ts";
import { accountPath, roleOf, save, type TenancyState } from "../state.ts";
import { endSessionsOf } from "./logins.ts";

/*
 * Providers of logins. They are the whole installation's: the gateway makes connections to where they say, and a person's subject at an issuer is one
 * user here. What one maps to a role is given by it to whomever it likes, so nobody maps to more than he has.
 */

const mostProviders = 64;

const summary = (state: TenancyState, provider: ProviderRecord): ProviderSummary => {
  const { sealed, authority, mappings, ...told } = provider;
  return {
    ...told,
    mappings: mappings.map(({ claim, value, account, role }) => ({
      claim,
      value,
      account: accountPath(state, account),
      role: roleOf(state, role)?.name ?? "",
    })),
    hasSecret: sealed !== undefined,
    hasAuthority: authority !== undefined,
  };
};

/** Null: the actor may. */
function refusedTo(state: TenancyState, actor: Actor, verb: string): Refused | null {
  const no = denied(state, actor, verb);
  if (no !== null || actor.reach === "installation") return no;
  return refused(403, "forbidden", `providers are the whole installation's: the operator, or a root-admin, does this`);
}

export function listProviders(state: TenancyState, actor: Actor): Result<readonly ProviderSummary[], Refused> {
  const no = refusedTo(state, actor, "provider.read");
  if (no !== null) return fail(no);
  return ok([...state.tables.provider.values()].map((each) => summary(state, each)));
}

export function addProvider(
  state: TenancyState,
  actor: Actor,
  asked: {
    readonly uid: string;
    readonly provider: NewProvider;
    /** Of its client's secret. */
    readonly sealed: string | undefined;
    readonly dryRun: boolean;
  },
): Result<ProviderSummary, Refused> {
  const { uid, provider, sealed, dryRun } = asked;
  const no = refusedTo(state, actor, "provider.add");
  if (no !== null) return fail(no);
  const { name, issuer, clientId, authority, nameClaim = usualNameClaim, scopes = usualScopes } = provider;
  const { hosts = [], redirects = [] } = provider;
  const all = [...state.tables.provider.values()];
  if (all.some((each) => each.name === name))
    return fail(refused(409, "conflict", `there is a provider ${name} already`));
  if (all.length >= mostProviders)
    return fail(refused(409, "conflict", `there are ${mostProviders} providers, and that is the limit`));
  const mappings: MappingRecord[] = [];
  for (const { claim, value, account, role } of provider.mappings) {
    const place = accountFor(state, actor, account, "user.add");
    if (!place.ok) return place;
    const given = roleFor(state, actor, place.value.domain, role);
    if (!given.ok) return given;
    if (given.value.secondFactor === true)
      return fail(
        refused(
          409,
          "conflict",
          `the role ${role} demands a second factor, which a user of a provider has there and not here: map to another role`,
        ),
      );
    mappings.push({ claim, value, account: place.value.uid, role: given.value.uid });
  }
  const record: ProviderRecord = {
    uid,
    name,
    issuer,
    clientId,
    nameClaim,
    scopes,
    hosts,
    redirects,
    mappings,
    ...(sealed === undefined ? {} : { sealed }),
    ...(authority === undefined ? {} : { authority }),
  };
  if (!dryRun) save(state, "provider", uid, record);
  return ok(summary(state, record));
}

export function deleteProvider(
  state: TenancyState,
  actor: Actor,
  { uid, dryRun }: { readonly uid: string; readonly dryRun: boolean },
): Result<ProviderSummary, Refused> {
  const provider = state.tables.provider.get(uid);
  const no = refusedTo(state, actor, "provider.delete");
  if (no !== null) return fail(no);
  if (provider === undefined) return fail(noSuch("provider", uid, "`cells provider list` shows them"));
  const gone = summary(state, provider);
  if (dryRun) return ok(gone);
  save(state, "provider", uid, null);
  const isStill = [...state.tables.provider.values()].some(({ issuer }) => issuer === provider.issuer);
  if (!isStill)
    for (const user of state.tables.user.values())
      if (user.oidc?.issuer === provider.issuer) endSessionsOf(state, user);
  return ok(gone);
}
