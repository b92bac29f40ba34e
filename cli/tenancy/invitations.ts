import { passwordLength } from "../../model/contract/tenancy/tenancy.ts";
import { Client } from "../connection/client.ts";
import { chosenCloud, readClientConfiguration } from "../connection/client-config.ts";
import type { Context } from "../context/context.ts";
import { readPassphrase } from "../secrets/passphrase.ts";
import { usage } from "../terminal/failure.ts";
import { pathOf } from "./names.ts";
import { columns, print } from "./people.ts";
import { limitsOf } from "./quotas.ts";

/* `cells invitation`, and `cells register` by one. */

export const listInvitations = async (context: Context): Promise<void> => {
  const all = await context.client().ask("listInvitations", { parameters: {} });
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

interface Registering {
  readonly linkFile: string;
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
  const link = (await readPassphrase(terminal, { file: options.linkFile, what: "link" })).trim();
  const file = options.passwordFile;
  const password = await readPassphrase(terminal, { file, what: "password", shortest: passwordLength.least });
  const authority = options.url === undefined ? known?.authority : undefined;
  const client = new Client({ url, ...(authority === undefined ? {} : { authority }), credential: "" });
  const user = await client.ask("register", { parameters: {}, body: { link, name, password } });
  const login = `${user.name}@${user.domain}`;
  print(context, user, `the account ${user.account} is there, and you are its user: \`cells login ${login}\``);
};
