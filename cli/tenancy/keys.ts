import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { sigV4Of } from "../../model/contract/signatures/sigv4.ts";
import { type KeyState, type Login, longestNote } from "../../model/contract/tenancy/tenancy.ts";
import { sigV4Signature } from "../../runtime/tenancy/signatures.ts";
import type { Client } from "../connection/client.ts";
import type { Context } from "../context/context.ts";
import { usage } from "../terminal/failure.ts";
import { columns, print, userAt } from "./people.ts";

/* `cells key`: ids and secrets for scripts, and for requests that are signed. */

export const listKeys = async (context: Context): Promise<void> => {
  const all = await context.client().all("listKeys");
  const rows = all.map(({ id, user, state, note, used }) => [
    id,
    user,
    used === null ? "never used" : `used ${used}`,
    state === "enabled" ? "" : state,
    note,
  ]);
  print(context, all, all.length === 0 ? "there is no key that you may see" : columns(rows));
};

export const addKey = async (
  context: Context,
  written: string | undefined,
  { note, out }: { readonly note?: string; readonly out?: string },
): Promise<void> => {
  if ((note ?? "").length > longestNote) throw usage(`a note has at most ${longestNote} characters`);
  const user = written === undefined ? {} : { user: (await userAt(context, written)).uid };
  const body = { ...user, ...(note === undefined ? {} : { note }) };
  const made = await context.client().ask("addKey", { parameters: {}, body });
  const { key, secret } = made;
  if (out === undefined) {
    print(context, made, `${key.id}\n${secret}\nThe second line is the secret, of ${key.user}; it is not shown again`);
    return;
  }
  writeFileSync(out, `${JSON.stringify({ id: key.id, secret })}\n`, { flag: "wx", mode: 0o600 });
  print(context, { key, out }, `the key ${key.id} of ${key.user} is in ${out}: \`cells login --key-file ${out}\``);
};
export const changeKey = async (context: Context, key: string, state: KeyState): Promise<void> => {
  const changed = await context.client().ask("changeKey", { parameters: { key }, body: { state } });
  print(context, changed, `the key ${key} of ${changed.user} is ${changed.state}`);
};
export const deleteKey = async (context: Context, key: string): Promise<void> => {
  const gone = await context.client().ask("deleteKey", { parameters: { key } });
  print(context, gone, `the key ${key} of ${gone.user} is deleted; what was opened with it has ended`);
};

interface KeyFile {
  readonly id: string;
  readonly secret: string;
}
function keyIn(file: string): KeyFile {
  const right = "give it a file that `cells key add --out` wrote";
  let said: Partial<KeyFile> | null;
  try {
    said = JSON.parse(readFileSync(file, "utf8")) as Partial<KeyFile> | null;
  } catch (error) {
    // A parser's message may quote the secret.
    const why = error instanceof SyntaxError ? "is no JSON" : "cannot be read";
    throw usage(`the key's file ${file} ${why}: ${right}`);
  }
  const { id, secret } = said ?? {};
  if (typeof id !== "string" || typeof secret !== "string") throw usage(`${file} holds no key: ${right}`);
  return { id, secret };
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** The secret goes nowhere: the request for a session is signed with it. */
export const loginByKey = (client: Client, file: string): Promise<Login> => {
  const { id, secret } = keyIn(file);
  const date = new Date().toISOString().replace(/[-:]|\.\d+/g, "");
  const { host, pathname } = new URL("logins/signed", `${client.url}/`);
  const headers = { host, "x-amz-date": date };
  const request = { method: "POST", target: pathname, headers: Object.entries(headers), bodyHash: sha256("") };
  const scope = `${date.slice(0, 8)}/cells/cells/aws4_request`;
  const { stringToSign, authorization } = sigV4Of(request, id, scope, sha256);
  const signed = authorization(sigV4Signature(secret, stringToSign));
  return client.ask("logInSigned", { parameters: {}, headers: { "x-amz-date": date, authorization: signed } });
};
