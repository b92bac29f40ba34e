import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { encodePacket, type Seal, tagBytes } from "../../core/presence/swim/codec.ts";
import { hostName, peerName } from "../../model/cell/identifiers.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import { type RunningAuthority, runAuthority } from "../../runtime/identity/authority/authority.ts";
import { gossipKeyOf } from "../../runtime/identity/certificates.ts";
import { enrolNow } from "../../runtime/identity/own/enrol.ts";
import { gossipKeyBytes } from "../../runtime/identity/own/gossip-key.ts";
import { hashOfToken, newToken } from "../../runtime/identity/own/keys.ts";
import { keepPeers } from "../../runtime/identity/own/peers-follow.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { createSeal } from "../../runtime/presence/seal.ts";
import { fingerprintOfCertificate } from "../../runtime/transport/fingerprint.ts";
import { watchPeers } from "../../runtime/transport/peers-watch.ts";
import { followGossipKeys, type GossipKeys, keysFor } from "./gossip-keys.ts";

/** An authority and hosts over mutual TLS: one is removed, and what it knows opens nothing any more. */
let installation: TestInstallation;
let authority: RunningAuthority;
let peers: Readonly<Record<string, string>> = {};
let signing = "";
const lines: string[] = [];
const closing: (() => unknown)[] = [];
const place = (name: string) => {
  const directory = join(installation.directory, name);
  mkdirSync(directory, { mode: 0o700 });
  const file = (what: string): string => join(directory, what);
  const certificate = { certFile: file("cert.pem"), keyFile: file("key.pem"), caFile: file("ca.pem") };
  return { directory, certificate, peersFile: file("peers.json") };
};
before(async () => {
  installation = await createTestInstallation("gossip-keys");
  const spare = await installation.configure(peerName("spare"));
  const { configuration } = await installation.configure(peerName("place"), {
    change: {
      name: peerName("authority"),
      ...place("of-authority"),
      authority: { enrolmentPort: spare.configuration.httpPort ?? 0 },
    },
  });
  writeFileSync(configuration.peersFile, JSON.stringify({ peers: {} }));
  signing = join(configuration.directory, "authority");
  authority = await runAuthority(configuration);
  closing.push(authority.stop);
  peers = { authority: [configuration.address, configuration.distributionPort, configuration.httpPort].join(":") };
});
after(async () => {
  for (const close of closing.reverse()) await close();
  await installation.remove();
});

/** The file of a machine that has settled on the third epoch, of keys that nobody here has. */
const otherLife = (ca: string): string =>
  JSON.stringify({ ca, ring: { oldest: 3, send: 3, newest: 3 }, keys: { 3: hexOf("ab".repeat(32)) } });
const hexOf = (key: string): string => gossipKeyBytes(key).toString("hex");

const join1 = async (name: string): Promise<ProcessConfiguration> => {
  const { token } = newToken();
  const grants = [{ name: `host.${name}`, role: "host", addresses: ["127.0.0.1"] }];
  const desire = { hash: hashOfToken(token), cell: "root", grants, endsAtMs: Date.now() + 3_600_000 };
  await authority.enrol(`host-${name}`, desire as never);
  const own = place(`of-${name}`);
  writeFileSync(own.peersFile, JSON.stringify({ peers }));
  const enrolment = { authority: `127.0.0.1:${authority.enrolmentPort}`, fingerprint: authority.fingerprint };
  const presence = { gossipKeyFile: join(own.directory, "gossip.key") };
  const { configuration } = await installation.configure(peerName(`host.${name}`), {
    change: { ...own, enrolment, presence },
  });
  // What this machine was in before.
  writeFileSync(join(own.directory, "gossip-ring.json"), otherLife("another"));
  await enrolNow({ configuration, token, log: () => undefined });
  return configuration;
};
const run = async (configuration: ProcessConfiguration): Promise<GossipKeys> => {
  const keys = await followGossipKeys(configuration, (event, fields) => lines.push(`${event} ${fields.epoch}`));
  const unwatch = watchPeers(configuration.peersFile, keys.look);
  const stop = await keepPeers(configuration, { log: () => undefined });
  closing.push(stop, unwatch, keys.close);
  keys.look();
  return keys;
};
const sealed = (seal: Seal): Uint8Array =>
  encodePacket(
    {
      kind: "ping",
      seq: 1,
      from: hostName("h1"),
      target: hostName("h2"),
      digest: 0,
      generation: 1,
      incarnation: 1,
      updates: [],
    },
    seal,
  );
const reads = (seal: Seal, bytes: Uint8Array): boolean => seal.verify(bytes, bytes.length - tagBytes);
const ringOf = ({ directory }: ProcessConfiguration): string => {
  try {
    return JSON.stringify(JSON.parse(readFileSync(join(directory, "gossip-ring.json"), "utf8")).ring);
  } catch {
    return "none";
  }
};
const asking = (oldest: number, send: number, newest: number) => ({
  method: "GET" as const,
  path: `/gossip?oldest=${oldest}&send=${send}&newest=${newest}`,
});
const settled = (epoch: number): string => JSON.stringify({ oldest: epoch, send: epoch, newest: epoch });

test("a host that was removed reads and sends nothing once the others have the next key, which waits for all of them", async () => {
  const [one, two, previous, evil] = [await join1("h1"), await join1("h2"), await join1("h3"), await join1("h4")];
  const [first, second, gone] = [await run(one), await run(two), await run(evil)];
  const known = createSeal(readFileSync(evil.presence?.gossipKeyFile ?? ""));
  assert.ok(reads(first.seal, sealed(known)) && reads(known, sealed(second.seal)), "it is one of them");
  // One of the previous version follows the book and knows one key.
  await authority.enrol("host-h4", null);
  await eventually("the others read the next key", () =>
    [one, two].every((each) => ringOf(each).includes('"newest":1')),
  );
  assert.ok(reads(known, sealed(first.seal)), "nobody seals with it yet: the third could not read that");
  assert.ok(ringOf(one).includes('"send":0'));
  const { keys } = JSON.parse(await (await peerRequest(one, peerName("authority"), asking(0, 0, 1))).text());
  assert.deepEqual(keys, { 0: await gossipKeyOf(signing), 1: await gossipKeyOf(signing, 1) });

  // It is upgraded.
  const third = await run(previous);
  const hosts = [one, two, previous];
  await eventually("all have one key, another", () => hosts.every((each) => ringOf(each) === settled(1)));
  // The file comes first, since a host that has said that it has a key must have it after a crash.
  const members = [first, second, third];
  await eventually("nobody reads what it sends", () => !members.some(({ seal }) => reads(seal, sealed(known))));
  for (const { seal } of members) {
    assert.ok(!reads(known, sealed(seal)) && !reads(gone.seal, sealed(seal)), "what it hears");
    assert.ok(reads(first.seal, sealed(seal)));
  }
  await assert.rejects(peerRequest(evil, peerName("authority"), { method: "GET", path: "/gossip" }));
  assert.ok(lines.includes("gossip/changed 1"));

  // A file of one key is what the previous version reads; a host that starts again, or is new, has the present one.
  assert.equal(readFileSync(one.presence?.gossipKeyFile ?? "", "utf8"), `${await gossipKeyOf(signing, 1)}\n`);
  assert.ok(reads(first.seal, sealed(createSeal(readFileSync(one.presence?.gossipKeyFile ?? "")))));
  const again = await followGossipKeys(two, () => undefined);
  assert.ok(reads(first.seal, sealed(again.seal)));
  again.close();
  const late = await run(await join1("h5"));
  assert.ok(reads(first.seal, sealed(late.seal)) && reads(late.seal, sealed(first.seal)));
});

test("only hosts are told keys", async () => {
  const one = await join1("h6");
  const answer = await peerRequest(one, peerName("authority"), asking(0, 0, 0));
  const { keys } = JSON.parse(await answer.text());
  assert.ok(!JSON.stringify(keys).includes(await gossipKeyOf(signing)), "nor the first one once it has gone");
  assert.match(String(Object.values(keys)[0]), /^[0-9a-f]{64}$/);
});

test("what a machine keeps of another installation counts for nothing, here and at the authority", async () => {
  const one = await join1("h7");
  const file = join(one.directory, "gossip-ring.json");
  assert.ok(!existsSync(file), "whoever joins begins anew");
  const known = createSeal(readFileSync(one.presence?.gossipKeyFile ?? ""));
  writeFileSync(file, otherLife("another authority"));
  const begun = await followGossipKeys(one, () => undefined);
  begun.close();
  assert.ok(reads(begun.seal, sealed(known)) && reads(known, sealed(begun.seal)));

  // Other keys under numbers of this one: it asks, and hears so, even where its ring is the later one.
  writeFileSync(file, otherLife(fingerprintOfCertificate(readFileSync(one.certificate.caFile, "utf8"))));
  const told = JSON.parse(await (await peerRequest(one, peerName("authority"), asking(3, 3, 3))).text());
  assert.deepEqual([told.fits, told.ring], [false, JSON.parse(settled(1))]);
  const late = await run(one);
  await eventually("it has the others' key", () => reads(known, sealed(late.seal)) && reads(late.seal, sealed(known)));
  assert.equal(ringOf(one), settled(1), "and nobody was brought to its number");
});

test("a host that came while a later key was sealed with already takes its own for no earlier one", () => {
  const [first, second] = ["0a".repeat(32), "1b".repeat(32)];
  const ring = { oldest: 0, send: 1, newest: 1 };
  const all = { 0: hexOf(first), 1: hexOf(second) };
  assert.deepEqual(keysFor(ring, { 0: first, 1: second }, { 0: hexOf(second) }), all);
  assert.deepEqual(keysFor(ring, { 0: "2c".repeat(32), 1: second }, { 0: hexOf(first) }), all, "it came with its own");
  assert.deepEqual(keysFor(ring, { 1: second }, { 0: hexOf(first) }), all, "an authority of the previous version");
});
