import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import type { DesiredEnrolment } from "../../../core/documents/identity.ts";
import { cellName, type PeerName, peerName, uid } from "../../../model/cell/identifiers.ts";
import { peerRequest } from "../../http/https.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../installation.testing.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { fingerprintOfCertificate } from "../../transport/fingerprint.ts";
import { aliveFrame } from "../../transport/frame-codec.ts";
import { readCredentials } from "../../transport/mutual-tls.ts";
import { keepIdentity } from "../own/enrol.ts";
import { newToken } from "../own/keys.ts";

/** An authority and a service as processes, certificates of a few seconds, the loopback in between. */
const lifetimeMs = 4000;
const alive = new Set<ChildProcess>();
const stops: (() => void)[] = [];
let installation: TestInstallation;
let authority: ProcessConfiguration;
let enrolmentPort = 0;
let everything = "";
const tokens = Object.fromEntries(["placer", "shop", "late", "other"].map((name) => [name, newToken()]));

interface Program {
  readonly child: ChildProcess;
  readonly lines: () => readonly { readonly event: string; readonly fields: { readonly [key: string]: unknown } }[];
}
const start = (file: string): Program => {
  const main = join(import.meta.dirname, "../../main.ts");
  const child = spawn(process.execPath, [main, file], { stdio: ["ignore", "pipe", "pipe"] });
  alive.add(child);
  child.once("exit", () => alive.delete(child));
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk) => {
      output += chunk;
      everything += chunk;
    });
  const parse = (line: string) => {
    try {
      return [JSON.parse(line)];
    } catch {
      return [];
    }
  };
  return { child, lines: () => output.split("\n").flatMap(parse) };
};
const count = (program: Program, event: string): number =>
  program.lines().filter((line) => line.event === event).length;
const end = async ({ child }: Program, signal: NodeJS.Signals): Promise<void> => {
  const exited = once(child, "exit");
  child.kill(signal);
  await exited;
};

const desire = (name: string, role: string, hash: string, cell: string, endsInMs = 600_000): DesiredEnrolment => ({
  hash,
  cell: cellName(cell),
  grants: [{ name: peerName(name), role, addresses: ["127.0.0.1"] }],
  endsAtMs: Date.now() + endsInMs,
});

const ofCell = (cellUid: string, { grants, ...others }: DesiredEnrolment): DesiredEnrolment => ({
  ...others,
  grants: grants.map((grant) => ({ ...grant, cellUid: uid(cellUid) })),
});

/** A service's configuration without a certificate: only where the authority is, and its fingerprint. */
const service = async (
  name: PeerName,
  directory: string,
  token: string | null,
): Promise<{ file: string; configuration: ProcessConfiguration }> => {
  const own = join(installation.directory, directory);
  await mkdir(own, { recursive: true, mode: 0o700 });
  const tokenFile = join(own, "token");
  if (token !== null) await writeFile(tokenFile, `${token}\n`, { mode: 0o600 });
  const caFile = join(authority.directory, "authority", "authority.pem");
  await eventually("the authority is there", () => existsSync(caFile) && readFileSync(caFile).length > 0);
  const { configuration, file } = await installation.configure(name, {
    change: {
      certificate: {
        certFile: join(own, "certificate.pem"),
        keyFile: join(own, "key.pem"),
        caFile: join(own, "authority.pem"),
      },
      enrolment: {
        authority: `127.0.0.1:${enrolmentPort}`,
        fingerprint: fingerprintOfCertificate(readFileSync(caFile, "utf8")),
        tokenFile,
      },
    },
  });
  return { configuration, file };
};

/** Keeps an identity in this process, and what it logs. */
const keep = (configuration: ProcessConfiguration, token: string | null) => {
  const logs: { readonly event: string; readonly why: string }[] = [];
  const { ready, stop } = keepIdentity({
    configuration,
    token,
    log: (event, fields) => logs.push({ event, why: String(fields.why) }),
  });
  stops.push(stop);
  return { logs, ready, waiting: () => logs.filter(({ event }) => event === "identity/waiting").map(({ why }) => why) };
};

let authorityFile = "";
let running: Program;
before(async () => {
  installation = await createTestInstallation("enrolment");
  const spare = await installation.configure(peerName("spare"));
  enrolmentPort = spare.configuration.httpPort ?? 0;
  const own = join(installation.directory, "authority-own");
  await mkdir(own, { mode: 0o700 });
  const at = (name: string): string => join(own, name);
  const configured = await installation.configure(peerName("place-of-authority"), {
    change: {
      name: peerName("authority"),
      role: "authority",
      certificate: { certFile: at("certificate.pem"), keyFile: at("key.pem"), caFile: at("authority.pem") },
      authority: {
        lifetimeMs,
        enrolmentPort,
        enrolments: {
          placer: desire("placer", "placer", tokens.placer?.hash ?? "", "root"),
          shop: ofCell("c-8", desire("controller.shop", "controller", tokens.shop?.hash ?? "", "shop")),
          late: desire("placer.2", "placer", tokens.late?.hash ?? "", "root", -1000),
        },
      },
    },
  });
  ({ configuration: authority, file: authorityFile } = configured);
  running = start(authorityFile);
});
after(async () => {
  for (const stop of stops) stop();
  const ended = [...alive].map((child) => once(child, "exit"));
  for (const child of alive) child.kill("SIGKILL");
  await Promise.all(ended);
  await installation.remove();
});

const serialOf = (socket: TLSSocket): string => socket.getPeerX509Certificate()?.serialNumber ?? "";
const dial = async (own: ProcessConfiguration, port: number): Promise<TLSSocket> => {
  const socket = connect({ ...readCredentials(own), host: "127.0.0.1", port, checkServerIdentity: () => undefined });
  socket.on("error", () => undefined);
  await once(socket, "secureConnect");
  // With TLS 1.3 the server's verdict about the client comes after the client's about the server.
  socket.resume();
  return socket;
};

test("a service enrols, renews, and goes on through its authority's absence; its listeners take each new certificate", async () => {
  const { file, configuration } = await service(peerName("placer"), "placer-own", tokens.placer?.token ?? "");
  const shop = await service(peerName("controller.shop"), "shop-own", null);
  const placer = start(file);
  await keep(shop.configuration, tokens.shop?.token ?? "").ready;
  await eventually("it serves", () => count(placer, "process/started") === 1);
  assert.equal((await stat(configuration.certificate.keyFile)).mode & 0o777, 0o600);
  const certificate = new X509Certificate(readFileSync(configuration.certificate.certFile));
  assert.equal(certificate.subject, "O=root\nOU=placer\nCN=placer");
  const key = readFileSync(configuration.certificate.keyFile, "utf8");

  const [distribution, http] = [configuration.distributionPort ?? 0, configuration.httpPort ?? 0];
  const first = await dial(shop.configuration, distribution);
  const pulse = setInterval(() => first.write(aliveFrame), 1000);
  stops.push(() => {
    clearInterval(pulse);
    first.destroy();
  });
  const serials = new Set([serialOf(first)]);
  const firstHttp = await dial(shop.configuration, http);
  const renewed = count(placer, "identity/changed");
  await eventually("it has renewed twice", () => count(placer, "identity/changed") >= renewed + 2);
  for (const port of [distribution, http]) {
    const next = await dial(shop.configuration, port);
    serials.add(serialOf(next));
    assert.ok(!next.destroyed);
    next.destroy();
  }
  assert.equal(serials.size, 2, "both ports show the newer certificate");
  assert.ok(!first.destroyed && first.writable, "the connection of its first certificate goes on");
  assert.ok(!firstHttp.destroyed && firstHttp.writable);
  assert.equal(readFileSync(configuration.certificate.keyFile, "utf8"), key);
  assert.equal(count(placer, "process/started"), 1);

  await end(running, "SIGKILL");
  const waits = count(placer, "identity/waiting");
  await eventually("it waits for the authority", () => count(placer, "identity/waiting") > waits);
  const before = count(placer, "identity/changed");
  running = start(authorityFile);
  await eventually("it has the next one", () => count(placer, "identity/changed") > before);
  assert.equal(count(placer, "process/started"), 1, "and was not started again");
  clearInterval(pulse);
  for (const socket of [first, firstHttp]) socket.destroy();
  await end(placer, "SIGTERM");
  // What it enrolled with is spent, for itself no more than for others; started again, it renews.
  await writeFile(configuration.enrolment?.tokenFile ?? "", "");
  const again = start(file);
  await eventually("it serves again", () => count(again, "process/started") === 1);
  await end(again, "SIGTERM");
});

test("of a restored backup a controller is offered what is of its own cell, by its enrolment", async () => {
  const { configuration } = await service(peerName("controller.shop"), "shop-own", tokens.shop?.token ?? "");
  await keep(configuration, tokens.shop?.token ?? "").ready;
  const peersFile = join(installation.directory, "peers-of-shop.json");
  const { distributionPort, httpPort } = authority;
  await writeFile(peersFile, JSON.stringify({ peers: { authority: `127.0.0.1:${distributionPort}:${httpPort}` } }));
  const kept = join(authority.directory, "put-back", "controller.shop");
  await mkdir(kept, { recursive: true });
  const answers = async (cellUid: string): Promise<number> => {
    await writeFile(join(kept, "manifest.json"), JSON.stringify({ cellUid }));
    const asked = { method: "GET", path: "/put-back" };
    const answer = await peerRequest({ ...configuration, peersFile }, peerName("authority"), asked);
    await answer.text();
    return answer.status;
  };
  assert.equal(await answers("c-7"), 404);
  assert.equal(await answers("c-8"), 200);
});

test("refused: a token that is unknown, spent or expired, and an authority that is another", async () => {
  const refusal = /token is unknown, spent or expired/;
  for (const [name, given] of [
    ["unknown", tokens.other?.token],
    ["spent", tokens.shop?.token],
    ["expired", tokens.late?.token],
    ["malformed", "x"],
  ] as const) {
    const { configuration } = await service(peerName("controller.shop"), `refused-${name}`, null);
    const { waiting } = keep(configuration, given ?? "");
    await eventually(`${name} is refused`, () => waiting().length > 0);
    assert.match(waiting()[0] ?? "", refusal, name);
    assert.ok(!existsSync(configuration.certificate.certFile));
  }
  await eventually("the authority's log says which", () => count(running, "identity/refused") >= 4);
  const reasons = running.lines().filter(({ event }) => event === "identity/refused");
  assert.deepEqual(reasons.map(({ fields }) => fields.reason).sort(), ["expired", "malformed", "spent", "unknown"]);

  const { configuration } = await service(peerName("controller.shop"), "refused-none", null);
  const none = keep(configuration, null);
  await eventually("none is said", () => none.waiting().length > 0);
  assert.match(none.waiting()[0] ?? "", /no valid certificate and no token/);
  const enrolment = { authority: `127.0.0.1:${enrolmentPort}`, fingerprint: "0".repeat(64) };
  const wrong = keep({ ...configuration, enrolment }, tokens.other?.token ?? "");
  await eventually("the wrong authority is told", () => wrong.waiting().length > 0);
  assert.match(wrong.waiting()[0] ?? "", /somebody else answers there/);
});

test("no token and no key is in any log or argument list", () => {
  assert.ok(everything.includes("identity/enrolled") && everything.includes("identity/refused"));
  for (const { token } of Object.values(tokens)) assert.ok(!everything.includes(token));
  assert.ok(!everything.includes("PRIVATE KEY"));
  for (const child of alive) {
    const line = readFileSync(`/proc/${child.pid}/cmdline`, "utf8");
    for (const { token, hash } of Object.values(tokens)) assert.ok(!line.includes(token) && !line.includes(hash));
  }
});
