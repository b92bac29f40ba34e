import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { NewProvider } from "../../model/contract/tenancy/oidc.ts";
import type { Login } from "../../model/contract/tenancy/tenancy.ts";
import { type Client, Refused } from "../connection/client.ts";
import type { Context } from "../context/context.ts";
import { readPassphrase } from "../secrets/passphrase.ts";
import { usage } from "../terminal/failure.ts";
import { columns, found, print } from "./people.ts";

/* `cells provider`, and logins by one: somebody says yes in a browser, on whatever device he likes. */

export const listProviders = async (context: Context): Promise<void> => {
  const all = await context.client().all("listProviders");
  const rows = all.flatMap(({ name, issuer, clientId, mappings }) => [
    [name, issuer, clientId],
    ...mappings.map(({ claim, value, account, role }) => ["", `${claim} ${value}`, `${account} ${role}`]),
  ]);
  print(context, all, all.length === 0 ? "people log in by no provider" : columns(rows));
};

/** The document is JSON; the gateway says what is wrong in it. */
export const addProvider = async (
  context: Context,
  file: string,
  { secretFile }: { readonly secretFile?: string },
): Promise<void> => {
  let document: NewProvider;
  try {
    document = JSON.parse(readFileSync(file, "utf8")) as NewProvider;
  } catch (error) {
    throw usage(`the provider's document ${file} cannot be read: ${(error as Error).message}`);
  }
  if (typeof document !== "object" || document === null || "clientSecret" in document)
    throw usage(`${file} is an object without \`clientSecret\`: that is asked for with --secret-file`);
  const clientSecret =
    secretFile === undefined
      ? {}
      : { clientSecret: await readPassphrase(context.terminal, { file: secretFile, what: "secret" }) };
  const made = await context.client().ask("addProvider", { parameters: {}, body: { ...document, ...clientSecret } });
  print(context, made, `people log in by the provider ${made.name}: \`cells login --oidc ${made.name}\``);
};

export const deleteProvider = async (context: Context, name: string): Promise<void> => {
  const client = context.client();
  const all = await client.all("listProviders");
  const { uid } = found("provider", name, all, (each) => each.name);
  const gone = await client.ask("deleteProvider", { parameters: { uid } });
  print(context, gone, `the provider ${gone.name} is deleted, and who came by it is out`);
};

/** Waits until somebody has said yes. @param name true: the only one */
export const loginByProvider = async (context: Context, client: Client, name: string | true): Promise<Login> => {
  const body = name === true ? {} : { provider: name };
  const begun = await client.ask("beginDeviceLogin", { parameters: {}, body });
  const { login, userCode, verificationUri, verificationUriComplete, expires } = begun;
  const where = verificationUriComplete ?? verificationUri;
  const told = `Open ${where}\nand say yes there if it shows the code ${userCode}; until ${expires}`;
  // What it prints in JSON is the session's.
  if (context.json) context.terminal.warn(told);
  else context.terminal.print(told);
  for (;;) {
    await sleep(begun.intervalS * 1000);
    try {
      return await client.ask("endOidcLogin", { parameters: {}, body: { login } });
    } catch (error) {
      if (!(error instanceof Refused) || (error.code !== "oidc-pending" && error.code !== "busy")) throw error;
    }
  }
};
