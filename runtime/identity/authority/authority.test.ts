import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect as connectPlain } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { peerRequest } from "../../http/https.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../installation.testing.ts";
import { keepIdentity } from "../own/enrol.ts";
import { certificateRequest, hashOfToken, newToken, ownKey, readRequest } from "../own/keys.ts";
import { followPins } from "../own/pin-file.ts";
import { type RunningAuthority, runAuthority } from "./authority.ts";

/** What anybody may do at the port where one enrols without being known, and what of it is bounded. */
let installation: TestInstallation;
let authority: RunningAuthority;
const closing: (() => Promise<void> | void)[] = [];
const directory = (name: string): string => {
  const place = join(installation.directory, name);
  mkdirSync(place, { recursive: true, mode: 0o700 });
  return place;
};
const files = (name: string) => {
  const place = directory(name);
  return {
    certFile: join(place, "certificate.pem"),
    keyFile: join(place, "key.pem"),
    caFile: join(place, "authority.pem"),
  };
};

before(async () => {
  installation = await createTestInstallation("authority");
  const spare = await installation.configure(peerName("spare"));
  const { configuration } = await installation.configure(peerName("place"), {
    change: {
      name: peerName("authority"),
      certificate: files("authority-files"),
      authority: { enrolmentPort: spare.configuration.httpPort ?? 0 },
    },
  });
  authority = await runAuthority(configuration);
  closing.push(authority.stop);
});
after(async () => {
  for (const close of closing.reverse()) await close();
  await installation.remove();
});

const open = async (localAddress = "127.0.0.1"): Promise<TLSSocket> => {
  const port = authority.enrolmentPort;
  const raw = connectPlain({ host: "127.0.0.1", port, localAddress });
  raw.on("error", () => undefined);
  const socket = connect({ socket: raw, rejectUnauthorized: false });
  socket.on("error", () => undefined);
  closing.push(() => {
    socket.destroy();
  });
  await once(socket, "secureConnect");
  return socket;
};
const answerOf = async (socket: TLSSocket): Promise<string> => {
  let read = "";
  socket.on("data", (chunk) => {
    read += chunk;
  });
  await once(socket, "close");
  return read;
};
/** Sends a request as it is, and gives the answer's status and body. */
const send = async (
  method: string,
  path: string,
  body: string,
  from = "127.0.0.1",
): Promise<{ status: number; message: string }> => {
  const socket = await open(from);
  const answered = answerOf(socket);
  const length = Buffer.byteLength(body);
  socket.write(
    `${method} ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: ${length}\r\n\r\n${body}`,
  );
  const [head = "", text = "{}"] = (await answered).split("\r\n\r\n");
  return { status: Number(head.split(" ")[1]), message: /"message":"([^"]*)/.exec(text)?.[1] ?? "" };
};

test("what is no request for a certificate is refused with a reason", async () => {
  const key = await ownKey(join(directory("asker"), "key.pem"));
  const request = await certificateRequest(key);
  const { token } = newToken();
  const ask = (body: object) => send("POST", "/enrol", JSON.stringify(body));
  assert.equal((await send("GET", "/enrol", "")).status, 404);
  assert.equal((await send("POST", "/tokens", "{}")).status, 404);
  assert.deepEqual(await send("POST", "/enrol", "x"), { status: 400, message: "the request's body is no JSON object" });
  assert.equal((await send("POST", "/enrol", JSON.stringify({ token: "x".repeat(20_000) }))).status, 413);
  assert.match((await ask({ token })).message, /no short PEM/);
  assert.match((await ask({ token, request: "x" })).message, /no PKCS#10/);
  assert.deepEqual(await ask({ token, request }), {
    status: 403,
    message: "the token is unknown, spent or expired: ask for a new one from whoever starts this service",
  });
  assert.equal((await ask({ request })).status, 403);
  assert.match((await send("POST", "/renew", JSON.stringify({ request }))).message, /showed no certificate/);
});

test("a request that another key has signed is none", async () => {
  const request = await certificateRequest(await ownKey(join(directory("asker"), "key.pem")));
  const good = await readRequest(request);
  assert.ok(good.ok);
  const der = Buffer.from(request.replace(/-----[^-]+-----|\s/g, ""), "base64");
  der[der.length - 1] = (der.at(-1) ?? 0) ^ 1;
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  const forged = `-----BEGIN CERTIFICATE REQUEST-----\n${lines.join("\n")}\n-----END CERTIFICATE REQUEST-----`;
  assert.deepEqual(await readRequest(forged), {
    ok: false,
    error: "the certificate request is not signed by the key that it names",
  });
  assert.equal(hashOfToken("short"), null);
  const { token, hash } = newToken();
  assert.equal(hashOfToken(token), hash);
});

test("slow requests of one address keep nobody else from asking, and room comes back", async () => {
  // As many as there are requests at work at once; a second address has as many more.
  const slow = await Promise.all(Array.from({ length: 32 }, () => open()));
  slow.push(...(await Promise.all(Array.from({ length: 31 }, () => open("127.0.0.2")))));
  for (const socket of slow) socket.write("POST /enrol HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n");
  for (const from of ["127.0.0.2", "127.0.0.3"])
    assert.equal((await send("POST", "/enrol", "{}", from)).status, 400, `from ${from}`);
  const more = connect({ host: "127.0.0.1", port: authority.enrolmentPort, rejectUnauthorized: false });
  const answered: string[] = [];
  more.on("secureConnect", () => {
    answered.push("a handshake");
    more.destroy();
  });
  more.on("error", () => undefined);
  await new Promise((resolve) => more.once("close", resolve));
  assert.deepEqual(answered, [], "one address has so many connections, and no more");
  for (const socket of slow) socket.destroy();
  const status = (): Promise<number> =>
    send("POST", "/enrol", "{}").then(
      (answer) => answer.status,
      () => 0,
    );
  await eventually("there is room again", async () => (await status()) === 400);
});

test("hosts are joined by way of the root cell's controller, and by nobody else", async () => {
  const joined = async (name: string) => {
    const { token, hash } = newToken();
    const cell = name === "controller.root" ? "root" : "shop";
    const grants = [{ name, role: "controller", addresses: [] }];
    await authority.enrol(name.replace(".", "-"), { hash, cell, grants, endsAtMs: Date.now() + 60_000 });
    const { configuration } = await installation.configure(peerName(name), {
      change: {
        certificate: files(`${name}-files`),
        pinsFile: join(directory(`${name}-files`), "pins.json"),
        enrolment: { authority: `127.0.0.1:${authority.enrolmentPort}`, fingerprint: authority.fingerprint },
      },
    });
    const kept = keepIdentity({ configuration, token, log: () => undefined });
    closing.push(kept.stop);
    await kept.ready;
    return configuration;
  };
  const [root, shop] = [await joined("controller.root"), await joined("controller.shop")];
  const other = await certificateRequest(await ownKey(join(directory("asker"), "key.pem")));
  const renewing = connect({
    host: "127.0.0.1",
    port: authority.enrolmentPort,
    rejectUnauthorized: false,
    cert: readFileSync(shop.certificate.certFile),
    key: readFileSync(shop.certificate.keyFile),
  });
  await once(renewing, "secureConnect");
  const answered = answerOf(renewing);
  const body = JSON.stringify({ request: other });
  renewing.write(
    `POST /renew HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  assert.match(await answered, /^HTTP\/1.1 403[\s\S]*a new key needs a new token/);
  const book = JSON.parse(readFileSync(root.peersFile, "utf8"));
  book.peers.authority = book.peers.place;
  writeFileSync(root.peersFile, JSON.stringify(book));
  const { hash } = newToken();
  const host = { hash, cell: "root", grants: [{ name: "host.h1", role: "host", addresses: [] }], endsAtMs: Date.now() };
  const put = async (by: typeof root, path: string, method = "PUT") => {
    const answer = await peerRequest(by, peerName("authority"), {
      method,
      path,
      ...(method === "PUT" ? { body: JSON.stringify(host) } : {}),
    });
    return [answer.status, await answer.text()] as const;
  };
  assert.equal((await put(root, "/enrolments/host-h1"))[0], 204);
  assert.match((await put(shop, "/enrolments/host-h1"))[1], /only the root cell.s controller .*controller.shop/);
  assert.equal((await put(shop, "/enrolments/host-h1", "DELETE"))[0], 403);
  assert.equal((await put(root, "/enrolments/a/b"))[0], 404);
  host.grants[0] = { name: "authority", role: "host", addresses: [] };
  assert.deepEqual((await put(root, "/enrolments/host-h2"))[0], 409);
  assert.equal((await put(root, "/enrolments/host-h1", "DELETE"))[0], 204);
});

test("a host's file of pins follows what is published, whatever comes at once", async () => {
  const file = join(directory("pins"), "pins.json");
  const follow = followPins(file);
  const key = (at: number): Json => ({ key: at.toString(16).padStart(64, "0") });
  for (let at = 0; at < 50; at += 1) follow(`pin/host.h${at}`, key(at));
  for (let at = 0; at < 49; at += 1) follow(`pin/host.h${at}`, null);
  follow("pin/placer", key(7));
  const names = (): string[] => {
    try {
      return Object.keys(JSON.parse(readFileSync(file, "utf8")).pins);
    } catch {
      return [];
    }
  };
  await eventually("the last one stays", () => names().join() === "host.h49");
});
