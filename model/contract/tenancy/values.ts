import { longestVerb, mostRules, verbPattern, verbPatternRule } from "../../cell/tenants/rules.ts";
import {
  boolean,
  dictionary,
  type Fields,
  integer,
  list,
  nullable,
  number,
  oneOf,
  optional,
  pattern,
  record,
  type Schema,
  text,
} from "../schema.ts";
import * as oidc from "./oidc.ts";
import { type Limits, limitKeys, mostOfLimit, type QuotaChange, type QuotaSummary } from "./quotas.ts";
import { type Rule, reaches } from "./rules.ts";
import * as tenancy from "./tenancy.ts";
import { dayPattern, dayRule, type UsageDay } from "./usage.ts";

/* What requests and answers about tenants carry: a schema for each interface of `tenancy.ts` and `oidc.ts` beside this. */

const state = oneOf(...tenancy.standings);
const reach = oneOf(...reaches);
const path = pattern(tenancy.pathPattern, tenancy.pathRule);
const name = pattern(tenancy.namePattern, tenancy.nameRule);
const userName = pattern(tenancy.userPattern, tenancy.userRule);
/** How long it must be at least is said where it is set. */
const password = text(tenancy.passwordLength.most);
const verb = pattern(verbPattern, verbPatternRule);
const effect = oneOf("allow", "deny");
const rules: Schema<readonly Rule[]> = { ...list(record<Rule>({ verb, effect })), maxItems: mostRules };
/** Of whoever makes some: what is there may be of a version before, which bounded no verb. */
const newRules: Schema<readonly Rule[]> = {
  ...list(record<Rule>({ verb: { ...verb, maxLength: longestVerb }, effect })),
  maxItems: mostRules,
};

const tagged = { etag: optional(text()) };
const ending = { ...tagged, deleting: optional(boolean), plan: optional(list(text())), declared: optional(text()) };
export const domainSummary = record<tenancy.DomainSummary>({ uid: text(), path: text(), state, ...ending }, "Domain");
export const accountSummary = record<tenancy.AccountSummary>(
  { uid: text(), path: text(), number: text(), state, cells: list(text()), ...ending },
  "Account",
);
export const userSummary = record<tenancy.UserSummary>(
  {
    ...tagged,
    uid: text(),
    name: text(),
    domain: text(),
    account: text(),
    role: text(),
    state,
    hasPassword: boolean,
    hasSecondFactor: boolean,
  },
  "User",
);
export const roleSummary = record<tenancy.RoleSummary>(
  {
    ...tagged,
    uid: text(),
    name: text(),
    domain: text(),
    reach,
    rules,
    secondFactor: boolean,
    builtIn: boolean,
    declared: optional(text()),
  },
  "Role",
);
export const newDomain = record<tenancy.NewDomain>({ path });
export const newAccount = record<tenancy.NewAccount>({ path });
export const stateChange = record<tenancy.StateChange>({ state });
export const newUser = record<tenancy.NewUser>({
  name: userName,
  account: path,
  role: name,
  password: optional(password),
});
export const userChange = record<tenancy.UserChange>({
  state: optional(state),
  role: optional(name),
  password: optional(password),
  totp: optional(oneOf("off")),
});
export const newRole = record<tenancy.NewRole>({
  name,
  domain: path,
  reach,
  rules: newRules,
  secondFactor: optional(boolean),
});
export const roleChange = record<tenancy.RoleChange>({ rules: newRules });
export const ownerChange = record<tenancy.OwnerChange>({ account: path });
export const cellOwner = record<tenancy.CellOwner>({ cell: text(), account: text() });
const code = text(tenancy.longestCode);
export const loginRequest = record<tenancy.LoginRequest>({
  user: userName,
  domain: optional(path),
  password,
  code: optional(code),
});
export const madeLink = record<tenancy.MadeLink>({ link: text(), user: text(), expires: text() });
export const newRecovery = record<tenancy.NewRecovery>({ name: userName });
export const firstPassword = record<tenancy.FirstPassword>({ link: text(160), password });
export const newTotp = record<tenancy.NewTotp>({ password });
export const madeTotp = record<tenancy.MadeTotp>({ secret: text(), uri: text() });
export const totpCode = record<tenancy.TotpCode>({ code });
export const recoveryCodes = record<tenancy.RecoveryCodes>({ recoveryCodes: list(text()) });
export const totpOff = record<tenancy.TotpOff>({ password, code });
export const ownPassword = record<tenancy.OwnPassword>({ password, newPassword: password });
export const newDelegation = record<tenancy.NewDelegation>({
  account: path,
  cells: optional(list(text(253), { least: 1, most: tenancy.mostDelegatedCells })),
  to: text(2200),
  role: name,
});
export const delegationSummary = record<tenancy.DelegationSummary>(
  { ...tagged, uid: text(), account: text(), cells: list(text()), to: text(), role: text() },
  "Delegation",
);
const keyState = oneOf(...tenancy.keyStates);
export const keySummary = record<tenancy.KeySummary>(
  { ...tagged, id: text(), user: text(), state: keyState, note: text(), made: text(), used: nullable(text()) },
  "Key",
);
export const newKey = record<tenancy.NewKey>({ user: optional(text(128)), note: optional(text(tenancy.longestNote)) });
export const madeKey = record<tenancy.MadeKey>({ key: keySummary, secret: text() });
export const keyChange = record<tenancy.KeyChange>({ state: keyState });
export const login = record<tenancy.Login>({ session: text(), user: userSummary, expires: text() }, "Login");
export const whoAmI = record<tenancy.WhoAmI>({
  user: nullable(userSummary),
  reach,
  rules,
  expires: nullable(text()),
  domains: optional(dictionary(text())),
});
export const canAnswer = record<tenancy.CanAnswer>({ allowed: boolean, because: text() });

const limits = record<Limits>(
  Object.fromEntries(limitKeys.map((key) => [key, optional(integer(0, mostOfLimit))])) as unknown as Fields<Limits>,
);
const hours = record<Limits>(
  Object.fromEntries(limitKeys.map((key) => [key, optional(number)])) as unknown as Fields<Limits>,
);
export const quotaSummary = record<QuotaSummary>(
  { ...tagged, uid: text(), path: text(), kind: oneOf("account", "domain"), limits, granted: nullable(limits) },
  "Quota",
);
export const usageDay = record<UsageDay>(
  { day: pattern(dayPattern, dayRule), account: text(), number: text(), hours, used: optional(hours) },
  "UsageDay",
);
export const newInvitation = record<tenancy.NewInvitation>({
  domain: path,
  role: optional(name),
  limits: optional(limits),
  days: optional(integer(1, 90)),
});
export const invitationSummary = record<tenancy.InvitationSummary>(
  { ...tagged, uid: text(), domain: text(), role: text(), limits, by: text(), expires: text() },
  "Invitation",
);
export const madeInvitation = record<tenancy.MadeInvitation>({ invitation: invitationSummary, link: text() });
export const newRegistration = record<tenancy.NewRegistration>({ link: text(160), name, password });
const emailDomain = pattern(tenancy.emailDomainPattern, tenancy.emailDomainRule);
export const newOpening = record<tenancy.NewOpening>({
  domain: path,
  email: emailDomain,
  role: optional(name),
  limits: optional(limits),
});
export const openingSummary = record<tenancy.OpeningSummary>(
  { ...tagged, uid: text(), domain: text(), email: text(), role: text(), limits },
  "Opening",
);
export const newApplication = record<tenancy.NewApplication>({
  domain: path,
  email: pattern(tenancy.emailPattern, tenancy.emailRule),
  name,
  password,
});
export const madeApplication = record<tenancy.MadeApplication>({ application: text(), expires: text() });
export const applicationSummary = record<tenancy.ApplicationSummary>(
  {
    ...tagged,
    uid: text(),
    domain: text(),
    name: text(),
    email: text(),
    role: text(),
    limits,
    source: text(),
    expires: text(),
  },
  "Application",
);
export const approval = record<tenancy.Approval>({ name: optional(name) });
export const quotaChange = record<QuotaChange>({ limits });

const claim = pattern(oidc.claimPattern, oidc.claimRule);
const mapping = record<oidc.ProviderMapping>({ claim, value: text(256), account: path, role: name });
const issuer = { ...pattern(oidc.issuerPattern, oidc.issuerRule), maxLength: 512 };
const scopes = list(pattern(oidc.scopePattern, oidc.scopeRule), { most: 16 });
const hosts = list({ ...pattern(oidc.hostPattern, oidc.hostRule), maxLength: 260 }, { most: 8 });
const redirects = list({ ...pattern(oidc.redirectPattern, oidc.redirectRule), maxLength: 512 }, { most: 16 });
const mappings = list(mapping, { least: 1, most: 256 });
export const newProvider = record<oidc.NewProvider>({
  name,
  issuer,
  clientId: text(256),
  clientSecret: optional(text(1024)),
  nameClaim: optional(claim),
  scopes: optional(scopes),
  authority: optional(text(65_536)),
  hosts: optional(hosts),
  redirects: optional(redirects),
  mappings,
});
export const providerSummary = record<oidc.ProviderSummary>(
  {
    ...tagged,
    uid: text(),
    name: text(),
    issuer: text(),
    clientId: text(),
    nameClaim: text(),
    scopes: list(text()),
    hosts: list(text()),
    redirects: list(text()),
    mappings,
    hasSecret: boolean,
    hasAuthority: boolean,
  },
  "Provider",
);
export const newDeviceLogin = record<oidc.NewDeviceLogin>({ provider: optional(name) });
export const deviceLogin = record<oidc.DeviceLogin>({
  login: text(),
  provider: text(),
  userCode: text(),
  verificationUri: text(),
  verificationUriComplete: nullable(text()),
  intervalS: integer(1),
  expires: text(),
});
export const newPageLogin = record<oidc.NewPageLogin>({ provider: optional(name), redirect: text(512) });
export const pageLogin = record<oidc.PageLogin>({
  login: text(),
  provider: text(),
  authorizationUri: text(),
  expires: text(),
});
export const oidcEnd = record<oidc.OidcEnd>({ login: text(128), answer: optional(text(8192)) });
