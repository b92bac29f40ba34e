import { audited } from "../audit/query.ts";
import { auditView } from "../audit/values.ts";
import { gives, may, must, type Route, route, sends, several } from "../route.ts";
import { boolean, pattern, record, text } from "../schema.ts";
import { givesPages, paged } from "./paged.ts";
import * as subscriptions from "./subscriptions.ts";
import { dayPattern, dayRule } from "./usage.ts";
import * as tenancy from "./values.ts";

/* The rows of the table of routes (`../routes.ts`) about users, and what they may: the service `tenancy` answers them, behind the gateway. */

/** A change of what a list shows. */
const ifMatch = {
  "If-Match": {
    schema: text(),
    doc: "`etag` of what is changed, in quotes, as a page or an `ETag` gave it: refused with 412 `version-mismatch` where it is another one now; `*`: as long as it is there.",
  },
};
const dryRun = may(boolean, "Says what would be, and changes nothing.");
const day = pattern(dayPattern, dayRule);
/** Names of more than a hundred cells, which may be given several times. */
const longestList = 8192;
const cellsLost = several(
  text(longestList),
  "Cell that ends with it and whose data is lost. It may be given several times, or as a list with commas, each of at most 8192 characters.",
);

export const tenantRoutes = {
  logIn: route("POST /logins", "anyone", "gateway", {
    doc: "A session for a user, as a bearer credential. This is its only appearance.",
    more: "Refused with 401 `login` for an unknown user and for a wrong password alike, 401 `second-factor` where a code is needed beside the password, or is wrong, 429 where too many have failed, and 503 where too many wait, both with `Retry-After`.",
    body: sends(tenancy.loginRequest),
    answer: gives(tenancy.login, 201),
  }),
  logInSigned: route("POST /logins/signed", "anyone", "gateway", {
    doc: "A session for the user of an access key, which has signed this request by AWS Signature Version 4.",
    more: "The header `Authorization`, or the query, has the signature; `host`, `x-amz-date` and all other `x-amz-` headers are signed. Region and service of the scope are free. The request counts for five minutes before and after it was signed. Refused with 401 for an unknown key and for a wrong signature alike.",
    answer: gives(tenancy.login, 201),
  }),
  beginDeviceLogin: route("POST /logins/oidc/device", "anyone", "gateway", {
    doc: "Begins a login by a provider of OpenID Connect, for a client without a browser: somebody opens the address on any device and says yes.",
    more: "Refused with 404 where no provider has that name, with 502 `provider` where it does not answer, and with 503 where too many wait.",
    body: sends(tenancy.newDeviceLogin),
    answer: gives(tenancy.deviceLogin, 201),
  }),
  beginPageLogin: route("POST /logins/oidc/page", "anyone", "gateway", {
    doc: "Begins a login by a provider of OpenID Connect, for a page: it sends its browser there (authorization code with PKCE).",
    more: "Refused as `POST /logins/oidc/device` is, and with 400 where the provider's document does not name that `redirect`.",
    body: sends(tenancy.newPageLogin),
    answer: gives(tenancy.pageLogin, 201),
  }),
  endOidcLogin: route("POST /logins/oidc", "anyone", "gateway", {
    doc: "The session of a login that one of the two requests before has begun.",
    more: "Refused with 409 `oidc-pending` and `Retry-After` where nobody has said yes yet, with 401 `oidc` where what the provider says does not count, and with 403 `oidc-unmapped` where its claims make nobody a user here.",
    body: sends(tenancy.oidcEnd),
    answer: gives(tenancy.login, 201),
  }),
  logOutByProvider: route("POST /logins/oidc/logout", "anyone", "gateway", {
    doc: "A provider says that somebody has logged out there (OpenID Connect Back-Channel Logout 1.0): his sessions that were begun by it end, within a second.",
    more: "The body is a form with `logout_token`, which the provider has signed for its client here; `sid` ends that one session, `sub` alone all. Refused with 400 for a token that does not count, and for one that was shown before; 200 also where nobody was in.",
    body: { types: ["application/x-www-form-urlencoded"], schema: null },
    answer: gives(record<Record<never, never>>({})),
  }),
  logOut: route("DELETE /logins/current", "tenant", "gateway", {
    doc: "Ends the session, and what was opened with it.",
    answer: gives(record<Record<never, never>>({})),
  }),
  whoAmI: route("GET /whoami", "tenant", "gateway", {
    doc: "Who asks, and what the role allows.",
    answer: gives(tenancy.whoAmI),
  }),
  changeOwnPassword: route("PUT /whoami/password", "tenant", "gateway", {
    doc: "Another password for the user himself, by the one that he has. His other sessions end.",
    more: "Refused with 403 where the present one is not right, and with 429 and 503 as a login.",
    body: sends(tenancy.ownPassword),
    answer: gives(tenancy.userSummary),
  }),
  beginTotp: route("POST /whoami/totp", "tenant", "gateway", {
    doc: "Begins a second factor for the user himself: codes by time (RFC 6238). It counts once a first code has confirmed it.",
    more: "Refused with 403 where the password is not right, and with 429 and 503 as a login.",
    body: sends(tenancy.newTotp),
    answer: gives(tenancy.madeTotp, 201),
  }),
  confirmTotp: route("PUT /whoami/totp", "tenant", "gateway", {
    doc: "Confirms it by a first code; his other sessions end, and from then on a login needs a code. Gives recovery codes.",
    more: "Refused with 401 for a wrong code, and with 429 where too many were wrong.",
    body: sends(tenancy.totpCode),
    answer: gives(tenancy.recoveryCodes),
  }),
  endTotp: route("POST /whoami/totp/off", "tenant", "gateway", {
    doc: "Takes it away again, by the password and a code.",
    body: sends(tenancy.totpOff),
    answer: gives(tenancy.userSummary),
  }),
  can: route("GET /can", "tenant", "gateway", {
    doc: "Whether a user may do something, and which rule decides.",
    query: {
      user: must(text(64), "Its name."),
      domain: must(text(2048), "Path of the domain that it logs in to."),
      verb: must(text(256), "As rules name it: `cell.change`."),
      path: must(text(4096), "Path in a cell, or of an account: `shop/web/vm`, `ROOT/acme/dev`."),
    },
    answer: gives(tenancy.canAnswer),
  }),
  listDomains: route("GET /domains", "tenant", "gateway", {
    doc: "Domains that the asker may see, by their paths.",
    query: paged,
    answer: givesPages(tenancy.domainSummary),
  }),
  addDomain: route("POST /domains", "tenant", "gateway", {
    doc: "A new domain below another.",
    query: { dryRun },
    body: sends(tenancy.newDomain),
    answer: gives(tenancy.domainSummary),
  }),
  changeDomain: route("PUT /domains/{uid}", "tenant", "gateway", {
    doc: "Enables, locks or disables all that is in it.",
    query: { dryRun },
    headers: ifMatch,
    body: sends(tenancy.stateChange),
    answer: gives(tenancy.domainSummary),
  }),
  deleteDomain: route("DELETE /domains/{uid}", "tenant", "gateway", {
    doc: "Deletes a domain that has nothing in it; or, with `cleanup`, with all that is in it. `plan` says what goes, in its order.",
    query: {
      dryRun,
      cleanup: may(boolean, "Its accounts and domains are deleted from below."),
      allowDestroy: cellsLost,
    },
    headers: ifMatch,
    answer: gives(tenancy.domainSummary),
  }),
  listAccounts: route("GET /accounts", "tenant", "gateway", {
    doc: "Accounts that the asker may see, by their paths, with their cells.",
    query: paged,
    answer: givesPages(tenancy.accountSummary),
  }),
  addAccount: route("POST /accounts", "tenant", "gateway", {
    doc: "A new account in a domain.",
    query: { dryRun },
    body: sends(tenancy.newAccount),
    answer: gives(tenancy.accountSummary),
  }),
  changeAccount: route("PUT /accounts/{uid}", "tenant", "gateway", {
    doc: "Enables, locks or disables it with all its users.",
    query: { dryRun },
    headers: ifMatch,
    body: sends(tenancy.stateChange),
    answer: gives(tenancy.accountSummary),
  }),
  deleteAccount: route("DELETE /accounts/{uid}", "tenant", "gateway", {
    doc: "Deletes an account with its sessions, cells and users. `plan` says what goes, in its order; it is `deleting` until nothing is left.",
    more: "Refused with 409 `change/destroys-data` unless `allowDestroy` names each of its cells, and with 409 `conflict` where it has cells and there is no root controller, which ends them.",
    query: { dryRun, allowDestroy: cellsLost },
    headers: ifMatch,
    answer: gives(tenancy.accountSummary),
  }),
  listUsers: route("GET /users", "tenant", "gateway", {
    doc: "Users that the asker may see; without the right to that, himself.",
    query: paged,
    answer: givesPages(tenancy.userSummary),
  }),
  addUser: route("POST /users", "tenant", "gateway", {
    doc: "A new user of an account, with a role that is no more than the asker's.",
    query: { dryRun },
    body: sends(tenancy.newUser),
    answer: gives(tenancy.userSummary),
  }),
  changeUser: route("PUT /users/{uid}", "tenant", "gateway", {
    doc: "Gives a user another state, role or password. Who is disabled, or has another password, is out within a second.",
    query: { dryRun },
    headers: ifMatch,
    body: sends(tenancy.userChange),
    answer: gives(tenancy.userSummary),
  }),
  deleteUser: route("DELETE /users/{uid}", "tenant", "gateway", {
    doc: "Deletes a user, who is out within a second.",
    query: { dryRun },
    headers: ifMatch,
    answer: gives(tenancy.userSummary),
  }),
  linkUser: route("POST /users/{uid}/link", "tenant", "gateway", {
    doc: "A link by which a user gives himself his first password, or another: it opens once, for 24 h, and takes the place of the one before.",
    headers: ifMatch,
    answer: gives(tenancy.madeLink, 201),
  }),
  recoverAdmin: route("POST /recoveries", "operator", "gateway", {
    doc: "The operator's way back in: a user of `ROOT`, who is made or has been there, is an enabled root administrator, and has a link for a password.",
    more: "What opened as him before opens nothing: password, second factor, provider of logins, keys and sessions. It goes also while the store of `tenancy` is older than it was. Refused with 409 `conflict` where his account is not enabled.",
    body: sends(tenancy.newRecovery),
    answer: gives(tenancy.madeLink, 201),
  }),
  setFirstPassword: route("POST /passwords", "anyone", "gateway", {
    doc: "A password for the user of such a link. His sessions end.",
    more: "Refused with 401 for a link that opens nothing.",
    body: sends(tenancy.firstPassword),
    answer: gives(tenancy.userSummary),
  }),
  listInvitations: route("GET /invitations", "tenant", "gateway", {
    doc: "Invitations to domains of the asker that nobody has used yet.",
    query: paged,
    answer: givesPages(tenancy.invitationSummary),
  }),
  addInvitation: route("POST /invitations", "tenant", "gateway", {
    doc: "A link by which somebody makes himself an account in a domain, and is its first user: it opens once.",
    more: "What he gets is given by the asker when the link is used, and no more than he has then.",
    body: sends(tenancy.newInvitation),
    answer: gives(tenancy.madeInvitation, 201),
  }),
  deleteInvitation: route("DELETE /invitations/{uid}", "tenant", "gateway", {
    doc: "Takes an invitation back.",
    query: { dryRun },
    headers: ifMatch,
    answer: gives(tenancy.invitationSummary),
  }),
  register: route("POST /registrations", "anyone", "gateway", {
    doc: "An account and its first user, of the same name, by an invitation.",
    more: "Refused with 401 `login` for a link that opens nothing, with 409 for a name that is taken, and with 503 as a login.",
    body: sends(tenancy.newRegistration),
    answer: gives(tenancy.userSummary, 201),
  }),
  listOpenings: route("GET /openings", "tenant", "gateway", {
    doc: "Domains of the asker that take applications, and of whom.",
    query: paged,
    answer: givesPages(tenancy.openingSummary),
  }),
  addOpening: route("POST /openings", "tenant", "gateway", {
    doc: "Opens a domain to who has an address of e-mail there: he applies, and is let in by an administrator's word.",
    query: { dryRun },
    body: sends(tenancy.newOpening),
    answer: gives(tenancy.openingSummary),
  }),
  deleteOpening: route("DELETE /openings/{uid}", "tenant", "gateway", {
    doc: "Closes it again; who waits for it waits for nothing any more.",
    query: { dryRun },
    headers: ifMatch,
    answer: gives(tenancy.openingSummary),
  }),
  apply: route("POST /applications", "anyone", "gateway", {
    doc: "Applies for an account of a name in a domain that is open to the address. It waits for 30 days.",
    more: "Refused with 403 `registration-closed` for a domain that is not open to it and for one that nobody has alike, and with 503 and `Retry-After` where as many wait as may. That a name is taken sees who approves.",
    body: sends(tenancy.newApplication),
    answer: gives(tenancy.madeApplication, 201),
  }),
  listApplications: route("GET /applications", "tenant", "gateway", {
    doc: "Who waits to be let in to domains of the asker.",
    query: paged,
    answer: givesPages(tenancy.applicationSummary),
  }),
  approveApplication: route("PUT /applications/{uid}", "tenant", "gateway", {
    doc: "Makes the account and its first user, with what the domain's opening says, and no more than the asker has.",
    query: { dryRun },
    headers: ifMatch,
    body: sends(tenancy.approval),
    answer: gives(tenancy.userSummary),
  }),
  rejectApplication: route("DELETE /applications/{uid}", "tenant", "gateway", {
    doc: "Rejects one. Who applied is not told: he never gets in.",
    query: { dryRun },
    headers: ifMatch,
    answer: gives(tenancy.applicationSummary),
  }),
  listRoles: route("GET /roles", "tenant", "gateway", {
    doc: "Roles that the asker may see, those of every installation first.",
    query: paged,
    answer: givesPages(tenancy.roleSummary),
  }),
  addRole: route("POST /roles", "tenant", "gateway", {
    doc: "A new role of a domain. Its rules are looked at in their order: the first that has a verb decides.",
    query: { dryRun },
    body: sends(tenancy.newRole),
    answer: gives(tenancy.roleSummary),
  }),
  changeRole: route("PUT /roles/{uid}", "tenant", "gateway", {
    doc: "Gives a role other rules. They count within a second.",
    query: { dryRun },
    headers: ifMatch,
    body: sends(tenancy.roleChange),
    answer: gives(tenancy.roleSummary),
  }),
  deleteRole: route("DELETE /roles/{uid}", "tenant", "gateway", {
    doc: "Deletes a role that nobody has.",
    query: { dryRun },
    headers: ifMatch,
    answer: gives(tenancy.roleSummary),
  }),
  listKeys: route("GET /keys", "tenant", "gateway", {
    doc: "Access keys of the asker, and those of others that he may see.",
    query: paged,
    answer: givesPages(tenancy.keySummary),
  }),
  addKey: route("POST /keys", "tenant", "gateway", {
    doc: "A new access key, of the asker or of another user. The secret is in this answer and nowhere else.",
    more: "A session that was itself begun by a key makes none: whoever has taken a key would keep what he has when that is deleted.",
    body: sends(tenancy.newKey),
    answer: gives(tenancy.madeKey, 201),
  }),
  changeKey: route("PUT /keys/{key}", "tenant", "gateway", {
    doc: "Disables or enables an access key. Sessions that a disabled one has begun end within a second.",
    query: { dryRun },
    headers: ifMatch,
    body: sends(tenancy.keyChange),
    answer: gives(tenancy.keySummary),
  }),
  deleteKey: route("DELETE /keys/{key}", "tenant", "gateway", {
    doc: "Deletes an access key. Sessions that it has begun end within a second.",
    query: { dryRun },
    headers: ifMatch,
    answer: gives(tenancy.keySummary),
  }),
  listDelegations: route("GET /delegations", "tenant", "gateway", {
    doc: "Roles on cells that accounts of the asker give others, and that others give him or his account.",
    query: paged,
    answer: givesPages(tenancy.delegationSummary),
  }),
  addDelegation: route("POST /delegations", "tenant", "gateway", {
    doc: "Gives another account, or one user, a role on cells of an account. The role is no more than the asker's; whoever has it makes and ends no cells, and makes no credentials.",
    query: { dryRun },
    body: sends(tenancy.newDelegation),
    answer: gives(tenancy.delegationSummary),
  }),
  deleteDelegation: route("DELETE /delegations/{uid}", "tenant", "gateway", {
    doc: "Takes one back, or gives it up: it counts no more within a second, and what was opened by it ends.",
    query: { dryRun },
    headers: ifMatch,
    answer: gives(tenancy.delegationSummary),
  }),
  listSubscriptions: route("GET /subscriptions", "tenant", "gateway", {
    doc: "Which URLs are told of cells: the asker's own, and those of others that he may see (`subscription.read`).",
    query: paged,
    answer: givesPages(subscriptions.subscriptionSummary),
  }),
  addSubscription: route("POST /subscriptions", "tenant", "gateway", {
    doc: "Has a URL told what becomes of cells, for as long as the asker may read them. The first notice is a test.",
    more: 'Each notice is a `POST` of JSON with `Cells-Signature: t=<seconds>,v1=<HMAC-SHA-256 of "<t>.<body>">`. What is not answered by 2xx is tried again for a day, from 1 s on at growing intervals; a redirect is not followed. A session that was begun by a key makes none.',
    query: { dryRun },
    body: sends(subscriptions.newSubscription),
    answer: gives(subscriptions.subscriptionSummary),
  }),
  changeSubscription: route("PUT /subscriptions/{uid}", "tenant", "gateway", {
    doc: "Has another URL told, of other cells, or of other events. With another URL the secret is said anew, and what waited is dropped.",
    query: { dryRun },
    body: sends(subscriptions.subscriptionChange),
    answer: gives(subscriptions.subscriptionSummary),
  }),
  deleteSubscription: route("DELETE /subscriptions/{uid}", "tenant", "gateway", {
    doc: "Ends one: nothing more is posted.",
    query: { dryRun },
    answer: gives(subscriptions.subscriptionSummary),
  }),
  listProviders: route("GET /providers", "tenant", "gateway", {
    doc: "Providers of OpenID Connect by which people log in.",
    query: paged,
    answer: givesPages(tenancy.providerSummary),
  }),
  addProvider: route("POST /providers", "tenant", "gateway", {
    doc: "A provider, and which of its claims make somebody a user of which account with which role. Nobody maps to a role that is more than his own.",
    query: { dryRun },
    body: sends(tenancy.newProvider),
    answer: gives(tenancy.providerSummary),
  }),
  deleteProvider: route("DELETE /providers/{uid}", "tenant", "gateway", {
    doc: "Deletes a provider. Its users stay, and are out within a second.",
    query: { dryRun },
    headers: ifMatch,
    answer: gives(tenancy.providerSummary),
  }),
  listQuotas: route("GET /quotas", "tenant", "gateway", {
    doc: "Limits of accounts and domains that the asker may see, and what was granted of them.",
    query: paged,
    answer: givesPages(tenancy.quotaSummary),
  }),
  setQuota: route("PUT /quotas/{uid}", "tenant", "gateway", {
    doc: "What all cells of an account, or of all accounts in a domain, may have together. What is left out is not limited. What was granted already stays.",
    query: { dryRun },
    headers: ifMatch,
    body: sends(tenancy.quotaChange),
    answer: gives(tenancy.quotaSummary),
  }),
  listUsage: route("GET /usage", "tenant", "gateway", {
    doc: "What accounts that the asker may see have had, and for how many hours, by day (UTC) and account, oldest first; and how much of that was in use.",
    more: "What is counted is what quotas count: what the models of an account's cells ask for, whether it runs or not, and the limits of a cell that has some. `used` has machines from when a host was told to run them until it said that they had ended, with their memory and processors, and what volumes have: each change counts a few seconds late at most. Refused with 409 `conflict` where there is no root controller, which grants, and with 400 where there are more than 10,000 days of accounts.",
    query: {
      ...paged,
      from: may(day, "Without days before this one; absent: 31 days."),
      until: may(day, "Without days after this one; absent: today."),
      path: may(text(2048), "Of this account, or of all in this domain and below."),
    },
    answer: givesPages(tenancy.usageDay),
  }),
  readAudit: route("GET /audit", "tenant", "gateway", {
    doc: "Who changed what, and who was refused, of all services that keep records, oldest first; each asker sees what he may.",
    more: "`after` goes with one `service`. A service that does not answer is named in `silent`.",
    query: { service: may(text(253), "Of this service alone: `tenancy`, `controller.shop`."), ...audited },
    answer: gives(auditView),
  }),
  giveCell: route("PUT /owners/{cell}", "tenant", "gateway", {
    doc: "Says to which account a cell belongs from now on.",
    query: { dryRun },
    body: sends(tenancy.ownerChange),
    answer: gives(tenancy.cellOwner),
  }),
} as const satisfies { readonly [name: string]: Route };
