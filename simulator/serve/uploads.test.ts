import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { restAsWritten, type Upload, type UploadPart } from "../../model/contract/tenancy/volumes/uploads.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { eventually } from "../../runtime/installation.testing.ts";
import { type Served, serveSimulation } from "./served.ts";

/** What a page's session does with a file: nobody but a browser's cookie says who asks. */
const MiB = 2 ** 20;
let served: Served;
let cookie = "";
before(async () => {
  served = await serveSimulation({ hosts: 3, machines: 2, seed: 1, port: 0, volumes: true });
  const { url, credential } = served;
  const post = (path: string, headers: object, body: object) =>
    fetch(`${url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  const password = "a long enough password";
  const operator = { authorization: `Bearer ${credential}` };
  for (const [path, body] of [
    ["/domains", { path: "ROOT/acme" }],
    ["/accounts", { path: "ROOT/acme/dev" }],
    ["/users", { account: "ROOT/acme/dev", name: "ann", role: "user", password }],
  ] as const)
    assert.ok((await post(path, operator, body)).ok, path);
  const entered = await post("/login", page(), { user: "ann", domain: "ROOT/acme", password });
  assert.equal(entered.status, 201);
  cookie = String(entered.headers.get("set-cookie")).split(";")[0] ?? "";
});
after(() => served?.stop());

const page = () => ({ origin: served.url, "cells-page": "1" });
interface Said<T> {
  readonly status: number;
  readonly json: T;
}
interface Sent {
  readonly body?: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** So many octets go out, and then the connection is cut. */
  readonly breaksAt?: number;
}
async function ask<T = JsonObject>(method: string, path: string, { body, headers = {}, breaksAt }: Sent = {}) {
  const { hostname, port } = new URL(served.url);
  const outgoing = request({ host: hostname, port, method, path, agent: false });
  for (const [name, value] of Object.entries({ ...page(), cookie, ...headers })) outgoing.setHeader(name, value);
  if (body !== undefined) outgoing.setHeader("content-length", body.length);
  outgoing.on("error", () => undefined);
  if (breaksAt !== undefined) {
    outgoing.write(body?.subarray(0, breaksAt), () => outgoing.destroy());
    await new Promise((resolve) => outgoing.once("close", resolve));
    return { status: 0, json: {} as T };
  }
  outgoing.end(body);
  const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
  const said: Said<T> = { status: answer.statusCode ?? 0, json: JSON.parse(await text(answer)) as T };
  return said;
}
const sha256Of = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
const idOf = (): string => randomBytes(16).toString("hex");
const octets = { "content-type": "application/octet-stream" };

test("what broke off goes on by the cookie alone, and a volume is made of it, as large as it is", async () => {
  const [id, bytes] = [idOf(), randomBytes(5 * MiB)];
  const at = `/uploads/${id}?format=raw`;
  await ask("PUT", at, { body: bytes, headers: octets, breaksAt: 3 * MiB });
  const part = await eventually("what came is kept", async () => {
    const { status, json } = await ask<UploadPart>("GET", `/uploads/${id}`);
    return status === 200 && json;
  });
  assert.deepEqual([part.format, part.length], ["raw", bytes.length]);
  assert.ok(part.offset >= MiB && part.offset <= 3 * MiB, String(part.offset));
  assert.equal(part.sha256, sha256Of(bytes.subarray(0, part.offset)));
  const rest = { from: part.offset, length: bytes.length };
  const headers = { ...octets, "content-range": restAsWritten(rest) };
  const whole = await ask<Upload>("PUT", at, { body: bytes.subarray(part.offset), headers });
  assert.equal(whole.status, 200, JSON.stringify(whole.json));
  assert.deepEqual([whole.json.sha256, whole.json.sizeMiB], [sha256Of(bytes), 5]);

  const made = await ask("POST", "/volumes", {
    body: Buffer.from(JSON.stringify({ name: "brought", upload: id })),
    headers: { "content-type": "application/json" },
  });
  assert.equal(made.status, 201, JSON.stringify(made.json));
  const read = await eventually("its bytes are the volume's", async () => {
    const { json } = await ask("GET", `/volumes/${String(made.json.uid)}`);
    const [version] = (json.versions ?? []) as readonly JsonObject[];
    return version?.phase === "ready" && version;
  });
  assert.equal(read.sizeMiB, 5);
  await eventually("it waits for nobody any more", async () => {
    await ask("GET", "/volumes");
    return ((await ask<readonly Upload[]>("GET", "/uploads")).json as readonly Upload[]).length === 0;
  });
});

test("a qcow2 that names another file is refused as a storage server refuses it, and nothing of it stays", async () => {
  const hostile = Buffer.alloc(MiB);
  hostile.write("QFI\xfb", 0, "latin1");
  hostile.writeUInt32BE(3, 4);
  hostile.writeBigUInt64BE(4096n, 8);
  hostile.writeUInt32BE(11, 16);
  const id = idOf();
  const refused = await ask<{ readonly error: { readonly code: string; readonly message: string } }>(
    "PUT",
    `/uploads/${id}?format=qcow2`,
    { body: hostile, headers: octets },
  );
  assert.equal(refused.status, 400);
  assert.equal(refused.json.error.code, "image/refused");
  assert.match(refused.json.error.message, /^the upload is refused: it names a backing file, another file/);
  assert.deepEqual((await ask("GET", "/uploads")).json, []);
  assert.equal((await ask("GET", `/uploads/${id}`)).status, 404);
});

test("without the page's header, or from elsewhere, nothing is taken", async () => {
  const body = Buffer.alloc(MiB);
  for (const headers of [{ origin: "http://127.0.0.1:1" }, { "sec-fetch-site": "cross-site" }])
    assert.equal(
      (await ask("PUT", `/uploads/${idOf()}?format=raw`, { body, headers: { ...octets, ...headers } })).status,
      403,
    );
  assert.deepEqual((await ask("GET", "/uploads")).json, []);
});

test("an image of the operator is at every simulated storage server, beside the one that each has", async () => {
  const headers = { authorization: `Bearer ${served.credential}` };
  const listed = async () =>
    (await (await fetch(`${served.url}/images`, { headers })).json()) as readonly { readonly name: string }[];
  assert.deepEqual(
    (await listed()).map(({ name }) => name),
    ["tiny"],
  );
  const added = await fetch(`${served.url}/images/debian?format=raw`, {
    method: "PUT",
    headers: { ...headers, ...octets },
    body: randomBytes(MiB),
  });
  assert.equal(added.status, 200, await added.text());
  assert.deepEqual((await listed()).map(({ name }) => name).sort(), ["debian", "tiny"]);
});
