import { readRule, verbPatternRule } from "../../model/cell/tenants/rules.ts";
import { type Reach, type Rule, reaches } from "../../model/contract/tenancy/rules.ts";
import {
  type AccountSummary,
  type DomainSummary,
  type MadeLink,
  passwordLength,
  type RoleSummary,
  rootDomain,
  type Standing,
  type UserSummary,
} from "../../model/contract/tenancy/tenancy.ts";
import { closestName } from "../../model/diagnostics/closest-name.ts";
import { type Context, printJson } from "../context/context.ts";
import { readPassphrase } from "../secrets/passphrase.ts";
import { CommandFailure, exitCodes, usage } from "../terminal/failure.ts";
import { pathOf, userNameOf } from "./names.ts";

/* `cells domain`, `account`, `user`, `role`. People write names; what is said to the cloud are UIDs, which a list tells. */

export const print = (context: Context, value: unknown, text: string): void => {
  if (context.json) printJson(context, value);
  else context.terminal.print(text);
};
export const columns = (rows: readonly (readonly string[])[]): string => {
  const widths = (rows[0] ?? []).map((_cell, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, index) => cell.padEnd(widths[index] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
};
export const found = <T>(what: string, name: string, all: readonly T[], nameOf: (each: T) => string): T => {
  const one = all.find((each) => nameOf(each) === name);
  if (one !== undefined) return one;
  const closest = closestName(name, all.map(nameOf));
  const meant =
    closest === undefined ? `\`cells ${what} list\` shows those that you may see` : `did you mean ${closest}?`;
  throw new CommandFailure(exitCodes.refused, `there is no ${what} ${name}: ${meant}`);
};
const stateText = (state: Standing, deleting = false): string =>
  deleting ? "deleting" : state === "enabled" ? "" : state;

// --- domains and accounts ------------------------------------------------------------------------------------------

type Place = "domain" | "account";
const routesOf = {
  domain: { list: "listDomains", add: "addDomain", change: "changeDomain", remove: "deleteDomain" },
  account: { list: "listAccounts", add: "addAccount", change: "changeAccount", remove: "deleteAccount" },
} as const;

const declaredText = ({ declared }: { readonly declared?: string }): string =>
  declared === undefined ? "" : `declared at ${declared}`;
export const listPlaces = async (context: Context, what: Place): Promise<void> => {
  const all: readonly (DomainSummary | AccountSummary)[] = await context.client().all(routesOf[what].list);
  const rows = all.map((each) => [
    each.path,
    "cells" in each ? each.cells.join(", ") || "no cells" : "",
    stateText(each.state, each.deleting),
    declaredText(each),
  ]);
  print(context, all, all.length === 0 ? `there is no ${what} that you may see` : columns(rows));
};
export const addPlace = async (context: Context, what: Place, written: string): Promise<void> => {
  const path = pathOf(written);
  const made = await context.client().ask(routesOf[what].add, { parameters: {}, body: { path } });
  print(context, made, `the ${what} ${made.path} is there`);
};
const placeAt = async (context: Context, what: Place, written: string): Promise<DomainSummary | AccountSummary> => {
  const all: readonly (DomainSummary | AccountSummary)[] = await context.client().all(routesOf[what].list);
  return found(what, pathOf(written), all, ({ path }) => path);
};
export const changePlace = async (context: Context, what: Place, written: string, state: Standing): Promise<void> => {
  const { uid } = await placeAt(context, what, written);
  const changed = await context.client().ask(routesOf[what].change, { parameters: { uid }, body: { state } });
  print(context, changed, `the ${what} ${changed.path} is ${changed.state}`);
};
export const deletePlace = async (
  context: Context,
  what: Place,
  written: string,
  options: { readonly plan?: boolean; readonly cleanup?: boolean; readonly allowDestroy?: readonly string[] },
): Promise<void> => {
  const { uid } = await placeAt(context, what, written);
  const { plan: isPlan = false, allowDestroy = [] } = options;
  const common = { dryRun: isPlan, allowDestroy };
  const gone: DomainSummary | AccountSummary =
    what === "account"
      ? await context.client().ask("deleteAccount", { parameters: { uid }, query: common })
      : await context
          .client()
          .ask("deleteDomain", { parameters: { uid }, query: { ...common, cleanup: options.cleanup === true } });
  const plan = (gone.plan ?? []).map((each, index) => `${index + 1}. ${each}`).join("\n");
  const ends = `the ${what} ${gone.path} is being deleted: it is in \`cells ${what} list\` until nothing of it is left`;
  print(context, gone, isPlan ? plan : gone.deleting === true ? ends : `the ${what} ${gone.path} is deleted`);
};
export const giveCell = async (context: Context, written: string, cell: string): Promise<void> => {
  const body = { account: pathOf(written) };
  const given = await context.client().ask("giveCell", { parameters: { cell }, body });
  print(context, given, `the cell ${given.cell} is of the account ${given.account}`);
};

// --- users -----------------------------------------------------------------------------------------------------------

const nameOfUser = ({ name, domain }: UserSummary): string => `${name}@${domain}`;
export const userAt = async (context: Context, written: string): Promise<UserSummary> => {
  const { user, domain } = userNameOf(written);
  const all = await context.client().all("listUsers");
  return found("user", `${user}@${domain}`, all, nameOfUser);
};
const newPassword = ({ terminal }: Context, file: string | undefined): Promise<string> =>
  readPassphrase(terminal, { file, what: "password", shortest: passwordLength.least });

export const listUsers = async (context: Context): Promise<void> => {
  const all = await context.client().all("listUsers");
  const rows = all.map((each) => [nameOfUser(each), each.account, each.role, stateText(each.state)]);
  print(context, all, all.length === 0 ? "there is no user that you may see" : columns(rows));
};
export interface NewUserOptions {
  readonly account: string;
  readonly role: string;
  readonly passwordFile?: string | undefined;
  readonly link?: true;
}
export const addUser = async (context: Context, name: string, options: NewUserOptions): Promise<void> => {
  if (name.includes("@"))
    throw usage("a user is in the domain of its account: `cells user add ann --account acme/dev`");
  const { user } = userNameOf(name);
  const own = { name: user, account: pathOf(options.account), role: options.role };
  if (options.link === true) {
    await linkTo(context, await context.client().ask("addUser", { parameters: {}, body: own }));
    return;
  }
  const password = await newPassword(context, options.passwordFile);
  const made = await context.client().ask("addUser", { parameters: {}, body: { ...own, password } });
  print(context, made, `${nameOfUser(made)} can log in: \`cells login ${nameOfUser(made)}\``);
};
const linkTo = async (context: Context, { uid }: UserSummary): Promise<void> =>
  printLink(context, await context.client().ask("linkUser", { parameters: { uid } }));
const printLink = (context: Context, made: MadeLink): void =>
  print(
    context,
    made,
    `${made.link}\nIt opens once, until ${made.expires}: ${made.user} gives himself a password by \`cells password --link-file FILE\``,
  );
/** By the operator's credential. */
export const recoverAdmin = async (context: Context, name: string): Promise<void> => {
  const { user, domain } = userNameOf(name);
  if (domain !== rootDomain)
    throw usage(`root administrators are users of ${rootDomain}: \`cells user recover ${user}\``);
  printLink(context, await context.client().ask("recoverAdmin", { parameters: {}, body: { name: user } }));
};
export const linkUser = async (context: Context, written: string): Promise<void> =>
  linkTo(context, await userAt(context, written));
export const changeUser = async (
  context: Context,
  written: string,
  change: { readonly state?: Standing; readonly role?: string; readonly totp?: "off" },
): Promise<void> => {
  const { uid } = await userAt(context, written);
  const changed = await context.client().ask("changeUser", { parameters: { uid }, body: change });
  print(context, changed, `${nameOfUser(changed)} is ${changed.state}, with the role ${changed.role}`);
};
export const changePassword = async (context: Context, written: string, file: string | undefined): Promise<void> => {
  const { uid } = await userAt(context, written);
  const password = await newPassword(context, file);
  const changed = await context.client().ask("changeUser", { parameters: { uid }, body: { password } });
  print(context, changed, `${nameOfUser(changed)} has another password, and has to log in anew`);
};
export const deleteUser = async (context: Context, written: string): Promise<void> => {
  const { uid } = await userAt(context, written);
  const gone = await context.client().ask("deleteUser", { parameters: { uid } });
  print(context, gone, `${nameOfUser(gone)} is deleted`);
};

// --- roles -----------------------------------------------------------------------------------------------------------

export const ruleOf = (written: string): Rule => {
  const rule = readRule(written);
  if (rule === null)
    throw usage(`\`${written}\` is no rule: it must be allow or deny and ${verbPatternRule}, as 'allow cell.*'`);
  return rule;
};
const reachOf = (written: string): Reach => {
  const reach = reaches.find((each) => each === written);
  if (reach === undefined) throw usage(`\`${written}\` is no reach: it must be ${reaches.join(", ")}`);
  return reach;
};
const nameOfRole = ({ name, domain }: RoleSummary): string => `${name}@${domain}`;
const roleAt = async (context: Context, written: string): Promise<RoleSummary> => {
  const { user: name, domain } = userNameOf(written);
  const all = await context.client().all("listRoles");
  return found("role", `${name}@${domain}`, all, nameOfRole);
};
const rulesText = (rules: readonly Rule[]): string => rules.map(({ effect, verb }) => `${effect} ${verb}`).join(", ");

export const listRoles = async (context: Context): Promise<void> => {
  const all = await context.client().all("listRoles");
  print(
    context,
    all,
    columns(all.map((each) => [nameOfRole(each), each.reach, rulesText(each.rules), declaredText(each)])),
  );
};
export const addRole = async (
  context: Context,
  written: string,
  {
    reach,
    rule,
    secondFactor,
  }: { readonly reach: string; readonly rule: readonly string[]; readonly secondFactor?: true },
): Promise<void> => {
  const { user: name, domain } = userNameOf(written);
  const body = {
    name,
    domain,
    reach: reachOf(reach),
    rules: rule.map(ruleOf),
    ...(secondFactor === true ? { secondFactor } : {}),
  };
  const made = await context.client().ask("addRole", { parameters: {}, body });
  print(context, made, `the role ${nameOfRole(made)} is there: ${rulesText(made.rules)}`);
};
export const changeRole = async (context: Context, written: string, rules: readonly string[]): Promise<void> => {
  const { uid } = await roleAt(context, written);
  const changed = await context.client().ask("changeRole", { parameters: { uid }, body: { rules: rules.map(ruleOf) } });
  print(context, changed, `the role ${nameOfRole(changed)}: ${rulesText(changed.rules)}`);
};
export const deleteRole = async (context: Context, written: string): Promise<void> => {
  const { uid } = await roleAt(context, written);
  const gone = await context.client().ask("deleteRole", { parameters: { uid } });
  print(context, gone, `the role ${nameOfRole(gone)} is deleted`);
};
