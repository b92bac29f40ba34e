import type { Command } from "commander";
import { mostAnswered } from "../../model/contract/audit/audit.ts";
import { limitKeys } from "../../model/contract/tenancy/quotas.ts";
import type { Standing } from "../../model/contract/tenancy/tenancy.ts";
import type { Register } from "../context/register-type.ts";
import { usage } from "../terminal/failure.ts";
import { withConditions } from "./conditions.ts";
import {
  collect,
  registerDelegations,
  registerInvitations,
  registerProviders,
  registerSubscriptions,
} from "./trust-program.ts";

/* What a command does is loaded when it is asked for: most of what all of them need together no single one does. */
const audits = () => import("../tenancy/audit.ts");
const contexts = () => import("../tenancy/contexts.ts");
const keys = () => import("../tenancy/keys.ts");
const logins = () => import("../tenancy/login.ts");
const people = () => import("../tenancy/people.ts");
const quotas = () => import("../tenancy/quotas.ts");
const usages = () => import("../tenancy/usage.ts");

/** Who logs in, and what administrators do with domains, accounts, users and roles. */
export const registerTenancy: Register = (program, given, withHelp) => {
  const { held: context, add } = withConditions(given);
  registerLogin(program, context, withHelp);
  registerContexts(program, context, withHelp);
  registerPlaces(program, context, withHelp);
  registerUsers(program, context, withHelp);
  registerKeys(program, context, withHelp);
  registerInvitations(program, context, withHelp);
  registerDelegations(program, context, withHelp);
  registerSubscriptions(program, context, withHelp);
  registerProviders(program, context, withHelp);
  registerRoles(program, context, withHelp);
  registerQuotas(program, context, withHelp);
  registerUsage(program, context, withHelp);
  registerAudit(program, context, withHelp);
  add(program);
};

const passwordFile = ["--password-file <file>", "read the password from a file instead of asking for it"] as const;
const codeFile = [
  "--code-file <file>",
  "read the code of the second factor from a file instead of asking for it",
] as const;
const states = { enable: "enabled", lock: "locked", disable: "disabled" } as const satisfies Record<string, Standing>;
const verbs = Object.keys(states) as readonly (keyof typeof states)[];

const registerLogin: Register = (program, context, withHelp) => {
  withHelp(
    program
      .command("login")
      .description("begin a session of a user; the password is asked for, or in a file")
      .argument("[user]", "USER@DOMAIN; without a domain in ROOT")
      .option("--url <url>", "the gateway (default: that of the configuration)")
      .option("--out <file>", "write the session there, for CELLS_CONFIG")
      .option("--context <name>", "keep the session under this name, for `cells context use`")
      .option(...passwordFile)
      .option(...codeFile)
      .option("--key-file <file>", "instead of a user's name: sign with the key that `cells key add --out` wrote there")
      .option("--oidc [provider]", "instead of a user's name: by a provider of OpenID Connect, in a browser anywhere")
      .action(async (user, options) => (await logins()).login(context(), user, options)),
    [
      "cells login ann@acme --out ann.json",
      "cells login --oidc acme",
      "cells login --key-file ann.key --out ann.json",
      "CELLS_CONFIG=ann.json cells whoami",
    ],
  );
  withHelp(
    program
      .command("logout")
      .description("end the session, and what was opened with it")
      .action(async () => (await logins()).logout(context())),
    ["cells logout"],
  );
  withHelp(
    program
      .command("password")
      .description("give yourself another password; your other sessions end")
      .option(...passwordFile)
      .option("--new-password-file <file>", "read the next one from a file instead of asking for it")
      .option(
        "--link-file <file>",
        "by the link in this file, which `cells user link` made, instead of the present one",
      )
      .option("--url <url>", "with --link-file: the gateway (default: that of the configuration)")
      .action(async (options) => (await logins()).changeOwnPassword(context(), options)),
    ["CELLS_CONFIG=ann.json cells password"],
  );
  registerTotp(program, context, withHelp);
  withHelp(
    program
      .command("whoami")
      .description("say who you are here, and what your role allows")
      .action(async () => (await logins()).whoami(context())),
    ["cells whoami"],
  );
  withHelp(
    program
      .command("can")
      .description("say whether a user may do something, and which rule decides")
      .argument("<user>", "USER@DOMAIN")
      .argument("<verb>", "as rules name it: cell.change, vm.console")
      .argument("<path>", "path in a cell, or an account beginning with ROOT/")
      .action(async (user, verb, path) => (await logins()).can(context(), user, verb, path)),
    ["cells can ann@acme vm.console shop/web/vm"],
  );
};

const registerContexts: Register = (program, context, withHelp) => {
  const own = program.command("context").description("several installations or accounts, of which one is in use");
  withHelp(
    own
      .command("list", { isDefault: true })
      .description("show them, the one in use with a star")
      .action(async () => (await contexts()).listContexts(context())),
    ["cells context", "CELLS_CONTEXT=lab cells status"],
  );
  withHelp(
    own
      .command("use")
      .description("ask this one from now on; without a name none of them")
      .argument("[name]")
      .action(async (name) => (await contexts()).switchContext(context(), name)),
    ["cells context use work", "cells context use"],
  );
  withHelp(
    own
      .command("add")
      .description("keep a configuration under a name")
      .argument("<name>")
      .requiredOption("--from <file>", "what `cells login --out` or `cells credential add --out` wrote")
      .action(async (name, { from }) => (await contexts()).makeContext(context(), name, from)),
    ["cells context add lab --from lab.json"],
  );
  withHelp(
    own
      .command("delete")
      .description("forget one")
      .argument("<name>")
      .action(async (name) => (await contexts()).removeContext(context(), name)),
    ["cells context delete lab"],
  );
};

const registerTotp: Register = (program, context, withHelp) => {
  const totp = program.command("totp").description("a second factor for yourself: codes that an app shows");
  withHelp(
    totp
      .command("on")
      .description("begin one; it counts once a first code has confirmed it")
      .option(...passwordFile)
      .action(async (options) => (await logins()).beginTotp(context(), options)),
    ["CELLS_CONFIG=ann.json cells totp on"],
  );
  withHelp(
    totp
      .command("confirm")
      .description("confirm it by its first code; from then on a login needs one")
      .option(...codeFile)
      .action(async (options) => (await logins()).confirmTotp(context(), options)),
    ["CELLS_CONFIG=ann.json cells totp confirm"],
  );
  withHelp(
    totp
      .command("off")
      .description("take it away, by your password and a code")
      .option(...passwordFile)
      .option(...codeFile)
      .action(async (options) => (await logins()).endTotp(context(), options)),
    ["CELLS_CONFIG=ann.json cells totp off"],
  );
};

const registerPlaces: Register = (program, context, withHelp) => {
  const described = {
    domain: "domains, in which accounts and other domains are",
    account: "accounts, to which cells and users belong",
  } as const;
  const examples = { domain: "acme", account: "acme/dev" } as const;
  for (const what of ["domain", "account"] as const) {
    const parent = program.command(what).description(described[what]);
    withHelp(
      parent
        .command("list")
        .description(`show the ${what}s that you may see`)
        .action(async () => (await people()).listPlaces(context(), what)),
      [`cells ${what} list`],
    );
    withHelp(
      parent
        .command("add")
        .description(`make one`)
        .argument("<path>", "its name behind those of the domains around it")
        .action(async (path) => (await people()).addPlace(context(), what, path)),
      [`cells ${what} add ${examples[what]}`],
    );
    for (const verb of verbs)
      withHelp(
        parent
          .command(verb)
          .description(`let all that is in it be ${states[verb]}`)
          .argument("<path>")
          .action(async (path) => (await people()).changePlace(context(), what, path, states[verb])),
        [`cells ${what} ${verb} ${examples[what]}`],
      );
    withHelp(
      parent
        .command("delete")
        .description(
          what === "domain" ? "delete one, alone or with all that is in it" : "delete one, with its cells and users",
        )
        .argument("<path>")
        .option("--plan", "show what would go, and do nothing")
        .option("--allow-destroy <cells>", "cells that end with it, whose data is lost; can be repeated", collect)
        .option(...cleanup)
        .action(async (path, options) => (await people()).deletePlace(context(), what, path, options)),
      [
        `cells ${what} delete ${examples[what]} --plan`,
        `cells ${what} delete ${examples[what]} --allow-destroy shop${what === "domain" ? " --cleanup" : ""}`,
      ],
    );
    if (what === "account")
      withHelp(
        parent
          .command("give")
          .description("say that a cell belongs to an account from now on")
          .argument("<path>", "the account")
          .argument("<cell>")
          .action(async (path, cell) => (await people()).giveCell(context(), path, cell)),
        ["cells account give acme/dev shop"],
      );
  }
};

const cleanup = ["--cleanup", "of a domain: with its accounts and the domains in it"] as const;

const registerUsers: Register = (program, context, withHelp) => {
  const user = program.command("user").description("users of accounts");
  withHelp(
    user
      .command("list")
      .description("show the users that you may see")
      .action(async () => (await people()).listUsers(context())),
    ["cells user list"],
  );
  withHelp(
    user
      .command("add")
      .description("make one; the password is asked for, or in a file")
      .argument("<name>")
      .requiredOption("--account <path>", "the account that it is of")
      .option("--role <role>", "what it may", "user")
      .option(...passwordFile)
      .option("--link", "instead of a password make a link, by which the user gives himself one")
      .action(async (name, options) => (await people()).addUser(context(), name, options)),
    ["cells user add ann --account acme/dev --role account-admin"],
  );
  for (const verb of verbs)
    withHelp(
      user
        .command(verb)
        .description(`let it be ${states[verb]}${verb === "disable" ? ": it is out within a second" : ""}`)
        .argument("<user>", "USER@DOMAIN")
        .action(async (name) => (await people()).changeUser(context(), name, { state: states[verb] })),
      [`cells user ${verb} ann@acme`],
    );
  withHelp(
    user
      .command("role")
      .description("give it another role")
      .argument("<user>", "USER@DOMAIN")
      .argument("<role>", "as `cells role list` shows it")
      .action(async (name, role) => (await people()).changeUser(context(), name, { role })),
    ["cells user role ann@acme reader"],
  );
  registerWaysIn(user, context, withHelp);
  withHelp(
    user
      .command("delete")
      .description("delete it; it is out within a second")
      .argument("<user>", "USER@DOMAIN")
      .action(async (name) => (await people()).deleteUser(context(), name)),
    ["cells user delete ann@acme"],
  );
};

const registerWaysIn: Register = (user, context, withHelp) => {
  withHelp(
    user
      .command("password")
      .description("give it another password; it is out until it logs in anew")
      .argument("<user>", "USER@DOMAIN")
      .option(...passwordFile)
      .action(async (name, options) => (await people()).changePassword(context(), name, options.passwordFile)),
    ["cells user password ann@acme"],
  );
  withHelp(
    user
      .command("link")
      .description("make a link, by which it gives itself a password; it opens once, for a day")
      .argument("<user>", "USER@DOMAIN")
      .action(async (name) => (await people()).linkUser(context(), name)),
    ["cells user link ann@acme"],
  );
  withHelp(
    user
      .command("recover")
      .description(
        "the operator's way back in: make this user of ROOT a root administrator, with a link for a password",
      )
      .argument("<user>", "USER, who is there or is made; what opened as him before opens nothing")
      .action(async (name) => (await people()).recoverAdmin(context(), name)),
    ["cells user recover root"],
  );
  withHelp(
    user
      .command("totp-off")
      .description("take its second factor away, as where a telephone was lost")
      .argument("<user>", "USER@DOMAIN")
      .action(async (name) => (await people()).changeUser(context(), name, { totp: "off" })),
    ["cells user totp-off ann@acme"],
  );
};

const registerKeys: Register = (program, context, withHelp) => {
  const key = program.command("key").description("access keys, for scripts and for requests that are signed");
  withHelp(
    key
      .command("list")
      .description("show your keys, and those of others that you may see")
      .action(async () => (await keys()).listKeys(context())),
    ["cells key list"],
  );
  withHelp(
    key
      .command("add")
      .description("make one; its secret is shown once")
      .argument("[user]", "USER@DOMAIN; without it for yourself")
      .option("--note <text>", "what it is for")
      .option("--out <file>", "write it into a file that is not there yet, for `cells login --key-file`")
      .action(async (user, options) => (await keys()).addKey(context(), user, options)),
    ["cells key add --note backups --out ann.key", "cells key add robot@acme --out robot.key"],
  );
  for (const [verb, state] of [
    ["enable", "enabled"],
    ["disable", "disabled"],
  ] as const)
    withHelp(
      key
        .command(verb)
        .description(`let it be ${state}${verb === "disable" ? ": what was opened with it ends within a second" : ""}`)
        .argument("<key>", "its id")
        .action(async (id) => (await keys()).changeKey(context(), id, state)),
      [`cells key ${verb} CELLABCDEFGHIJKLMNOP`],
    );
  withHelp(
    key
      .command("delete")
      .description("delete it; what was opened with it ends within a second")
      .argument("<key>", "its id")
      .action(async (id) => (await keys()).deleteKey(context(), id)),
    ["cells key delete CELLABCDEFGHIJKLMNOP"],
  );
};

const registerRoles: Register = (program, context, withHelp) => {
  const role = program.command("role").description("roles: rules in their order, of which the first that fits decides");
  withHelp(
    role
      .command("list")
      .description("show the roles that you may see")
      .action(async () => (await people()).listRoles(context())),
    ["cells role list"],
  );
  withHelp(
    role
      .command("add")
      .description("make one, which is no more than your own")
      .argument("<role>", "ROLE@DOMAIN")
      .option("--reach <reach>", "on what it may be used: installation, domain or account", "account")
      .requiredOption("--rule <rule>", "'allow VERB' or 'deny VERB'; several in their order", collect)
      .option("--second-factor", "who has it may nothing until he has a second factor")
      .action(async (name, options) => (await people()).addRole(context(), name, options)),
    ["cells role add viewer@acme --rule 'deny cell.change' --rule 'allow cell.*'"],
  );
  withHelp(
    role
      .command("change")
      .description("give it other rules; they count within a second")
      .argument("<role>", "ROLE@DOMAIN")
      .requiredOption("--rule <rule>", "'allow VERB' or 'deny VERB'; several in their order", collect)
      .action(async (name, options) => (await people()).changeRole(context(), name, options.rule)),
    ["cells role change viewer@acme --rule 'allow cell.read'"],
  );
  withHelp(
    role
      .command("delete")
      .description("delete one that nobody has")
      .argument("<role>", "ROLE@DOMAIN")
      .action(async (name) => (await people()).deleteRole(context(), name)),
    ["cells role delete viewer@acme"],
  );
};

const registerQuotas: Register = (program, context, withHelp) => {
  const quota = program.command("quota").description("what all cells of an account, or in a domain, may have together");
  withHelp(
    quota
      .command("list")
      .description("show what is limited, and how much of it was granted")
      .action(async () => (await quotas()).listQuotas(context())),
    ["cells quota list"],
  );
  withHelp(
    quota
      .command("set")
      .description("say what it may have, in place of what it might before; what was granted stays")
      .argument("<path>", "of an account or a domain")
      .argument("<limits...>", `WHAT=NUMBER of ${limitKeys.join(", ")}; or none`)
      .action(async (path, limits) => (await quotas()).setQuota(context(), path, limits)),
    ["cells quota set acme/dev cells=2 vms=10 memoryMiB=20480", "cells quota set acme none"],
  );
};

const registerUsage: Register = (program, context, withHelp) => {
  withHelp(
    program
      .command("usage")
      .description("show what accounts have had, and for how many hours, by day (UTC)")
      .argument("[path]", "of an account, or of a domain: all in it and below")
      .option("--from <day>", "the first day, as 2026-11-01 (default: 31 days before)")
      .option("--until <day>", "the last day (default: today)")
      .action(async (path, options) => (await usages()).listUsage(context(), path, options)),
    ["cells usage", "cells usage acme/dev --from 2026-11-01 --until 2026-11-30"],
  );
};

const countOf = (text: string): number => {
  if (!/^[1-9]\d{0,3}$/.test(text) || Number(text) > mostAnswered)
    throw usage(`\`${text}\` is no number from 1 to ${mostAnswered}`);
  return Number(text);
};
const filters = (command: Command): Command =>
  command
    .option("--cell <cell>", "of this cell alone")
    .option("--service <service>", "of this service alone: tenancy, controller.shop")
    .option("--user <user>", "what this one did: ann@ROOT/acme, or operator")
    .option("--verb <request>", "of this request alone: putModel")
    .option("--target <path>", "about this, and what is below it")
    .option("--since <time>", "without what is older")
    .option("--until <time>", "without what is newer")
    .option("--refused", "what was refused alone");

const registerAudit: Register = (program, context, withHelp) => {
  const audit = program.command("audit").description("who changed what, and who was refused");
  withHelp(
    filters(audit.command("list", { isDefault: true }).description("show the newest, the last one last"))
      .option("--limit <n>", "at most so many (default: 200)", countOf)
      .action(async (options) => (await audits()).showAudit(context(), options)),
    ["cells audit", "cells audit list --cell shop --user ann@ROOT/acme", "cells audit list --refused --output json"],
  );
  withHelp(
    filters(audit.command("export").description("write out all that is kept, a record a line"))
      .option("--out <file>", "into a file that is not there yet")
      .action(async (options) => (await audits()).exportAudit(context(), options)),
    ["cells audit export --out audit-2026-11.jsonl"],
  );
  withHelp(
    audit
      .command("verify")
      .description("look whether records were altered or taken out")
      .option("--service <service>", "of this service alone")
      .option("--against <file>", "an earlier export, which must be found again")
      .action(async (options) => (await audits()).verifyAudit(context(), options)),
    ["cells audit verify", "cells audit verify --against audit-2026-11.jsonl"],
  );
};
