import assert from "node:assert/strict";
import { type ChildProcess, fork, spawn } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { DesiredEnrolment } from "../../../core/documents/identity.ts";
import { cellName, peerName } from "../../../model/cell/identifiers.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../installation.testing.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { fingerprintOfCertificate } from "../../transport/fingerprint.ts";
import { newToken } from "../own/keys.ts";

/**
 * A whole installation is dark until its certificates have ended: processes on the loopback with certificates of seconds.
 * Everybody is started again, the authority last, as after a power cut of a year (decisions 29, 32).
 */
const lifetimeMs = 6000;
const names = ["host.h1", "host.h2", "agent.s1", "placer"] as const;
type Name = (typeof names)[number];
const tokens = new Map(names.map((name) => [name as string, newToken()]));
const alive = new Set<ChildProcess>();
let installation: TestInstallation;
let authority: { readonly configuration: ProcessConfiguration; readonly file: string };
let enrolmentPort = 0;
const members = new Map<Name, { readonly configuration: ProcessConfiguration; readonly file: string }>();

const kept = (child: ChildProcess): ChildProcess => {
  alive.add(child);
  child.once("exit", () => alive.delete(child));
  return child;
};
const startAuthority = (): ChildProcess =>
  kept(spawn(process.execPath, [join(import.meta.dirname, "../../main.ts"), authority.file], { stdio: "ignore" }));

interface Member {
  readonly running: () => boolean;
  readonly reached: ReadonlySet<string>;
}
const start = (name: Name, ...peers: readonly Name[]): Member => {
  const { file } = members.get(name) ?? assert.fail();
  const child = kept(
    fork(join(import.meta.dirname, "../own/member.testing.ts"), [file, ...peers], { stdio: "ignore" }),
  );
  const reached = new Set<string>();
  let running = false;
  child.on("message", (said: { readonly running?: true; readonly reached?: string }) => {
    running ||= said.running === true;
    if (said.reached !== undefined) reached.add(said.reached);
  });
  return { running: () => running, reached };
};
const powerCut = async (): Promise<void> => {
  await Promise.all(
    [...alive].map(async (child) => {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    }),
  );
};

const certificateOf = (name: Name): X509Certificate | null => {
  const { certFile } = members.get(name)?.configuration.certificate ?? {};
  return certFile !== undefined && existsSync(certFile) ? new X509Certificate(readFileSync(certFile)) : null;
};
const isValid = (name: Name): boolean => (certificateOf(name)?.validToDate.getTime() ?? 0) > Date.now();
const pinsOf = (name: Name): readonly string[] => {
  const file = members.get(name)?.configuration.pinsFile ?? "";
  return existsSync(file) ? Object.keys(JSON.parse(readFileSync(file, "utf8")).pins).sort() : [];
};

before(async () => {
  installation = await createTestInstallation("power-cut");
  const spare = await installation.configure(peerName("spare"));
  enrolmentPort = spare.configuration.httpPort ?? 0;
  const own = join(installation.directory, "authority-own");
  await mkdir(own, { mode: 0o700 });
  const at = (name: string): string => join(own, name);
  authority = await installation.configure(peerName("place-of-authority"), {
    change: {
      name: peerName("authority"),
      role: "authority",
      directory: own,
      certificate: { certFile: at("certificate.pem"), keyFile: at("key.pem"), caFile: at("authority.pem") },
      authority: { lifetimeMs, enrolmentPort, enrolments: enrolmentsUntil(Date.now() + 3_600_000) },
    },
  });
});
after(async () => {
  await powerCut();
  await installation.remove();
});

const enrolmentsUntil = (endsAtMs: number): Readonly<Record<string, DesiredEnrolment>> =>
  Object.fromEntries(
    names.map((name) => {
      const [role = ""] = name.split(".");
      const grants = [{ name: peerName(name), role, addresses: ["127.0.0.1"] }];
      return [name.replace(".", "-"), { hash: tokens.get(name)?.hash ?? "", cell: cellName("root"), grants, endsAtMs }];
    }),
  );
/** The tokens have ended too, which nobody has to wait for: whoever starts the authority again says so. */
const endTokens = async (): Promise<void> => {
  const { configuration, file } = authority;
  const ended = { ...configuration.authority, enrolments: enrolmentsUntil(Date.now()) };
  await writeFile(file, JSON.stringify({ ...configuration, authority: ended }));
};

const configure = async (name: Name): Promise<void> => {
  const own = join(installation.directory, `${name}-own`);
  await mkdir(own, { mode: 0o700 });
  const at = (file: string): string => join(own, file);
  await writeFile(at("token"), `${tokens.get(name)?.token}\n`, { mode: 0o600 });
  const ca = readFileSync(join(authority.configuration.directory, "authority", "authority.pem"), "utf8");
  const enrolment = { authority: `127.0.0.1:${enrolmentPort}`, fingerprint: fingerprintOfCertificate(ca) };
  members.set(
    name,
    await installation.configure(peerName(name), {
      change: {
        certificate: { certFile: at("certificate.pem"), keyFile: at("key.pem"), caFile: at("authority.pem") },
        enrolment: { ...enrolment, tokenFile: at("token") },
        pinsFile: at("pins.json"),
      },
    }),
  );
};

test("after a darkness longer than any certificate, machines let each other in by their pins, and all are renewed", async () => {
  startAuthority();
  await eventually("the authority answers", () => existsSync(authority.configuration.certificate.certFile));
  for (const name of names) await configure(name);
  for (const name of names) start(name);
  // At the renewal, which comes before their end, all have joined.
  const all = ["agent.s1", "authority", "host.h1", "host.h2"];
  await eventually("hosts know each other's keys", () =>
    (["host.h1", "host.h2", "agent.s1"] as const).every((name) => pinsOf(name).join() === all.join()),
  );
  const keys = names.map((name) => fingerprintOfCertificate(certificateOf(name)?.toString() ?? ""));
  await powerCut();
  await endTokens();
  const ends = Math.max(...names.map((name) => certificateOf(name)?.validToDate.getTime() ?? 0));
  await sleep(ends - Date.now() + 1100);
  assert.deepEqual(names.filter(isValid), [], "it was long enough");

  // The hosts and the storage come back, and nobody is there yet who could give them certificates.
  const [one, two] = [start("host.h1", "host.h2"), start("host.h2", "host.h1")];
  const [agent, placer] = [start("agent.s1"), start("placer", "host.h1")];
  await eventually("hosts reach each other", () => one.reached.has("host.h2") && two.reached.has("host.h1"));
  await eventually("the agent goes on with its exports", agent.running);
  assert.deepEqual(names.filter(isValid), [], "by nothing but their pins");

  startAuthority();
  const machines = ["host.h1", "host.h2", "agent.s1"] as const;
  await eventually("machines are renewed", () => machines.every(isValid));
  assert.deepEqual(
    names.map((name) => fingerprintOfCertificate(certificateOf(name)?.toString() ?? "")),
    keys,
    "over the keys that they had",
  );
  // A service needs a token for that, and its own has ended: whoever starts it makes it a new one.
  assert.ok(!placer.running() && !isValid("placer") && placer.reached.size === 0);
});
