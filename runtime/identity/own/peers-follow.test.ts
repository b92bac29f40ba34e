import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { DesiredEnrolment, IdentityGrant } from "../../../core/documents/identity.ts";
import { cellName, peerName, uid } from "../../../model/cell/identifiers.ts";
import { peerRequest } from "../../http/https.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../installation.testing.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { fingerprintOfCertificate } from "../../transport/fingerprint.ts";
import { readWhoIsThere } from "../../transport/peers.ts";
import { keepIdentity } from "./enrol.ts";
import { newToken } from "./keys.ts";

/** An authority and services that follow it, as processes on loopback: nothing but the authority tells them of anybody. */
const alive = new Set<ChildProcess>();
const outputs: (() => string)[] = [];
let installation: TestInstallation;
let authority: { readonly configuration: ProcessConfiguration; readonly file: string };
let root: ProcessConfiguration;
let place = "";

interface Program {
  readonly child: ChildProcess;
  readonly output: () => string;
  count(event: string): number;
}
const start = (file: string): Program => {
  const child = spawn(process.execPath, [join(import.meta.dirname, "../../main.ts"), file], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  alive.add(child);
  child.once("exit", () => alive.delete(child));
  outputs.push(() => output);
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk) => {
      output += chunk;
    });
  return { child, output: () => output, count: (event) => output.split(`"event":"${event}"`).length - 1 };
};
const end = async ({ child }: Program, signal: NodeJS.Signals): Promise<number | null> => {
  const exited = once(child, "exit");
  child.kill(signal);
  return (await exited)[0] as number | null;
};

/** Ports where nobody listens are as good: only what the book says is looked at. */
const grant = (name: string, role: string, number: number) => ({
  name: peerName(name),
  role,
  addresses: ["127.0.0.1"],
  ports: { distribution: 7000 + number, http: 7500 + number },
});
const desire = (hash: string, ...grants: readonly IdentityGrant[]): DesiredEnrolment => ({
  hash,
  cell: cellName("root"),
  grants,
  endsAtMs: Date.now() + 600_000,
});
const enrol = async (id: string, value: DesiredEnrolment | null): Promise<void> => {
  const answer = await peerRequest(root, peerName("authority"), {
    method: value === null ? "DELETE" : "PUT",
    path: `/enrolments/${id}`,
    ...(value === null ? {} : { body: JSON.stringify(value) }),
  });
  assert.equal(answer.status, 204, await answer.text());
};

const own = async (name: string): Promise<string> => {
  const directory = join(installation.directory, `${name}-own`);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  return directory;
};
const certificateIn = (directory: string): ProcessConfiguration["certificate"] => ({
  certFile: join(directory, "certificate.pem"),
  keyFile: join(directory, "key.pem"),
  caFile: join(directory, "authority.pem"),
});

const tokens = { root: newToken(), placer: newToken(), storage: newToken(), late: newToken() };
/** A service that knows where the authority is, its fingerprint and a token, and nothing more. */
const service = async (name: string, role: ProcessConfiguration["role"], token: string) => {
  const directory = await own(name);
  const caFile = join(authority.configuration.directory, "authority", "authority.pem");
  await eventually("the authority has a key", () => existsSync(caFile) && readFileSync(caFile).length > 0);
  await writeFile(join(directory, "token"), token, { mode: 0o600 });
  const peersFile = join(directory, "peers.json");
  await writeFile(peersFile, JSON.stringify({ peers: { authority: place } }));
  const { configuration, file } = await installation.configure(peerName(name), {
    change: {
      role,
      peersFile,
      followPeers: true,
      certificate: certificateIn(directory),
      enrolment: {
        authority: `127.0.0.1:${authority.configuration.authority?.enrolmentPort}`,
        fingerprint: fingerprintOfCertificate(readFileSync(caFile, "utf8")),
        tokenFile: join(directory, "token"),
      },
    },
  });
  const book = (): Readonly<Record<string, string>> => JSON.parse(readFileSync(peersFile, "utf8")).peers;
  return { configuration, file, book };
};

before(async () => {
  installation = await createTestInstallation("peers-follow");
  const spare = await installation.configure(peerName("spare"));
  authority = await installation.configure(peerName("place-of-authority"), {
    change: {
      name: peerName("authority"),
      role: "authority",
      peersFile: join(installation.directory, "peers-of-authority.json"),
      followPeers: true,
      certificate: certificateIn(await own("authority")),
      authority: {
        enrolmentPort: spare.configuration.httpPort ?? 0,
        peers: { "agent.s1": "127.0.0.1:7001:7501" },
        enrolments: {
          root: desire(tokens.root.hash, { ...grant("controller.root", "controller", 10), cellUid: uid("root") }),
          placer: desire(tokens.placer.hash, grant("placer", "placer", 11)),
          storage: desire(tokens.storage.hash, grant("storage-manager", "storage-manager", 12)),
          late: desire(tokens.late.hash, grant("placer.2", "placer", 13)),
        },
      },
    },
  });
  const { address, distributionPort, httpPort } = authority.configuration;
  place = [address, distributionPort, httpPort].join(":");
});
after(async () => {
  for (const child of alive) child.kill("SIGKILL");
  await installation.remove();
});

const story = async (): Promise<void> => {
  let running = start(authority.file);
  const placer = await service("placer", "placer", tokens.placer.token);
  const storage = await service("storage-manager", "storage-manager", tokens.storage.token);
  const programs = [start(placer.file), start(storage.file)];
  const [placing, storing] = programs;
  assert.ok(placing !== undefined && storing !== undefined);
  const books = () => [placer.book(), storage.book()];
  const both = (name: string, entry: string | undefined): Promise<true> =>
    eventually(`both know where ${name} is: ${entry}`, () => books().every((book) => book[name] === entry));
  await both("agent.s1", "127.0.0.1:7001:7501");
  for (const book of books())
    assert.deepEqual(book, {
      "agent.s1": "127.0.0.1:7001:7501",
      authority: place,
      "controller.root": "127.0.0.1:7010:7510",
      placer: "127.0.0.1:7011:7511",
      "placer.2": "127.0.0.1:7013:7513",
      "storage-manager": "127.0.0.1:7012:7512",
    });
  for (const { configuration } of [placer, storage, authority]) {
    const isThere = await readWhoIsThere(configuration);
    const asked = [uid("root"), null, "c-1"].map((instance) => isThere(peerName("controller.root"), instance));
    assert.deepEqual(asked, [true, true, false], `${configuration.name} knows whose controller it is`);
    assert.deepEqual([isThere(peerName("placer"), "p-1"), isThere(peerName("placer.3"), null)], [true, false]);
  }
  await eventually("who follows agents looks for one", () => storing.output().includes('"peer":"agent.s1"'));

  const joined = await service("controller.root", "controller", tokens.root.token);
  const kept = keepIdentity({ ...joined, token: tokens.root.token, log: () => undefined });
  await kept.ready;
  kept.stop();
  root = joined.configuration;
  const starts = storing.count("process/started");
  await enrol("h1", desire(newToken().hash, grant("host.h1", "host", 21), grant("agent.s2", "agent", 22)));
  await both("host.h1", "127.0.0.1:7021:7521");
  await eventually("who follows hosts looks for it", () => placing.output().includes('"peer":"host.h1"'));
  await eventually("who follows agents has begun anew", () => storing.count("process/started") > starts);

  await end(running, "SIGKILL");
  await eventually("they notice", () => programs.every((each) => each.count("peers/waiting") > 0));
  const files = books();
  const late = await service("placer.2", "placer", tokens.late.token);
  assert.ok(placing.child.exitCode === null && storing.child.exitCode === null);
  assert.deepEqual(books(), files, "what they know stays");
  running = start(authority.file);
  const waiting = start(late.file);
  await eventually("the authority is back", async () =>
    enrol("h2", desire(newToken().hash, grant("host.h2", "host", 23))).then(
      () => true,
      () => false,
    ),
  );
  await both("host.h2", "127.0.0.1:7023:7523");
  await eventually("so has the one that was new", () => late.book()["host.h2"] === "127.0.0.1:7023:7523");
  await enrol("h1", null);
  await both("host.h1", undefined);

  // One that has enrolled starts while the authority is away: it needs nobody, and is told when it comes back.
  assert.equal(await end(placing, "SIGTERM"), 0, placing.output());
  await end(running, "SIGKILL");
  const again = start(placer.file);
  await eventually("it runs", () => again.count("process/started") > 0);
  await eventually("it looks for whom it knows", () => again.output().includes('"peer":"host.h2"'));
  running = start(authority.file);
  await eventually("the authority is back", async () =>
    enrol("h3", desire(newToken().hash, grant("host.h3", "host", 24))).then(
      () => true,
      () => false,
    ),
  );
  await both("host.h3", "127.0.0.1:7024:7524");
  for (const program of [again, storing, waiting, running])
    assert.equal(await end(program, "SIGTERM"), 0, program.output());
};

test("two services have the authority's book, a new name appears in both, and the authority may die between", {
  timeout: 120_000,
}, async () => {
  await story().catch((error: Error) => {
    throw new Error(`${error.message}\n${outputs.map((output) => output()).join("\n")}`, { cause: error });
  });
});
