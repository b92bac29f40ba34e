import { setTimeout as sleep } from "node:timers/promises";
import { type Login, passwordLength } from "../../model/contract/tenancy/tenancy.ts";
import { Client, Refused } from "../connection/client.ts";
import {
  type ClientConfiguration,
  chosenCloud,
  contextFile,
  readClientConfiguration,
  writeClientConfiguration,
} from "../connection/client-config.ts";
import { type Context, printJson } from "../context/context.ts";
import { readPassphrase } from "../secrets/passphrase.ts";
import { usage } from "../terminal/failure.ts";
import { loginByKey } from "./keys.ts";
import { userNameOf } from "./names.ts";
import { loginByProvider } from "./providers.ts";

export interface LoginOptions {
  readonly url?: string | undefined;
  readonly out?: string | undefined;
  readonly passwordFile?: string | undefined;
  readonly keyFile?: string | undefined;
  /** Name of a provider; true: the only one. */
  readonly oidc?: string | true | undefined;
  readonly codeFile?: string | undefined;
  readonly context?: string | undefined;
}

const isSession = ({ credential }: ClientConfiguration): boolean => credential.startsWith("session.");

/** Where the session goes. A configuration that holds another credential, the operator's for instance, is not overwritten. */
const targetOf = (known: ClientConfiguration | undefined, file: string, out: string | undefined): string => {
  if (out !== undefined) return out;
  if (known === undefined || isSession(known)) return file;
  throw usage(`${file} holds a credential that is no user's session: say where the session goes, as --out ann.json`);
};

const patientAttempts = 5;
/** Where many log in at once, some are told to come back. */
const patiently = async <T>(work: () => Promise<T>): Promise<T> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 503 || error.code !== "busy" || attempt >= patientAttempts)
        throw error;
      await sleep(500 * attempt);
    }
  }
};

const byPassword = async (
  context: Context,
  client: Client,
  written: string,
  { passwordFile: file, codeFile }: LoginOptions,
): Promise<Login> => {
  const { user, domain } = userNameOf(written);
  const password = await readPassphrase(context.terminal, { file, what: "password" });
  if (password.length > passwordLength.most) throw usage(`a password has at most ${passwordLength.most} characters`);
  const enter = (code: { readonly code?: string }): Promise<Login> =>
    patiently(() => client.ask("logIn", { parameters: {}, body: { user, domain, password, ...code } }));
  if (codeFile !== undefined)
    return enter({ code: await readPassphrase(context.terminal, { file: codeFile, what: "code" }) });
  return enter({}).catch(async (error: unknown) => {
    if (!(error instanceof Refused) || error.code !== "second-factor" || !context.terminal.canAsk) throw error;
    return enter({ code: await readPassphrase(context.terminal, { file: undefined, what: "code" }) });
  });
};

export const login = async (context: Context, written: string | undefined, options: LoginOptions): Promise<void> => {
  const { keyFile, passwordFile, oidc } = options;
  const ways = [written, keyFile, oidc].filter((each) => each !== undefined).length;
  if (ways !== 1 || (written === undefined && passwordFile !== undefined))
    throw usage(
      "say who logs in by his password, as `cells login ann@acme`, or by which key, as --key-file ann.key, or by a provider, as --oidc",
    );
  const { file } = chosenCloud();
  const known = readClientConfiguration(file);
  const url = options.url ?? known?.url;
  if (url === undefined)
    throw usage("no cloud is known here: say where its gateway is, as --url https://cloud.example");
  const { context: name, out } = options;
  if (name !== undefined && out !== undefined) throw usage("say --context or --out, not both");
  const to = targetOf(known, file, name === undefined ? out : contextFile(name));
  const authority = options.url === undefined ? known?.authority : undefined;
  const place = { url, ...(authority === undefined ? {} : { authority }) };
  const client = new Client({ ...place, credential: "" });
  const enter = (): Promise<Login> => {
    if (oidc !== undefined) return loginByProvider(context, client, oidc);
    return keyFile === undefined ? byPassword(context, client, written ?? "", options) : loginByKey(client, keyFile);
  };
  const answer = await enter();
  writeClientConfiguration({ ...place, credential: answer.session }, to);
  const { user: summary, expires } = answer;
  if (context.json) printJson(context, { user: summary, expires, file: to });
  else {
    const use = name === undefined ? `: CELLS_CONFIG=${to} cells whoami` : `: cells context use ${name}`;
    const how = out === undefined && name === undefined ? "" : use;
    context.terminal.print(`${summary.name}@${summary.domain} is in until ${expires}${how}`);
  }
};

export const logout = async (context: Context): Promise<void> => {
  await context.client().ask("logOut", { parameters: {} });
  if (context.json) printJson(context, {});
  else context.terminal.print("the session has ended");
};

interface OwnOptions {
  readonly passwordFile?: string;
  readonly newPasswordFile?: string;
  readonly linkFile?: string;
  readonly url?: string;
}
/** By a link instead of the present one: nobody needs to be in for that. */
const setFirstPassword = async (context: Context, linkFile: string, options: OwnOptions): Promise<void> => {
  const { terminal } = context;
  const known = readClientConfiguration(chosenCloud().file);
  const url = options.url ?? known?.url;
  if (url === undefined)
    throw usage("no cloud is known here: say where its gateway is, as --url https://cloud.example");
  const link = (await readPassphrase(terminal, { file: linkFile, what: "link" })).trim();
  const file = options.newPasswordFile;
  const password = await readPassphrase(terminal, { file, what: "new-password", shortest: passwordLength.least });
  const authority = options.url === undefined ? known?.authority : undefined;
  const client = new Client({ url, ...(authority === undefined ? {} : { authority }), credential: "" });
  const user = await patiently(() => client.ask("setFirstPassword", { parameters: {}, body: { link, password } }));
  if (context.json) printJson(context, user);
  else terminal.print(`${user.name}@${user.domain} can log in: \`cells login ${user.name}@${user.domain}\``);
};

export const changeOwnPassword = async (context: Context, options: OwnOptions): Promise<void> => {
  const { passwordFile, newPasswordFile, linkFile } = options;
  if (linkFile !== undefined) {
    await setFirstPassword(context, linkFile, options);
    return;
  }
  const { terminal } = context;
  const password = await readPassphrase(terminal, { file: passwordFile, what: "password" });
  const shortest = passwordLength.least;
  const newPassword = await readPassphrase(terminal, { file: newPasswordFile, what: "new-password", shortest });
  const body = { password, newPassword };
  const user = await patiently(() => context.client().ask("changeOwnPassword", { parameters: {}, body }));
  if (context.json) printJson(context, user);
  else terminal.print(`${user.name}@${user.domain} has another password; other sessions have ended`);
};

/** A second factor, which counts once a first code has confirmed it. */
export const beginTotp = async (
  context: Context,
  { passwordFile }: { readonly passwordFile?: string },
): Promise<void> => {
  const { terminal } = context;
  const password = await readPassphrase(terminal, { file: passwordFile, what: "password" });
  const made = await patiently(() => context.client().ask("beginTotp", { parameters: {}, body: { password } }));
  if (context.json) printJson(context, made);
  else
    terminal.print(
      `${made.secret}\n${made.uri}\nGive one of the two to an app that shows codes; then \`cells totp confirm\`. They are not shown again`,
    );
};
export const confirmTotp = async (context: Context, { codeFile }: { readonly codeFile?: string }): Promise<void> => {
  const code = await readPassphrase(context.terminal, { file: codeFile, what: "code" });
  const answer = await context.client().ask("confirmTotp", { parameters: {}, body: { code } });
  if (context.json) printJson(context, answer);
  else
    context.terminal.print(
      `${answer.recoveryCodes.join("\n")}\nFrom now on a login needs a code. Keep these: each opens once where the telephone is lost`,
    );
};
export const endTotp = async (
  context: Context,
  { passwordFile, codeFile }: { readonly passwordFile?: string; readonly codeFile?: string },
): Promise<void> => {
  const password = await readPassphrase(context.terminal, { file: passwordFile, what: "password" });
  const code = await readPassphrase(context.terminal, { file: codeFile, what: "code" });
  const user = await patiently(() => context.client().ask("endTotp", { parameters: {}, body: { password, code } }));
  if (context.json) printJson(context, user);
  else context.terminal.print(`${user.name}@${user.domain} logs in by his password alone`);
};

export const whoami = async (context: Context): Promise<void> => {
  const answer = await context.client().ask("whoAmI", { parameters: {} });
  if (context.json) {
    printJson(context, answer);
    return;
  }
  const { user, reach, rules, expires } = answer;
  const of = { installation: "the installation", domain: "its domain and all below", account: "its account" }[reach];
  const who =
    user === null
      ? "the operator, by the operator's credential"
      : `${user.name}@${user.domain}, of the account ${user.account}`;
  const role = user === null ? "" : `role ${user.role}, `;
  context.terminal.print(
    `${who}\n${role}for ${of}: ${rules.map(({ effect, verb }) => `${effect} ${verb}`).join(", ")}`,
  );
  if (expires !== null) context.terminal.print(`in until ${expires}`);
};

export const can = async (context: Context, written: string, verb: string, path: string): Promise<void> => {
  const answer = await context.client().ask("can", { parameters: {}, query: { ...userNameOf(written), verb, path } });
  if (context.json) printJson(context, answer);
  else context.terminal.print(`${answer.allowed ? "yes" : "no"}: ${answer.because}`);
};
