import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { cloudStackString, type Parameters } from "../../model/contract/signatures/cloudstack.ts";
import { type RequestAsSent, sigV4Of } from "../../model/contract/signatures/sigv4.ts";
import type {
  Login,
  LoginRequest,
  MadeKey,
  MadeLink,
  MadeTotp,
  RecoveryCodes,
  UserSummary,
} from "../../model/contract/tenancy/tenancy.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { cloudStackSignature, sigV4Signature } from "../../runtime/tenancy/signatures.ts";
import { shownByApp } from "../../runtime/tenancy/totp/totp.testing.ts";
import { type Credential, sessionFor } from "./credentials.ts";

/* A user with a key, at a gateway beside the service `tenancy` as a process of its own. */
interface Place {
  /** The gateway's. */
  readonly configuration: ProcessConfiguration;
  readonly url: string;
  readonly ask: (
    method: string,
    path: string,
    credential?: string | null,
    body?: Json,
  ) => Promise<{ readonly status: number; readonly json: JsonObject; readonly text: string }>;
  /** Of the user. */
  readonly session: string;
  readonly person: LoginRequest;
  /** What nobody may say. */
  readonly secrets: string[];
}
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const dateOf = (ms: number): string => new Date(ms).toISOString().replace(/[-:]|\.\d+/g, "");

type Key = { readonly id: string; readonly secret: string };
/** As a client of AWS signs. */
const signedBy = (
  { id, secret }: Key,
  {
    method,
    target,
    host,
    body = "",
    ms = Date.now(),
  }: { method: string; target: string; host: string; body?: string; ms?: number },
): RequestAsSent => {
  const date = dateOf(ms);
  const headers = [
    ["host", host],
    ["x-amz-date", date],
  ] as const;
  const request = { method, target, headers, bodyHash: sha256(body) };
  const { stringToSign, authorization } = sigV4Of(request, id, `${date.slice(0, 8)}/here/ec2/aws4_request`, sha256);
  const signed = authorization(sigV4Signature(secret, stringToSign));
  return { ...request, headers: [...headers, ["authorization", signed]] };
};
const cloudStackBy = ({ id, secret }: Key, more: Parameters, ms = Date.now()): Parameters => {
  const expires = `${new Date(ms + 600_000).toISOString().slice(0, 19)}+0000`;
  const parameters: Parameters = [
    ...more,
    ...([
      ["apiKey", id],
      ["signatureVersion", "3"],
      ["expires", expires],
    ] as const),
  ];
  return [...parameters, ["signature", cloudStackSignature(secret, cloudStackString(parameters))]];
};

/** A user without a password gives himself one by a link. */
export async function tryLink({ ask, secrets }: Pick<Place, "ask" | "secrets">): Promise<void> {
  const made = await ask("POST", "/users", undefined, { name: "lou", account: "ROOT/acme/dev", role: "reader" });
  assert.equal(made.json.hasPassword, false, made.text);
  const linked = await ask("POST", `/users/${made.json.uid}/link`);
  assert.equal(linked.status, 201, linked.text);
  const { link, user } = linked.json as unknown as MadeLink;
  secrets.push(link);
  assert.equal(user, "lou@ROOT/acme");
  const use = async (shown: string, password: string): Promise<number> =>
    (await ask("POST", "/passwords", null, { link: shown, password })).status;
  assert.equal(await use(link, "short"), 400);
  for (const other of ["first.x.y", `${link.slice(0, -1)}_`, ""]) assert.equal(await use(other, "long enough"), 401);
  assert.equal(await use(link, "a password of lou"), 200);
  assert.equal(await use(link, "a password of lou"), 401);
  const login = { user: "lou", domain: "ROOT/acme", password: "a password of lou" };
  assert.equal((await ask("POST", "/logins", null, login)).status, 201);
  assert.equal((await ask("DELETE", `/users/${made.json.uid}`)).status, 200);
}

/** No administrator gets in: the operator lets one in anew. @param session of somebody who administers something */
export async function tryWayBack({ ask, session, secrets }: Pick<Place, "ask" | "session" | "secrets">): Promise<void> {
  const body = { name: "root" };
  for (const [credential, status] of [
    [session, 403],
    [null, 401],
    ["no-credential-at-all", 401],
  ] as const)
    assert.equal((await ask("POST", "/recoveries", credential, body)).status, status, String(credential));
  assert.equal((await ask("POST", "/recoveries", undefined, { name: "not a name" })).status, 400);
  for (const password of ["a password of root", "the next password of root"]) {
    const { status, json, text } = await ask("POST", "/recoveries", undefined, body);
    assert.equal(status, 201, text);
    const { link, user } = json as unknown as MadeLink;
    secrets.push(link);
    assert.equal(user, "root@ROOT");
    assert.deepEqual(Object.keys(json).sort(), ["expires", "link", "user"]);
    assert.equal((await ask("POST", "/passwords", null, { link, password })).status, 200);
  }
  const login = async (password: string) => ask("POST", "/logins", null, { user: "root", domain: "ROOT", password });
  assert.equal((await login("a password of root")).status, 401);
  const { json } = await login("the next password of root");
  const { session: next, user } = json as unknown as Login;
  secrets.push(next);
  assert.equal(user.role, "root-admin");
  assert.equal((await ask("DELETE", `/users/${user.uid}`)).status, 200);
}

/** Of another user, whose password that is. */
export async function trySecondFactor({
  configuration,
  ask,
  session,
  person,
  secrets,
}: Omit<Place, "url">): Promise<void> {
  const done = async (method: string, path: string, body: Json): Promise<JsonObject> => {
    const { status, json, text } = await ask(method, path, session, body);
    assert.ok(status < 300, `${method} ${path}: ${text}`);
    return json;
  };
  const { password } = person;
  const { secret, uri } = (await done("POST", "/whoami/totp", { password })) as unknown as MadeTotp;
  assert.ok(uri.startsWith("otpauth://totp/Cells%3A") && uri.includes(`secret=${secret}&`), uri);
  secrets.push(secret);
  const codeAt = (ahead: number): string => shownByApp(secret, ahead);
  assert.equal((await ask("PUT", "/whoami/totp", session, { code: "12345x" })).status, 401);
  const confirmed = await done("PUT", "/whoami/totp", { code: codeAt(0) });
  const { recoveryCodes } = confirmed as unknown as RecoveryCodes;
  assert.equal(recoveryCodes.length, 10);
  secrets.push(...recoveryCodes);
  const door = { configuration, source: "192.0.2.10" };
  const enter = async (more: { readonly code?: string }): Promise<string> => {
    const found = await sessionFor(door, { kind: "password", ...person, ...more });
    if (!found.ok) return found.error.refused.refusal.code;
    secrets.push(found.value.session);
    return "in";
  };
  assert.equal(await enter({}), "second-factor");
  assert.equal(await enter({ code: codeAt(1) }), "in");
  const [first = ""] = recoveryCodes;
  assert.equal(await enter({ code: first.toLowerCase() }), "in");
  assert.equal(await enter({ code: first }), "second-factor");
  const off = await done("POST", "/whoami/totp/off", { password, code: recoveryCodes[1] ?? "" });
  assert.equal(off.hasSecondFactor, false);
  assert.equal(await enter({}), "in");
}
export async function tryKeys({ configuration, url, ask, session, person, secrets }: Place): Promise<void> {
  const made = await ask("POST", "/keys", session, { note: "scripts" });
  assert.equal(made.status, 201, made.text);
  const { key, secret } = made.json as unknown as MadeKey;
  secrets.push(secret);
  const own = { id: key.id, secret };
  assert.match(key.id, /^CELL[A-Z2-7]{16}$/);
  assert.match(secret, /^[\w-]{43}$/);
  assert.ok(!(await ask("GET", "/keys", session)).text.includes(secret));

  const { host } = new URL(url);
  const logIn = async (request: RequestAsSent): Promise<{ status: number; text: string }> => {
    const headers = Object.fromEntries(request.headers.filter(([name]) => name !== "host"));
    const answer = await fetch(`${url}${request.target}`, { method: request.method, headers });
    return { status: answer.status, text: await answer.text() };
  };
  const login = { method: "POST", target: "/logins/signed", host };
  const entered = await logIn(signedBy(own, login));
  assert.equal(entered.status, 201, entered.text);
  const first = (JSON.parse(entered.text) as Login).session;
  secrets.push(first);
  assert.equal((await ask("GET", "/whoami", first)).status, 200);
  assert.equal((await ask("POST", "/keys", first, {})).status, 403, "a key makes no key");
  for (const [request, expected] of [
    [signedBy(own, { ...login, ms: Date.now() - 400_000 }), /signed 7 min ago/],
    [signedBy({ ...own, secret: "other" }, login), /there is no such key, or this is not its signature/],
    [signedBy({ ...own, id: "CELLNOTTHERE" }, login), /there is no such key, or this is not its signature/],
    // What was signed for another request is no login: a link that somebody was given opens what it names.
    [{ ...signedBy(own, { ...login, target: "/cells" }), target: "/logins/signed" }, /not its signature/],
    [{ ...signedBy(own, login), headers: [] }, /nothing was shown/],
  ] as const) {
    const refused = await logIn(request);
    assert.equal(refused.status, 401, refused.text);
    assert.match(refused.text, expected);
  }

  const door = { configuration, source: "192.0.2.9" };
  const at = async (credential: Credential): Promise<string> => {
    const found = await sessionFor(door, credential);
    if (found.ok) secrets.push(found.value.session);
    return found.ok ? found.value.session : `${found.error.refused.statusCode}`;
  };
  const describe = { method: "POST", target: "/?Action=DescribeInstances", host: "ec2.example", body: "a=b" };
  const kinds: readonly Credential[] = [
    { kind: "bearer", authorization: `Bearer ${session}` },
    { kind: "password", ...person },
    { kind: "sigv4", request: signedBy(own, describe) },
    { kind: "cloudstack", parameters: cloudStackBy(own, [["command", "listUsers"]]) },
  ];
  const sessions: string[] = [];
  for (const credential of kinds) {
    const found = await at(credential);
    assert.equal((await ask("GET", "/whoami", found)).status, 200, `${credential.kind}: ${found}`);
    sessions.push(found);
  }
  assert.equal(sessions[0], session);
  assert.equal(sessions[2], sessions[3], "of one key's requests all have one session");
  assert.equal(await at({ kind: "sigv4", request: signedBy(own, { ...describe, body: "c" }) }), sessions[2]);
  assert.notEqual(sessions[2], first, "and who has logged in his own");
  const refused: readonly Credential[] = [
    { kind: "bearer", authorization: "Bearer session.x" },
    { kind: "bearer", authorization: `Bearer session.${"x".repeat(43)}` },
    { kind: "password", ...person, password: "not hers at all" },
    { kind: "sigv4", request: { ...signedBy(own, describe), bodyHash: sha256("a=c") } },
    { kind: "sigv4", request: { ...signedBy(own, describe), target: "/?Action=TerminateInstances" } },
    { kind: "cloudstack", parameters: [...cloudStackBy(own, [["command", "listUsers"]]), ["page", "2"]] },
    { kind: "cloudstack", parameters: cloudStackBy(own, [["command", "listUsers"]], Date.now() - 700_000) },
    { kind: "cloudstack", parameters: [["command", "listUsers"]] },
  ];
  for (const credential of refused) assert.equal(await at(credential), "401", JSON.stringify(credential));

  assert.equal((await ask("DELETE", `/keys/${key.id}`, session)).status, 200);
  for (const ended of [first, sessions[2] ?? ""]) assert.equal((await ask("GET", "/whoami", ended)).status, 401);
  assert.equal((await ask("GET", "/whoami", session)).status, 200);
  assert.equal(await at({ kind: "sigv4", request: signedBy(own, describe) }), "401");
}

/** Pages of users, and a change that is held to what was seen. @param session of somebody who sees a few users and changes none */
export async function tryPages(
  { url, ask, session }: Pick<Place, "url" | "ask" | "session">,
  operator: string,
): Promise<void> {
  const asked = async (method: string, path: string, headers: Readonly<Record<string, string>>, body?: object) => {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await fetch(url + path, {
      method,
      ...sent,
      headers: { "content-type": "application/json", ...headers },
    });
    const json = (await response.json()) as JsonObject & readonly UserSummary[];
    return {
      status: response.status,
      json,
      next: response.headers.get("cells-next"),
      tag: response.headers.get("etag"),
    };
  };
  const authorization = `Bearer ${operator}`;
  const made: string[] = [];
  for (const name of ["a0", "pb", "pc"])
    made.push(
      String((await ask("POST", "/users", undefined, { name, account: "ROOT/acme/dev", role: "reader" })).json.uid),
    );
  const all = (await asked("GET", "/users", { authorization })).json;
  const found: UserSummary[] = [];
  for (let after: string | null = ""; after !== null; ) {
    const page = await asked("GET", `/users?limit=2${after === "" ? "" : `&after=${after}`}`, { authorization });
    assert.ok(page.status === 200 && page.json.length <= 2);
    found.push(...page.json);
    after = page.next;
    // Who comes and goes between two pages moves nobody.
    if (found.length === 2) assert.equal((await ask("DELETE", `/users/${made[0]}`)).status, 200);
  }
  assert.deepEqual(
    found.map(({ uid }) => uid),
    all.map(({ uid }) => uid),
  );
  const wrong = await asked("GET", "/users?after=00", { authorization });
  assert.equal(wrong.status, 400);
  assert.match(JSON.stringify(wrong.json), /after in the query: it is no cursor that this list has given/);
  assert.equal((await asked("GET", "/users?limit=0", { authorization })).status, 400);
  const own = await asked("GET", "/users?limit=1", { authorization: `Bearer ${session}` });
  assert.deepEqual([own.json.length, own.json[0]?.etag?.length], [1, 32]);

  const uid = made[1] ?? "";
  const tag = `"${found.find((each) => each.uid === uid)?.etag}"`;
  const change = (state: string, condition: string) =>
    asked("PUT", `/users/${uid}`, { authorization, "if-match": condition }, { state });
  const locked = await change("locked", tag);
  assert.equal(locked.status, 200);
  assert.equal(locked.tag, `"${locked.json.etag}"`);
  assert.equal((await change("enabled", tag)).status, 412);
  for (const condition of ["7", 'W/"7"', "anything"])
    assert.equal((await change("enabled", condition)).status, 400, condition);
  assert.equal((await change("enabled", locked.tag ?? "")).status, 200);
  for (const each of made.slice(1)) await ask("DELETE", `/users/${each}`);
}
