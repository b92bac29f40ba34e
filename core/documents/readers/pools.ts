import { boolean, document, list, nullable, object, optional } from "../../../model/json/reader.ts";
import type { ActualStanding, DesiredPooled, PoolAsked, PooledAs, PoolHostAsked, PoolHostGiven } from "../pools.ts";
import { hostText, most, pathText, sentence, uidText, word } from "./values.ts";

/** Readers of what is said of whole hosts that are somebody's. */
const accounts = list(word, most.authorised);
const pooledAs = object<PooledAs>({
  ...{ uid: uidText, cell: word, path: pathText, name: word, enabled: boolean },
  authorised: accounts,
});
export const desiredPooled = document(
  object<DesiredPooled>({ host: hostText, flavor: word, tag: word, pool: nullable(pooledAs) }),
  { key: { field: "host", of: ({ host }) => host } },
);
export const actualStanding = document(
  object<ActualStanding>({ vms: list(uidText, most.vmsOfHost), tag: nullable(word) }),
);

const hostAsked = object<PoolHostAsked>({
  ...{ uid: uidText, name: word, flavor: word, zone: optional(word), enabled: boolean },
});
export const poolsAsked = list(
  object<PoolAsked>({
    ...{ uid: uidText, path: pathText, authorised: optional(accounts) },
    hosts: list(hostAsked, most.poolHosts),
  }),
  most.poolHosts,
);
export const poolHostsGiven = list(
  object<PoolHostGiven>({ uid: uidText, reason: nullable(sentence), vms: list(uidText, most.vmsOfHost) }),
  most.poolHosts,
);
