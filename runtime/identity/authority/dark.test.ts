import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { NodeInput } from "../../../core/distribution/node/types.ts";
import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../installation.testing.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { fingerprintOf } from "../../transport/fingerprint.ts";
import { createTransport, type Transport } from "../../transport/transport.ts";
import { readAuthority, signCertificate } from "../certificates.ts";
import { keepIdentity } from "../own/enrol.ts";
import { newToken, ownKey } from "../own/keys.ts";
import { type RunningAuthority, runAuthority } from "./authority.ts";

/** An installation that was dark past its certificates' end: who still lets whom in, and how it gets new ones. */
const day = 86_400_000;
let installation: TestInstallation;
const closing: (() => Promise<void> | void)[] = [];
before(async () => {
  installation = await createTestInstallation("dark");
});
after(async () => {
  for (const close of closing.reverse()) await close();
  await installation.remove();
});

/** A peer with a certificate that ended a year ago, or is good for another day. */
const configure = async (
  name: string,
  ended: boolean,
  pins?: Readonly<Record<string, string>>,
): Promise<ProcessConfiguration> => {
  const pinsFile = join(installation.directory, `${name}.pins.json`);
  if (pins !== undefined) writeFileSync(pinsFile, JSON.stringify({ pins }));
  const { configuration } = await installation.configure(peerName(name), {
    change: pins === undefined ? {} : { pinsFile },
  });
  const authority = await readAuthority(join(installation.directory, "authority"));
  assert.ok(authority !== null);
  const { keys } = await ownKey(configuration.certificate.keyFile);
  const from = Date.now() - 400 * day;
  const to = ended ? from + day : Date.now() + day;
  const content = { name: peerName(name), publicKey: keys.publicKey, addresses: ["127.0.0.1"] };
  const dates = { notBefore: new Date(from), notAfter: new Date(to) };
  writeFileSync(configuration.certificate.certFile, await signCertificate(authority, { ...content, ...dates }));
  return configuration;
};
const keyOf = ({ certificate }: ProcessConfiguration): string =>
  fingerprintOf(new X509Certificate(readFileSync(certificate.certFile)).publicKey);
const pin = (file: ProcessConfiguration, pins: Readonly<Record<string, string>>): void =>
  writeFileSync(file.pinsFile ?? assert.fail(), JSON.stringify({ pins }));

interface End {
  readonly transport: Transport;
  readonly logs: { readonly event: string; readonly why: string }[];
  readonly connected: () => readonly PeerName[];
}
const run = async (configuration: ProcessConfiguration): Promise<End> => {
  const inputs: NodeInput[] = [];
  const logs: { readonly event: string; readonly why: string }[] = [];
  const transport = await createTransport(configuration, {
    input: (input) => inputs.push(input),
    log: (event, { why }) => logs.push({ event, why: String(why) }),
  });
  closing.push(() => transport.stop());
  const connected = () => inputs.flatMap((input) => (input.kind === "connected" ? [input.peer] : []));
  return { transport, logs, connected };
};
const whys = ({ logs }: End, event: string): readonly string[] =>
  logs.filter((line) => line.event === event).map(({ why }) => why);

test("hosts whose certificates have ended know each other by their pinned keys, and nobody else", async () => {
  const one = await configure("host.h1", true, {});
  const two = await configure("host.h2", true, {});
  const stranger = await configure("host.h3", true, {});
  const agent = await configure("agent.s1", true, {});
  const good = await configure("placer", false);
  pin(one, { "host.h2": keyOf(two), "agent.s1": keyOf(agent) });
  pin(two, { "host.h1": keyOf(one) });
  pin(stranger, { "host.h1": keyOf(one) });
  pin(agent, { "host.h1": keyOf(one) });
  const [first, second, third, fourth, fifth] = await Promise.all([one, two, stranger, agent, good].map(run));
  assert.ok(first && second && third && fourth && fifth);
  second.transport.connect(peerName("host.h1"));
  await eventually("both are there", () => first.connected().length === 1 && second.connected().length === 1);
  assert.deepEqual([first.connected(), second.connected()], [["host.h2"], ["host.h1"]]);
  assert.match(whys(first, "identity/pinned")[0] ?? "", /"host.h2" ended at .* 399 days before/);
  assert.equal(whys(second, "identity/pinned").length, 1);

  // One that is not pinned, one whose kind is not, and one without pins that has a valid certificate.
  third.transport.connect(peerName("host.h1"));
  await eventually("the first refused it", () => whys(first, "transport/refused").length > 0);
  assert.match(whys(first, "transport/refused")[0] ?? "", /"host.h3" ended at/);
  fourth.transport.connect(peerName("host.h1"));
  await eventually("the agent refuses", () => whys(fourth, "transport/unreachable").length > 0);
  assert.match(whys(fourth, "transport/unreachable")[0] ?? "", /"host.h1" ended at/);
  fifth.transport.connect(peerName("host.h1"));
  await eventually("a service refuses", () => whys(fifth, "transport/unreachable").length > 0);
  assert.match(whys(fifth, "transport/unreachable")[0] ?? "", /has expired by this machine's clock, which shows 20/);
  // The other way round: it is called by one whose certificate has ended.
  second.transport.connect(peerName("placer"));
  await eventually("a service lets none in", () => whys(fifth, "transport/refused").length > 0);
  assert.match(whys(fifth, "transport/refused").at(-1) ?? "", /"host.h2" ended at/);
  assert.deepEqual(first.connected(), ["host.h2"]);

  // The pinned key is looked at, not the name alone.
  pin(one, { "host.h2": keyOf(stranger) });
  pin(two, { "host.h1": keyOf(stranger) });
  const another = await run({ ...two, distributionPort: 0 });
  another.transport.connect(peerName("host.h1"));
  await eventually("another key is refused", () => whys(another, "transport/unreachable").length > 0);
  assert.match(whys(another, "transport/unreachable")[0] ?? "", /not the one that was pinned/);
});

test("a foreign certificate is refused by whoever has pins, whatever its dates, name and key", async () => {
  const one = await configure("host.h4", false, {});
  const { configuration: foreign } = await installation.configure(peerName("host.h5"), {
    authority: installation.foreignAuthority,
    change: { pinsFile: one.pinsFile ?? "" },
  });
  pin(one, { "host.h5": keyOf(foreign), "host.h4": keyOf(one) });
  const [first, second] = await Promise.all([run(one), run(foreign)]);
  second.transport.connect(peerName("host.h4"));
  await eventually("it does not get in", () => whys(second, "transport/unreachable").length > 0);
  first.transport.connect(peerName("host.h5"));
  await eventually("nor does it answer", () => whys(first, "transport/unreachable").length > 0);
  assert.match(whys(first, "transport/unreachable")[0] ?? "", /not signed by this installation's authority/);
  assert.deepEqual([...first.connected(), ...second.connected()], []);
});

test("a host that was dark renews by its pinned key, a service does not", async () => {
  const spare = await installation.configure(peerName("spare"));
  const own = join(installation.directory, "root-controller");
  mkdirSync(own, { recursive: true, mode: 0o700 });
  const at = (name: string): string => join(own, name);
  const { configuration } = await installation.configure(peerName("place"), {
    change: {
      name: peerName("authority"),
      directory: own,
      certificate: { certFile: at("certificate.pem"), keyFile: at("key.pem"), caFile: at("authority.pem") },
      authority: { enrolmentPort: spare.configuration.httpPort ?? 0 },
    },
  });
  const authority: RunningAuthority = await runAuthority(configuration);
  closing.push(authority.stop);
  const join1 = async (name: string, role: string) => {
    const { token, hash } = newToken();
    const grants = [{ name, role, addresses: ["127.0.0.1"] }];
    await authority.enrol(name.replace(".", "-"), { hash, cell: "root", grants, endsAtMs: Date.now() + day });
    const place = join(installation.directory, `${name}-own`);
    mkdirSync(place, { mode: 0o700 });
    const file = (what: string): string => join(place, what);
    const { configuration: joined } = await installation.configure(peerName(name), {
      change: {
        certificate: { certFile: file("certificate.pem"), keyFile: file("key.pem"), caFile: file("authority.pem") },
        pinsFile: file("pins.json"),
        enrolment: { authority: `127.0.0.1:${authority.enrolmentPort}`, fingerprint: authority.fingerprint },
      },
    });
    const begin = (given: string | null) => {
      const logs: { readonly event: string; readonly why: string }[] = [];
      const kept = keepIdentity({
        configuration: joined,
        token: given,
        log: (event, { why }) => logs.push({ event, why: String(why) }),
      });
      closing.push(kept.stop);
      return { ...kept, logs };
    };
    const kept = begin(token);
    await kept.ready;
    kept.stop();
    // A year in the dark: the certificate is one that the authority signed long ago over the same key.
    const signing = await readAuthority(join(own, "authority"));
    assert.ok(signing !== null);
    const { keys } = await ownKey(joined.certificate.keyFile);
    const from = Date.now() - 400 * day;
    const content = { name: peerName(name), publicKey: keys.publicKey, addresses: [] };
    const dates = { notBefore: new Date(from), notAfter: new Date(from + day) };
    writeFileSync(joined.certificate.certFile, await signCertificate(signing, { ...content, ...dates }));
    const validTo = () => new X509Certificate(readFileSync(joined.certificate.certFile)).validToDate.getTime();
    return { joined, begin, validTo };
  };
  const host = await join1("host.h7", "host");
  const pins = JSON.parse(readFileSync(host.joined.pinsFile ?? "", "utf8"));
  assert.deepEqual(Object.keys(pins.pins).sort(), ["authority", "host.h7"]);
  const back = host.begin(null);
  await back.ready;
  await eventually("it has a new certificate", () => host.validTo() > Date.now());

  const placer = await join1("placer", "placer");
  const refused = placer.begin(null);
  await eventually("it is refused", () => refused.logs.length > 0);
  assert.match(refused.logs[0]?.why ?? "", /no valid certificate and no token/);
  assert.ok(placer.validTo() < Date.now());

  // A host that was removed is dark for good.
  const gone = await join1("host.h8", "host");
  await authority.enrol("host-h8", null);
  const late = gone.begin(null);
  await eventually("it is refused as well", () => late.logs.some(({ event }) => event === "identity/waiting"));
  assert.match(late.logs[0]?.why ?? "", /"host.h8" ended at/);
  assert.ok(gone.validTo() < Date.now());
});
