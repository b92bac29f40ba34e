import assert from "node:assert/strict";
import { once } from "node:events";
import { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import type { NodeInput } from "../../../core/distribution/node/types.ts";
import type { CurrentKey } from "../../../core/identity/current-keys.ts";
import type { Metric } from "../../../core/telemetry/metrics.ts";
import { peerName } from "../../../model/cell/identifiers.ts";
import { asideDirectory } from "../../backup/put-back.ts";
import { keepConnection, peerRequest, servePeers } from "../../http/https.ts";
import { peerUpgrade } from "../../http/websocket-hop.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../installation.testing.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { copyDatabase } from "../../process/store.ts";
import { fingerprintOfCertificate } from "../../transport/fingerprint.ts";
import { readCredentials } from "../../transport/mutual-tls.ts";
import { createTransport, type Transport } from "../../transport/transport.ts";
import { readAuthority, signCertificate } from "../certificates.ts";
import { enrolNow } from "../own/enrol.ts";
import { certificateRequest, hashOfToken, newToken, ownKey } from "../own/keys.ts";
import { keepPeers } from "../own/peers-follow.ts";
import { type RunningAuthority, runAuthority } from "./authority.ts";
import { besideFile } from "./beside.ts";

/** Over mutual TLS: whoever has a certificate under a name that has another key by now. */
const hour = 3_600_000;
const [placer, host] = [peerName("placer"), peerName("host.h1")];
let installation: TestInstallation;
const closing: (() => unknown)[] = [];
before(async () => {
  installation = await createTestInstallation("superseded");
});
after(async () => {
  for (const close of closing.reverse()) await close();
  await installation.remove();
});

const listening = async (configuration: ProcessConfiguration) => {
  const inputs: NodeInput[] = [];
  const logs: { readonly event: string; readonly from: unknown; readonly reason: unknown; readonly why: string }[] = [];
  const measures: (() => readonly Metric[] | Promise<readonly Metric[]>)[] = [];
  const log = (event: string, fields: object): void => {
    const [from, reason, why] = ["from", "reason", "why"].map((name): unknown => Reflect.get(fields, name));
    logs.push({ event, from, reason, why: String(why) });
  };
  const transport: Transport = await createTransport(configuration, { input: (input) => inputs.push(input), log });
  const measure = (collect: (typeof measures)[number]): (() => boolean) => {
    measures.push(collect);
    return () => true;
  };
  const observer = { log, measures: measure };
  const answer = ({ url }: { url: string }, response: { end(text: string): void }): void => {
    if (url !== "/held") response.end("yes");
  };
  const server = await servePeers(configuration, answer, ({ socket }) => void socket.write(upgraded), { observer });
  closing.push(
    () => transport.stop(),
    () => server.stop(),
  );
  const of = (kind: string): number => inputs.filter((input) => input.kind === kind).length;
  const metrics = async () => [...transport.measure(), ...(await Promise.all(measures.map((each) => each()))).flat()];
  const refused = async (): Promise<number> =>
    (await metrics())
      .flatMap(({ samples }) => samples)
      .filter(({ labels }) => labels?.reason === "superseded certificate")
      .reduce((sum, { value }) => sum + value, 0);
  return { transport, server, of, logs, refused };
};
const upgraded = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

/** A further key and certificate under a name, which began so long ago; listens and looks where the name does. */
const holder = async (like: ProcessConfiguration, label: string, agoMs: number) => {
  const directory = join(installation.directory, `${like.name}-${label}`);
  mkdirSync(directory);
  const file = (name: string): string => join(directory, name);
  const { keys, fingerprint } = await ownKey(file("key.pem"));
  const authority = (await readAuthority(join(installation.directory, "authority"))) ?? assert.fail();
  const dates = { notBefore: new Date(Date.now() - agoMs), notAfter: new Date(Date.now() + hour) };
  const content = { name: like.name, publicKey: keys.publicKey, addresses: ["127.0.0.1"], ...dates };
  await writeFile(file("cert.pem"), await signCertificate(authority, content));
  const certificate = { ...like.certificate, certFile: file("cert.pem"), keyFile: file("key.pem") };
  return { configuration: { ...like, directory, certificate }, fingerprint };
};
const book = (file: string, keys: Readonly<Record<string, CurrentKey>>): void => {
  const { peers } = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(file, JSON.stringify({ peers, keys }));
};
const get = async (from: ProcessConfiguration, peer = placer, path = "/"): Promise<string> =>
  (await peerRequest(from, peer, { method: "GET", path })).text();

test("with the book that says so, the certificate of before opens nothing, and what it had opened ends", async () => {
  const { configuration: serving } = await installation.configure(placer);
  const { configuration: named } = await installation.configure(host);
  const own = join(installation.directory, "of-the-host.json");
  const old = await holder(named, "old", 2 * hour);
  const next = await holder(named, "next", 0);
  const server = await listening(serving);
  writeFileSync(own, readFileSync(serving.peersFile));
  const at = { ...old.configuration, peersFile: own };
  const former = await listening(at);
  former.transport.connect(placer);
  await eventually("it is let in", () => server.of("connected") === 1);
  assert.equal(await get(at), "yes");
  const held = assert.rejects(get(at, placer, "/held"));
  const session = await peerUpgrade(at, placer, { path: "/", handshake: {}, headers: {} });
  assert.ok(session.accepted);
  const ended = new Promise((resolve) => session.socket.once("close", resolve));
  session.socket.resume();

  book(serving.peersFile, { "host.h1": { key: next.fingerprint, sinceMs: Date.now() - hour } });
  await eventually("its connection has ended", () => server.of("disconnected") === 1);
  // Silence ends a connection as well.
  const endings = server.logs.filter(({ from, reason }) => from === host && reason === "superseded certificate");
  assert.equal(endings.length, 1, "and that is why");
  await Promise.all([held, ended]);
  await assert.rejects(get(at));
  await eventually("it tries again", async () => (await server.refused()) > 4);
  assert.equal(server.of("connected"), 1, "in vain");
  const lines = server.logs.filter(({ reason }) => reason === "superseded certificate");
  assert.match(lines[0]?.why ?? "", /"host.h1" has another key since, and this certificate was issued before, at 20/);
  assert.ok(lines.length < 6, "each connection is not a line of log");

  // The other way round: nobody believes what answers in its place.
  server.transport.connect(host);
  await eventually("it is not believed", () => server.logs.some(({ why }) => /has another key since/.test(why)));
  await assert.rejects(get(serving, host), /"host.h1" has another key since/);
  await assert.rejects(
    peerUpgrade(serving, host, { path: "/", handshake: {}, headers: {} }),
    /"host.h1" has another key since/,
  );

  await former.transport.stop();
  await former.server.stop();
  const latter = await listening(next.configuration);
  latter.transport.connect(placer);
  await eventually("who has the name now is let in", () => server.of("connected") > 1);
  assert.equal(await get(next.configuration), "yes");
  assert.equal(await get(serving, host), "yes");
  // Of an authority that was set back, or one that this process has not heard since.
  const connected = server.of("disconnected");
  book(serving.peersFile, { "host.h1": { key: old.fingerprint, sinceMs: Date.now() - hour } });
  await eventually("the former may come again", async () => (await get(old.configuration).catch(() => "no")) === "yes");
  assert.equal(await get(next.configuration), "yes", "and a book that is older refuses nobody who came later");
  assert.equal(server.of("disconnected"), connected);
});

test("who keeps a connection looks at the certificate of every one that it makes in its place", async () => {
  const { configuration: asking } = await installation.configure(peerName("gateway"));
  const { configuration: named } = await installation.configure(peerName("host.h3"));
  const old = await holder(named, "old", 2 * hour);
  const next = await holder(named, "next", 0);
  const server = await servePeers(old.configuration, (_asked, response) => {
    response.setHeader("connection", "close");
    response.end("yes");
  });
  const kept = keepConnection(asking, named.name);
  closing.push(
    () => kept.agent.destroy(),
    () => server.stop(),
  );
  const again = async (): Promise<string> => {
    const answer = await peerRequest(asking, named.name, { method: "GET", path: "/", connection: kept });
    const closed = once(answer.body.socket, "close");
    const said = await answer.text();
    await closed;
    return said;
  };
  for (let count = 0; count < 3; count += 1) assert.equal(await again(), "yes");
  book(asking.peersFile, { "host.h3": { key: next.fingerprint, sinceMs: Date.now() - hour } });
  await assert.rejects(again(), /"host.h3" has another key since/);
});

test("the authority tells everybody, itself included, when a name shows a newer token, and when a host is removed", async () => {
  const spare = await installation.configure(peerName("spare"));
  const place = (name: string) => {
    const directory = join(installation.directory, name);
    mkdirSync(directory, { mode: 0o700 });
    const file = (what: string): string => join(directory, what);
    const certificate = { certFile: file("cert.pem"), keyFile: file("key.pem"), caFile: file("ca.pem") };
    return { directory, certificate, peersFile: file("peers.json") };
  };
  const { configuration: at } = await installation.configure(peerName("place"), {
    change: {
      name: peerName("authority"),
      ...place("of-authority"),
      authority: { enrolmentPort: spare.configuration.httpPort ?? 0 },
    },
  });
  writeFileSync(at.peersFile, JSON.stringify({ peers: {} }));
  let authority: RunningAuthority = await runAuthority(at);
  closing.push(() => authority.stop());
  const peers = { authority: [at.address, at.distributionPort, at.httpPort].join(":") };
  const grant = async (name: string, token: string | null): Promise<void> => {
    const [role = ""] = name.split(".");
    const grants = [{ name, role, addresses: ["127.0.0.1"] }];
    const hash = token === null ? "" : hashOfToken(token);
    const desire = token === null ? null : { hash, cell: "root", grants, endsAtMs: Date.now() + hour };
    await authority.enrol(name.replace(".", "-"), desire as never);
  };
  const join1 = async (name: string, label: string): Promise<ProcessConfiguration> => {
    const { token } = newToken();
    await grant(name, token);
    const own = place(`${name}-${label}`);
    writeFileSync(own.peersFile, JSON.stringify({ peers }));
    const enrolment = { authority: `127.0.0.1:${authority.enrolmentPort}`, fingerprint: authority.fingerprint };
    const { configuration } = await installation.configure(peerName(name), { change: { ...own, enrolment } });
    await enrolNow({ configuration, token, log: () => undefined });
    return configuration;
  };
  const keysOf = ({ peersFile }: ProcessConfiguration) => JSON.parse(readFileSync(peersFile, "utf8")).keys ?? {};
  const keyOf = ({ certificate }: ProcessConfiguration) =>
    fingerprintOfCertificate(readFileSync(certificate.certFile, "utf8"));
  const asks = (from: ProcessConfiguration) => get(from, peerName("authority"), "/peers?known=-1");

  const follower = await join1("presence.1", "only");
  closing.push(await keepPeers(follower, { log: () => undefined }));
  const first = await join1("host.h2", "first");
  await eventually(
    "it is known",
    () => JSON.parse(readFileSync(follower.peersFile, "utf8")).peers["host.h2"] !== undefined,
  );
  await asks(first);
  await authority.stop();
  const [store, backup] = [join(at.directory, "state.sqlite"), join(at.directory, "of-yesterday.sqlite")];
  const source = new DatabaseSync(store);
  await copyDatabase(source, backup);
  source.close();
  authority = await runAuthority(at);
  const secondNow = (): number => Math.floor(Date.now() / 1000);
  const secondThen = secondNow();
  await eventually("what is issued from now on begins later", () => secondNow() > secondThen);
  assert.deepEqual([keysOf(follower), keysOf(at)], [{}, {}]);
  const second = await join1("host.h2", "second");
  await eventually("everybody is told", () => keysOf(follower)["host.h2"]?.key === keyOf(second));
  assert.deepEqual(keysOf(at), keysOf(follower));
  await assert.rejects(asks(first));
  await asks(second);
  await grant("host.h2", null);
  await eventually("everybody is told", () => keysOf(follower)["host.h2"]?.key === null);
  await assert.rejects(asks(second));
  const third = await join1("host.h2", "third");
  await asks(third);
  await eventually("everybody is told", () => keysOf(follower)["host.h2"]?.key === keyOf(third));
  await assert.rejects(asks(first));

  // By the book of every member the name is the third's, and the store that is put back knows of the first one alone.
  const renewed = async (from: ProcessConfiguration): Promise<number> => {
    const body = JSON.stringify({ request: await certificateRequest(await ownKey(from.certificate.keyFile)) });
    const port = authority.enrolmentPort;
    const to = { host: "127.0.0.1", port, method: "POST", path: "/renew", agent: false };
    const asking = request({ ...readCredentials(from), ...to, checkServerIdentity: () => undefined });
    const [answer] = await once(asking.end(body), "response");
    answer.resume();
    return answer.statusCode;
  };
  for (const isAside of [false, true]) {
    await authority.stop();
    for (const ending of ["-wal", "-shm"]) rmSync(`${store}${ending}`, { force: true });
    copyFileSync(backup, store);
    // A newer one would say whose the name is.
    rmSync(besideFile(join(at.directory, "authority")));
    if (isAside) {
      mkdirSync(join(at.directory, asideDirectory));
      renameSync(at.peersFile, join(at.directory, asideDirectory, "peers.json"));
      writeFileSync(at.peersFile, JSON.stringify({ peers: {} }));
    }
    authority = await runAuthority(at);
    assert.equal(await renewed(first), 403);
  }
  assert.equal(await renewed(third), 200);
  assert.equal(await renewed(first), 403);
});
