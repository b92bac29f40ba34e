import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import { fileURLToPath } from "node:url";
import type { FastifyInstance } from "fastify";
import { peerName } from "../../model/cell/identifiers.ts";
import { hashCredential } from "../../runtime/http/bearer.ts";
import { runAuthority } from "../../runtime/identity/authority/authority.ts";
import { keepIdentity } from "../../runtime/identity/own/enrol.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../runtime/installation.testing.ts";
import { freePort } from "../../runtime/process/free-port.testing.ts";
import { fingerprintOfCertificate } from "../../runtime/transport/fingerprint.ts";
import { expectPeer } from "../../runtime/transport/mutual-tls.ts";
import { createGateway } from "../gateway.ts";
import { listenInside } from "../shared/listen.ts";
import { passOn } from "./pass-on.ts";

/*
 * A personality that reaches the gateway's second address alone, and is reached through the gateway's first (decision 212): gateway, CaaS and
 * authority are real. What keeps all else from it are rules of the dataplane, which are not in here.
 */
const operator = "open-sesame-of-the-operator";
const main = fileURLToPath(new URL("../main.ts", import.meta.url));
let installation: TestInstallation;
let app: FastifyInstance;
let supervisor: Server;
let child: ChildProcess;
let outside = 0;
let said = "";
let ca = Buffer.alloc(0);
const ends: (() => unknown)[] = [];

before(async () => {
  installation = await createTestInstallation("apart");
  const supervisorSocket = join(installation.directory, "supervisor");
  supervisor = createServer(({ url }, response) => response.end(url === "/status" ? '{"services":[]}' : '["shop"]'));
  supervisor.listen(supervisorSocket);
  await once(supervisor, "listening");
  const gateway = { listenFd: -1, supervisorSocket, credentialHashes: [hashCredential(operator)] };
  const { configuration } = await installation.configure(peerName("gateway"), { change: { role: "gateway", gateway } });
  ca = await readFile(configuration.certificate.caFile);
  app = createGateway(configuration);
  await app.ready();
  const [inside, door] = [await freePort(), await freePort()];
  outside = await freePort();
  ends.push(await listenInside(app, configuration, { address: "127.0.0.1", port: inside }));
  const { file } = await installation.configure(peerName("personality.caas"), {
    change: {
      role: "personality.caas",
      personality: {
        listen: { address: "127.0.0.1", port: door },
        gateway: { address: "127.0.0.1", port: inside },
      },
    },
  });
  child = spawn(process.execPath, [main, file], { stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (words: string) => {
      said += words;
    });
  ends.push(passOn({ at: `127.0.0.1:${outside}`, to: `127.0.0.1:${door}` }, assert.fail).close);
  await eventually("CaaS listens", () => said.includes("personality/listening"));
});
after(async () => {
  for (const end of ends) await end();
  child.kill("SIGKILL");
  await app?.close();
  supervisor?.close();
  await installation?.remove();
});

test("clients of a door apart speak with itself at the gateway's address, and have all that the gateway has", async () => {
  const socket: TLSSocket = connect({
    host: "127.0.0.1",
    port: outside,
    ca,
    checkServerIdentity: expectPeer(peerName("personality.caas")),
  });
  await once(socket, "secureConnect");
  assert.equal(socket.getPeerCertificate().subject.CN, "personality.caas", "the gateway has not opened it");
  const ask = async (credential: string) => {
    const outgoing = request({
      createConnection: () => socket,
      path: "/cells",
      headers: { authorization: `Bearer ${credential}` },
    });
    outgoing.end();
    const [answer] = await once(outgoing, "response");
    return { status: answer.statusCode, body: await text(answer) };
  };
  const cells = await ask(operator);
  assert.equal(cells.status, 200, `${cells.body}\n${said}`);
  assert.match(cells.body, /"cell":"shop"/);
});

test("through the gateway a door asks the authority that it was told, and knows it from anybody else", async () => {
  const own = join(installation.directory, "authority");
  const directory = join(installation.directory, "authority-own");
  await cp(own, join(directory, "authority"), { recursive: true });
  const pem = (name: string): string => join(directory, `${name}.pem`);
  const certificate = { certFile: pem("c"), keyFile: pem("k"), caFile: pem("a") };
  const enrolmentPort = await freePort();
  const peersFile = join(directory, "peers.json");
  await writeFile(peersFile, '{"peers":{}}');
  const { configuration } = await installation.configure(peerName("place-of-authority"), {
    change: {
      name: peerName("authority"),
      role: "authority",
      directory,
      certificate,
      peersFile,
      authority: { enrolmentPort },
    },
  });
  const running = await runAuthority(configuration);
  ends.push(running.stop);
  const pass = passOn({ at: "127.0.0.1:0", to: `127.0.0.1:${enrolmentPort}` }, assert.fail);
  ends.push(pass.close);
  await eventually("it listens", () => pass.port() !== null);
  const right = fingerprintOfCertificate(await readFile(join(own, "authority.pem"), "utf8"));
  const askedWith = async (fingerprint: string, name: string): Promise<string> => {
    const why: string[] = [];
    const place = join(installation.directory, name);
    const { configuration: door } = await installation.configure(peerName("personality.caas"), {
      change: {
        directory: place,
        certificate: { certFile: `${place}.c`, keyFile: `${place}.k`, caFile: `${place}.a` },
        enrolment: { authority: `127.0.0.1:${pass.port()}`, fingerprint },
      },
    });
    const log = (_event: string, fields: object): void => void why.push(JSON.stringify(fields));
    const { stop, ready } = keepIdentity({ configuration: door, token: "t".repeat(43), log });
    ready.catch(() => undefined);
    await eventually("it was answered", () => why.length > 0);
    stop();
    return why.join();
  };
  assert.match(await askedWith(right, "known"), /did not issue a certificate/);
  assert.match(await askedWith("0".repeat(64), "unknown"), /somebody else answers there/);
});
