import {
  emailDomainPattern,
  emailDomainRule,
  emailPattern,
  emailRule,
  passwordLength,
} from "../../model/contract/tenancy/tenancy.ts";
import { Client } from "../connection/client.ts";
import { chosenCloud, readClientConfiguration } from "../connection/client-config.ts";
import type { Context } from "../context/context.ts";
import { readPassphrase } from "../secrets/passphrase.ts";
import { usage } from "../terminal/failure.ts";
import { pathOf } from "./names.ts";
import { columns, print } from "./people.ts";
import { limitsOf } from "./quotas.ts";

/* `cells invitation` and `registration`, and `cells register` by one of them. */

export const listInvitations = async (context: Context): Promise<void> => {
  const all = await context.client().all("listInvitations");
  const rows = all.map(({ uid, domain, role, by, expires }) => [uid, domain, role, `until ${expires}`, by]);
  print(context, all, all.length === 0 ? "nobody is invited" : columns(rows));
};

interface Invited {
  readonly role?: string;
  readonly days?: number;
  readonly limit?: readonly string[];
}
export const addInvitation = async (
  context: Context,
  domain: string,
  { role, days, limit }: Invited,
): Promise<void> => {
  const body = {
    domain: pathOf(domain),
    ...(role === undefined ? {} : { role }),
    ...(days === undefined ? {} : { days }),
    ...(limit === undefined ? {} : { limits: limitsOf(limit) }),
  };
  const made = await context.client().ask("addInvitation", { parameters: {}, body });
  const { link, invitation } = made;
  const how = `whoever has it makes himself an account in ${invitation.domain} by \`cells register NAME --link-file FILE\``;
  print(context, made, `${link}\nIt opens once, until ${invitation.expires}: ${how}`);
};

export const deleteInvitation = async (context: Context, uid: string): Promise<void> => {
  const gone = await context.client().ask("deleteInvitation", { parameters: { uid } });
  print(context, gone, `the invitation to ${gone.domain} opens nothing any more`);
};

export const listRegistrations = async (context: Context): Promise<void> => {
  const client = context.client();
  const openings = await client.all("listOpenings");
  const waiting = await client.all("listApplications");
  const rows = [
    ...openings.map(({ uid, domain, email, role }) => [uid, domain, `open to addresses at ${email}`, role, ""]),
    ...waiting.map(({ uid, domain, name, email, role, expires, source }) => [
      uid,
      domain,
      `${name} waits, with ${email}`,
      role,
      `from ${source}, until ${expires}`,
    ]),
  ];
  print(context, { openings, applications: waiting }, rows.length === 0 ? "nothing is open" : columns(rows));
};
export const openRegistration = async (
  context: Context,
  domain: string,
  { email, role, limit }: Omit<Invited, "days"> & { readonly email: string },
): Promise<void> => {
  if (!emailDomainPattern.test(email)) throw usage(`\`${email}\` must be ${emailDomainRule}`);
  const body = {
    domain: pathOf(domain),
    email,
    ...(role === undefined ? {} : { role }),
    ...(limit === undefined ? {} : { limits: limitsOf(limit) }),
  };
  const made = await context.client().ask("addOpening", { parameters: {}, body });
  const how = `\`cells register NAME --email NAME@${made.email} --domain ${made.domain}\``;
  print(context, made, `${made.uid}\n${made.domain} takes applications of who has such an address: ${how}`);
};
export const closeRegistration = async (context: Context, uid: string): Promise<void> => {
  const gone = await context.client().ask("deleteOpening", { parameters: { uid } });
  print(context, gone, `${gone.domain} takes no applications of addresses at ${gone.email} any more`);
};
export const approve = async (context: Context, uid: string, name: string | undefined): Promise<void> => {
  const body = name === undefined ? {} : { name };
  const user = await context.client().ask("approveApplication", { parameters: { uid }, body });
  print(context, user, `the account ${user.account} is there, and ${user.name}@${user.domain} is its user`);
};
export const reject = async (context: Context, uid: string): Promise<void> => {
  const gone = await context.client().ask("rejectApplication", { parameters: { uid } });
  print(context, gone, `the application of ${gone.name} to ${gone.domain} is rejected`);
};

interface Registering {
  readonly linkFile?: string;
  readonly email?: string;
  readonly domain?: string;
  readonly passwordFile?: string;
  readonly url?: string;
}
/** Nobody needs to be in for that. */
export const register = async (context: Context, name: string, options: Registering): Promise<void> => {
  const { terminal } = context;
  const known = readClientConfiguration(chosenCloud().file);
  const url = options.url ?? known?.url;
  if (url === undefined)
    throw usage("no cloud is known here: say where its gateway is, as --url https://cloud.example");
  const { linkFile, email, domain } = options;
  if ((linkFile === undefined) === (email === undefined) || (email === undefined) !== (domain === undefined))
    throw usage(
      "register by an invitation, --link-file FILE, or to a domain that is open, --email ADDRESS --domain DOMAIN",
    );
  if (email !== undefined && !emailPattern.test(email)) throw usage(`\`${email}\` is not ${emailRule}`);
  const place = domain === undefined ? "" : pathOf(domain);
  const link = linkFile === undefined ? "" : (await readPassphrase(terminal, { file: linkFile, what: "link" })).trim();
  const file = options.passwordFile;
  const password = await readPassphrase(terminal, { file, what: "password", shortest: passwordLength.least });
  const authority = options.url === undefined ? known?.authority : undefined;
  const client = new Client({ url, ...(authority === undefined ? {} : { authority }), credential: "" });
  if (email !== undefined) {
    const made = await client.ask("apply", { parameters: {}, body: { domain: place, email, name, password } });
    const next = `tell an administrator of ${place} that you are\n${made.application}\nWith his word you are in`;
    print(context, made, `${next}: \`cells login ${name}@${place}\`. It waits until ${made.expires}`);
    return;
  }
  const user = await client.ask("register", { parameters: {}, body: { link, name, password } });
  const login = `${user.name}@${user.domain}`;
  print(context, user, `the account ${user.account} is there, and you are its user: \`cells login ${login}\``);
};
