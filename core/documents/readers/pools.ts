import { groupKinds } from "../../../model/cell/tenants/affinity/affinity.ts";
import { implicitModes } from "../../../model/cell/tenants/dedication/implicit.ts";
import { fills } from "../../../model/cell/tenants/pools/attributes.ts";
import { mostAllowed } from "../../../model/cell/tenants/pools/offerings.ts";
import { boolean, count, document, list, nullable, object, oneOf, optional } from "../../../model/json/reader.ts";
import type {
  ActualCellOwner,
  ActualClaim,
  ActualStanding,
  DesiredClaim,
  DesiredPooled,
  PlacedGroup,
  PlacedTerms,
  PoolAsked,
  PooledAs,
  PoolHostAsked,
  PoolHostGiven,
} from "../pools.ts";
import { accountPath, hostRule } from "./tenancy.ts";
import { bootImage, cellText, hostText, most, pathText, sentence, uidText, word, yes } from "./values.ts";

/** Readers of what is said of whole hosts that are somebody's. */
const wishes = {
  cpuRatio: optional(count),
  memoryPercent: optional(count),
  fill: optional(oneOf(...fills)),
  offerings: optional(list(word, mostAllowed)),
  images: optional(list(bootImage, mostAllowed)),
} as const;
const accounts = list(word, most.authorised);
const pooledAs = object<PooledAs>({
  uid: uidText,
  cell: word,
  path: pathText,
  name: word,
  enabled: boolean,
  authorised: accounts,
  ...wishes,
});
export const desiredPooled = document(
  object<DesiredPooled>({
    host: hostText,
    flavor: word,
    tag: word,
    epoch: optional(count),
    pool: nullable(pooledAs),
  }),
  { key: { field: "host", of: ({ host }) => host } },
);
const claimed = object<NonNullable<DesiredClaim["pooled"]>>({ flavor: word, pool: nullable(pooledAs) });
export const desiredClaim = document(
  object<DesiredClaim>({
    host: hostText,
    epoch: count,
    rule: nullable(object(hostRule)),
    pooled: nullable(claimed),
  }),
  { key: { field: "host", of: ({ host }) => host } },
);
export const actualClaim = document(object<ActualClaim>({ epoch: count }));
export const actualCellOwner = document(object<ActualCellOwner>({ cell: cellText, account: nullable(accountPath) }), {
  key: { field: "cell", of: ({ cell }) => cell },
});
const placedGroup = object<PlacedGroup>({ name: word, kind: nullable(oneOf(...groupKinds)) });
export const placedTerms = object<PlacedTerms>({
  implicit: optional(oneOf(...implicitModes)),
  groups: optional(list(placedGroup, most.groups)),
  pool: optional(uidText),
  owned: yes,
  claim: optional(count),
});
export const actualStanding = document(
  object<ActualStanding>({ vms: list(uidText, most.vmsOfHost), tag: nullable(word) }),
);

const hostAsked = object<PoolHostAsked>({
  uid: uidText,
  name: word,
  flavor: word,
  zone: optional(word),
  enabled: boolean,
});
export const poolsAsked = list(
  object<PoolAsked>({
    uid: uidText,
    path: pathText,
    authorised: optional(accounts),
    hosts: list(hostAsked, most.poolHosts),
    ...wishes,
  }),
  most.poolHosts,
);
export const poolHostsGiven = list(
  object<PoolHostGiven>({ uid: uidText, reason: nullable(sentence), vms: list(uidText, most.vmsOfHost) }),
  most.poolHosts,
);
