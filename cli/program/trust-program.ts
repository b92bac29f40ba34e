import type { Register } from "../context/register-type.ts";
import { usage } from "../terminal/failure.ts";

/* What a command does is loaded when it is asked for: most of what all of them need together no single one does. */
const delegations = () => import("../tenancy/delegations.ts");
const invitations = () => import("../tenancy/invitations.ts");
const subscriptions = () => import("../tenancy/subscriptions.ts");
const providers = () => import("../tenancy/providers.ts");

/* Who else gets in: by a provider's word, and by what an account gives others. */

/** Of an option that may be given several times. */
export const collect = (value: string, all: readonly string[] = []): readonly string[] => [...all, value];

export const registerProviders: Register = (program, context, withHelp) => {
  const provider = program
    .command("provider")
    .description("providers of OpenID Connect, and whom their claims make a user here");
  withHelp(
    provider
      .command("list", { isDefault: true })
      .description("show them, with what they map")
      .action(async () => (await providers()).listProviders(context())),
    ["cells provider"],
  );
  withHelp(
    provider
      .command("add")
      .description("let people log in by one")
      .argument("<file>", "its document, JSON: docs/tenants.md")
      .option("--secret-file <file>", "the secret of this installation as its client")
      .action(async (file, options) => (await providers()).addProvider(context(), file, options)),
    ["cells provider add acme.json --secret-file acme.secret"],
  );
  withHelp(
    provider
      .command("delete")
      .description("let nobody log in by it; who did is out within a second")
      .argument("<provider>", "its name")
      .action(async (name) => (await providers()).deleteProvider(context(), name)),
    ["cells provider delete acme"],
  );
};

const daysOf = (text: string): number => {
  if (!/^[1-9]\d?$/.test(text) || Number(text) > 90) throw usage(`\`${text}\` is no number of days from 1 to 90`);
  return Number(text);
};
const registerRegistrations: Register = (program, context, withHelp) => {
  const registration = program.command("registration").description("domains that are open, and who waits to be let in");
  withHelp(
    registration
      .command("list", { isDefault: true })
      .description("show them")
      .action(async () => (await invitations()).listRegistrations(context())),
    ["cells registration"],
  );
  withHelp(
    registration
      .command("open")
      .description("let whoever has such an address of e-mail apply for an account")
      .argument("<domain>", "where the account will be")
      .requiredOption("--email <domain>", "what stands behind the @ of addresses")
      .option("--role <role>", "of its first user (default: account-admin)")
      .option("--limit <limit>", "WHAT=NUMBER that the account may have; can be repeated", collect)
      .action(async (domain, options) => (await invitations()).openRegistration(context(), domain, options)),
    ["cells registration open acme --email acme.example --role user"],
  );
  const uid = "as `cells registration` shows it";
  withHelp(
    registration
      .command("close")
      .description("take no more applications, and forget those that wait")
      .argument("<uid>", uid)
      .action(async (opening) => (await invitations()).closeRegistration(context(), opening)),
    ["cells registration close 0b7f8c1e-3f0b-4f0a-9b5d-2d9d3c1f6a77"],
  );
  withHelp(
    registration
      .command("approve")
      .description("let somebody in")
      .argument("<uid>", "as he has told you; nothing else says that the address is his")
      .option("--name <name>", "another one than he has asked for")
      .action(async (application, { name }) => (await invitations()).approve(context(), application, name)),
    ["cells registration approve 7d0f8c1e-3f0b-4f0a-9b5d-2d9d3c1f6a12"],
  );
  withHelp(
    registration
      .command("reject")
      .description("let somebody not in")
      .argument("<uid>", uid)
      .action(async (application) => (await invitations()).reject(context(), application)),
    ["cells registration reject 7d0f8c1e-3f0b-4f0a-9b5d-2d9d3c1f6a12"],
  );
};
export const registerInvitations: Register = (program, context, withHelp) => {
  const invitation = program.command("invitation").description("links by which people make themselves accounts");
  withHelp(
    invitation
      .command("list", { isDefault: true })
      .description("show those that nobody has used yet")
      .action(async () => (await invitations()).listInvitations(context())),
    ["cells invitation"],
  );
  withHelp(
    invitation
      .command("add")
      .description("make one to a domain; its link opens once, and is shown once")
      .argument("<domain>", "where the account will be")
      .option("--role <role>", "of its first user (default: account-admin)")
      .option("--limit <limit>", "WHAT=NUMBER that the account may have; can be repeated", collect)
      .option("--days <n>", "how long it counts (default: 7)", daysOf)
      .action(async (domain, options) => (await invitations()).addInvitation(context(), domain, options)),
    [
      "cells invitation add acme",
      "cells invitation add acme --role user --limit vms=5 --limit memoryMiB=8192 --days 2",
    ],
  );
  withHelp(
    invitation
      .command("delete")
      .description("take it back")
      .argument("<uid>", "as `cells invitation list` shows it")
      .action(async (uid) => (await invitations()).deleteInvitation(context(), uid)),
    ["cells invitation delete 0b7f8c1e-3f0b-4f0a-9b5d-2d9d3c1f6a77"],
  );
  registerRegistrations(program, context, withHelp);
  withHelp(
    program
      .command("register")
      .description(
        "make yourself an account by an invitation, or apply for one; the password is asked for, or in a file",
      )
      .argument("<name>", "of the account, and of its user")
      .option("--link-file <file>", "an invitation's link")
      .option("--email <address>", "or your address, of a domain that is open to it")
      .option("--domain <domain>", "beside --email: which")
      .option("--password-file <file>", "read the password from a file instead of asking for it")
      .option("--url <url>", "the gateway (default: that of the configuration)")
      .action(async (name, options) => (await invitations()).register(context(), name, options)),
    [
      "cells register pat --link-file invite.link --url https://cloud.example",
      "cells register pat --email pat@acme.example --domain acme --url https://cloud.example",
    ],
  );
};

export const registerDelegations: Register = (program, context, withHelp) => {
  const delegation = program.command("delegation").description("roles on cells that accounts give others");
  withHelp(
    delegation
      .command("list", { isDefault: true })
      .description("show what your accounts give, and what they have")
      .action(async () => (await delegations()).listDelegations(context())),
    ["cells delegation"],
  );
  withHelp(
    delegation
      .command("add")
      .description("give another account, or one user, a role that is no more than your own")
      .argument("<account>", "whose cells they are")
      .requiredOption("--to <whom>", "an account or USER@DOMAIN; whom you may not see by the account's number or a UID")
      .requiredOption("--role <role>", "which role")
      .option("--cell <cells>", "on these cells alone, with commas in between; can be repeated", collect)
      .action(async (account, options) => (await delegations()).addDelegation(context(), account, options)),
    [
      "cells delegation add acme/dev --to acme/ops --role reader",
      "cells delegation add acme/dev --to 483920175566 --role user --cell shop",
    ],
  );
  withHelp(
    delegation
      .command("delete")
      .description("take it back, or give it up: it counts no more within a second")
      .argument("<uid>", "as `cells delegation list` shows it")
      .action(async (uid) => (await delegations()).deleteDelegation(context(), uid)),
    ["cells delegation delete 0b7f8c1e-3f0b-4f0a-9b5d-2d9d3c1f6a77"],
  );
};

export const registerSubscriptions: Register = (program, context, withHelp) => {
  const subscription = program.command("subscription").description("URLs that are told what becomes of your cells");
  withHelp(
    subscription
      .command("list", { isDefault: true })
      .description("show them, whether all was taken, and what was given up")
      .action(async () => (await subscriptions()).listSubscriptions(context())),
    ["cells subscription"],
  );
  withHelp(
    subscription
      .command("add")
      .description("have a URL told of cells that you may read, each notice signed with a secret")
      .argument("<url>", "http or https, on the Internet: nothing of the installation, and no private network")
      .option("--cell <cells>", "of these, with commas in between; can be repeated", collect)
      .option("--volumes", "of the persistent volumes that you may see, too or alone")
      .option("--event <events>", "of these alone: cell, vm, volume; can be repeated", collect)
      .option("--secret-file <file>", "the secret is read from there; else from standard input")
      .action(async (url, options) => (await subscriptions()).addSubscription(context(), url, options)),
    ["cells subscription add https://hooks.example.com/cells --cell shop --event vm --secret-file hooks.secret"],
  );
  withHelp(
    subscription
      .command("change")
      .description("have another URL told, or of something else; with another URL the secret is said anew")
      .argument("<uid>", "as `cells subscription list` shows it")
      .option("--url <url>", "the URL that is told from now on")
      .option("--cell <cells>", "of these cells, in place of those before", collect)
      .option("--volumes", "of persistent volumes as well")
      .option("--no-volumes", "of no persistent volumes any more")
      .option("--event <events>", "of these events, in place of those before", collect)
      .option("--secret-file <file>", "another secret is read from there; with --url else from standard input")
      .action(async (uid, options) => (await subscriptions()).changeSubscription(context(), uid, options)),
    ["cells subscription change 0b7f8c1e-3f0b-4f0a-9b5d-2d9d3c1f6a77 --cell shop,bank"],
  );
  withHelp(
    subscription
      .command("delete")
      .description("have it told nothing more")
      .argument("<uid>", "as `cells subscription list` shows it")
      .action(async (uid) => (await subscriptions()).deleteSubscription(context(), uid)),
    ["cells subscription delete 0b7f8c1e-3f0b-4f0a-9b5d-2d9d3c1f6a77"],
  );
};
