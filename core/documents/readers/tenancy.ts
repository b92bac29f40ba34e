import { groupKinds } from "../../../model/cell/tenants/affinity/affinity.ts";
import { type HostRule, levels, type Owner } from "../../../model/cell/tenants/dedication/dedication.ts";
import { mostMarks, type Properties, readProperties } from "../../../model/cell/tenants/dedication/marks.ts";
import { mostRules, verbPattern, verbPatternRule } from "../../../model/cell/tenants/rules.ts";
import { type Limits, limitKeys } from "../../../model/contract/tenancy/quotas.ts";
import { type Rule, reaches } from "../../../model/contract/tenancy/rules.ts";
import { pathPattern, pathRule, standings } from "../../../model/contract/tenancy/tenancy.ts";
import {
  boolean,
  byKind,
  count,
  document,
  type Fields,
  faultOf,
  list,
  nullable,
  object,
  oneOf,
  optional,
  pattern,
  type Reader,
} from "../../../model/json/reader.ts";
import type {
  ActualDeclared,
  ActualLimits,
  ActualLook,
  DeclaredAccount,
  DeclaredDomain,
  DeclaredRole,
  DesiredCellOwner,
  DesiredDeclared,
  DesiredDedicated,
  DesiredGroup,
  DesiredLimits,
  DesiredLook,
  DesiredMarks,
  DesiredOwner,
} from "../tenancy.ts";
import { cellText, hostText, inUse, pathText, progressFields, uidText, word, yes } from "./values.ts";

/** Readers of what controllers and the service `tenancy` say to each other. */

const rule = object<Rule>({ verb: pattern(verbPattern, verbPatternRule), effect: oneOf("allow", "deny") });
export const accountPath = pattern(pathPattern, pathRule);
/** As many as paths may name, and more than there are of any. */
const mostDomains = 64;

export const desiredLook = document(object<DesiredLook>({ ticket: uidText }), {
  key: { field: "ticket", of: ({ ticket }) => ticket },
});
export const actualLook = document(
  object<ActualLook>({
    open: boolean,
    user: word,
    account: word,
    rules: list(rule, mostRules),
    session: optional(word),
    child: optional(cellText),
  }),
);
const limits = object<Limits>(
  Object.fromEntries(limitKeys.map((key) => [key, optional(count)])) as unknown as Fields<Limits>,
);
export const desiredOwner = document(
  object<DesiredOwner>({
    uid: uidText,
    cell: cellText,
    account: nullable(accountPath),
    ending: yes,
    has: optional(limits),
    uses: optional(inUse),
  }),
  { key: { field: "uid", of: ({ uid }) => uid } },
);

export const desiredLimits = document(
  object<DesiredLimits>({
    uid: word,
    path: accountPath,
    kind: oneOf("account", "domain"),
    limits,
    within: optional(list(word, mostDomains)),
    off: yes,
    ending: yes,
    domainEnds: yes,
  }),
  { key: { field: "uid", of: ({ uid }) => uid } },
);
const declared = { uid: uidText, at: pathText, path: accountPath, tag: word } as const;
const place = { ...declared, state: oneOf(...standings), limits } as const;
export const desiredDeclared = document(
  byKind<DesiredDeclared>({
    domain: object<DeclaredDomain>({ kind: oneOf("domain"), ...place }),
    account: object<DeclaredAccount>({ kind: oneOf("account"), ...place }),
    role: object<DeclaredRole>({
      kind: oneOf("role"),
      ...declared,
      reach: oneOf(...reaches),
      rules: list(rule, mostRules),
      secondFactor: yes,
    }),
  }),
  { key: { field: "uid", of: ({ uid }) => uid } },
);
export const actualDeclared = document(object<ActualDeclared>({ ...progressFields, tag: word }));

export const actualLimits = document(object<ActualLimits>({ granted: limits, left: optional(count) }));

const owner = object<Owner>({ kind: oneOf("domain", "account"), path: accountPath });
export const hostRule = { of: word, level: oneOf(...levels), to: owner } as const satisfies Fields<HostRule>;
export const desiredDedicated = document(
  object<DesiredDedicated>({ host: hostText, epoch: optional(count), ...hostRule }),
  { key: { field: "host", of: ({ host }) => host } },
);
const clusterPath = pattern(/^[a-z0-9-]{1,63}(?:\/[a-z0-9-]{1,63}){2}$/, "names of zone, pod and cluster");
const properties: Reader<Properties> = (json) =>
  readProperties(json) ?? faultOf(json, "texts and whole numbers by names");
export const desiredMarks = document(
  object<DesiredMarks>({
    host: hostText,
    cluster: optional(clusterPath),
    tags: optional(list(word, mostMarks)),
    properties: optional(properties),
  }),
  { key: { field: "host", of: ({ host }) => host } },
);
export const desiredCellOwner = document(
  object<DesiredCellOwner>({ cell: cellText, account: accountPath, uids: optional(list(word, mostDomains + 1)) }),
  { key: { field: "cell", of: ({ cell }) => cell } },
);
export const desiredGroup = document(
  object<DesiredGroup>({ uid: uidText, path: pathText, name: word, kind: oneOf(...groupKinds) }),
  { key: { field: "uid", of: ({ uid }) => uid } },
);
