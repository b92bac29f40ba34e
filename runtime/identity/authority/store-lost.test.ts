import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../installation.testing.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { createObserver } from "../../observation/observer.ts";
import { readCredentials } from "../../transport/mutual-tls.ts";
import { enrolNow } from "../own/enrol.ts";
import { certificateRequest, hashOfToken, newToken, ownKey } from "../own/keys.ts";
import { keepPeers } from "../own/peers-follow.ts";
import { type RunningAuthority, runAuthority } from "./authority.ts";
import { besideFile } from "./beside.ts";

/** The authority's store is removed from under its key, over mutual TLS. */
const hour = 3_600_000;
let installation: TestInstallation;
const closing: (() => unknown)[] = [];
before(async () => {
  installation = await createTestInstallation("store-lost");
});
after(async () => {
  for (const close of closing.reverse()) await close();
  await installation.remove();
});

const place = (name: string) => {
  const directory = join(installation.directory, name);
  mkdirSync(directory, { mode: 0o700 });
  const file = (what: string): string => join(directory, what);
  const certificate = { certFile: file("cert.pem"), keyFile: file("key.pem"), caFile: file("ca.pem") };
  return { directory, certificate, peersFile: file("peers.json") };
};

test("without its store the authority knows whom an operator had enrolled, says what happened, and is released", async () => {
  const spare = await installation.configure(peerName("spare"));
  const { configuration: at } = await installation.configure(peerName("place"), {
    change: {
      name: peerName("authority"),
      ...place("of-authority"),
      authority: { enrolmentPort: spare.configuration.httpPort ?? 0 },
    },
  });
  writeFileSync(at.peersFile, JSON.stringify({ peers: {} }));
  let observer = createObserver(at.name);
  let authority: RunningAuthority = await runAuthority(at, observer);
  closing.push(() => authority.stop());
  const peers = { authority: [at.address, at.distributionPort, at.httpPort].join(":") };
  const grants = (name: string) => [{ name, role: name.split(".")[0], addresses: ["127.0.0.1"] }];
  const joinAs = async (name: string): Promise<ProcessConfiguration> => {
    const { token } = newToken();
    const desire = { hash: hashOfToken(token), cell: "root", grants: grants(name), endsAtMs: Date.now() + hour };
    await authority.enrol(`joined-${name.replace(".", "-")}`, desire as never);
    const own = place(name);
    writeFileSync(own.peersFile, JSON.stringify({ peers }));
    const enrolment = { authority: `127.0.0.1:${authority.enrolmentPort}`, fingerprint: authority.fingerprint };
    const { configuration } = await installation.configure(peerName(name), { change: { ...own, enrolment } });
    await enrolNow({ configuration, token, log: () => undefined });
    return configuration;
  };
  const renewed = async (from: ProcessConfiguration): Promise<number> => {
    const body = JSON.stringify({ request: await certificateRequest(await ownKey(from.certificate.keyFile)) });
    const to = { host: "127.0.0.1", port: authority.enrolmentPort, method: "POST", path: "/renew", agent: false };
    const asking = request({ ...readCredentials(from), ...to, checkServerIdentity: () => undefined });
    const [answer] = await once(asking.end(body), "response");
    answer.resume();
    return answer.statusCode;
  };
  const lost = async () => (await observer.leftovers?.list())?.receivers;
  const beside = besideFile(join(at.directory, "authority"));

  const follower = await joinAs("presence.1");
  const seen: string[][] = [];
  const look = () => seen.push(Object.keys(JSON.parse(readFileSync(follower.peersFile, "utf8")).peers).sort());
  closing.push(await keepPeers(follower, { log: () => undefined }, look));
  const host = await joinAs("host.h4");
  const everybody = ["authority", "host.h4", "presence.1"];
  await eventually("it is known", () => seen.at(-1)?.join() === everybody.join());
  assert.deepEqual(await lost(), []);
  assert.equal(statSync(beside).mode & 0o777, 0o600);

  await authority.stop();
  for (const ending of ["", "-wal", "-shm"]) rmSync(join(at.directory, `state.sqlite${ending}`), { force: true });
  const told = seen.length;
  observer = createObserver(at.name);
  authority = await runAuthority(at, observer);
  assert.deepEqual(await lost(), [{ receiver: "authority", forked: true, itForked: false }]);
  assert.equal(await renewed(host), 200);
  const added = await joinAs("host.h5");
  await eventually("what is new is told", () => seen.at(-1)?.includes("host.h5") === true);
  assert.deepEqual(
    seen.slice(told).filter((names) => everybody.some((name) => !names.includes(name))),
    [],
    "nobody was ever without the machines of before",
  );
  const by = {
    who: "operator",
    door: "gateway",
    verb: "releaseOrphans",
    target: "authority",
    outcome: "done",
  } as const;
  await observer.leftovers?.release(peerName("authority"), by);
  const audit = await observer.audit?.read({});
  assert.deepEqual(
    audit?.records.map(({ verb, who }) => [verb, who]),
    [["releaseOrphans", "operator"]],
  );
  assert.deepEqual(await lost(), []);
  for (const machine of [host, added]) assert.equal(await renewed(machine), 200);

  // What cannot be read is a mark all the same.
  await authority.stop();
  assert.ok(existsSync(beside));
  writeFileSync(beside, "{");
  for (const ending of ["", "-wal", "-shm"]) rmSync(join(at.directory, `state.sqlite${ending}`), { force: true });
  observer = createObserver(at.name);
  authority = await runAuthority(at, observer);
  assert.equal((await lost())?.length, 1);
});
