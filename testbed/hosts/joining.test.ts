import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { readJoinToken, writeJoinToken } from "../../runtime/identity/join-token.ts";
import type { PeerBook } from "../../runtime/installation.ts";
import { layWire, type Machine, type Running, says, startGateway, until, type Wire } from "./machines.testing.ts";

/**
 * Machines become a cloud as an operator makes them one (docs/operator.md), with the commands and the units of the
 * repository: a first one up to the birth's processes, and others that join it with tokens. What a VM would do is left out.
 */
const gatewayAddress = "10.0.0.40";
const images = "/etc/images";
let wire: Wire;
const machines = new Map<string, Machine>();
const own = (name: string): Machine => machines.get(name) ?? assert.fail(`there is no machine ${name}`);

before(async () => {
  wire = await layWire();
  for (const number of [1, 2, 3, 4]) {
    const machine = await wire.machine(`h${number}`, `10.0.1.${number}`);
    machines.set(machine.name, machine);
    // No VM boots here: an agent only has to know where its images would be.
    const stubs = `for image in service tiny; do mkdir -p ${images}/$image; echo "{}" > ${images}/$image/manifest.json; done`;
    assert.equal((await machine.run(["sh", "-euc", stubs])).code, 0);
  }
});
after(() => wire.remove());

const startUnits = async (machine: Machine, agent: boolean): Promise<void> => {
  for (const unit of ["machines", "bridge", ...(agent ? ["agent"] : []), "host"])
    await machine.startUnit(`cells-${unit}.service`);
};

const token = async (name: string, address: string, ...more: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await own("h1").cells(["host", "token", name, "--address", address, ...more]);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /cells host join.* works once/);
  return stdout.trim();
};

const join = async (name: string, given: string, agent: boolean): Promise<Running> => {
  const storage = agent ? ["--storage", "/var/lib/cells/storage", "--images", images] : [];
  const joining = own(name).begin(["host", "join", ...storage], given);
  await Promise.race([says(joining, /waiting for host.* to listen/), joining.ended]);
  // As after a boot: what was made in there is gone, and the agent is the first to come.
  await own(name).run(["rm", "-rf", "/run/cells"]);
  await startUnits(own(name), agent);
  assert.equal(await joining.ended, 0, joining.lines.join("\n"));
  return joining;
};

const certificate = async (name: string, role = "host"): Promise<X509Certificate> =>
  new X509Certificate((await own(name).read(`/var/lib/cells/${role}/identity/certificate.pem`)) ?? "");
const book = async (name: string): Promise<PeerBook["peers"]> =>
  (JSON.parse((await own(name).read("/var/lib/cells/host/peers.json")) ?? "{}") as Partial<PeerBook>).peers ?? {};

test("the first machine is made with one command, up to the process that makes the first VM", async () => {
  const h1 = own("h1");
  const bootstrapping = h1.begin(["bootstrap", "--images", images]);
  await says(bootstrapping, /waiting for host.h1 to listen/);
  await startUnits(h1, true);
  await says(bootstrapping, /the bootstrap model was accepted/);
  const text = bootstrapping.lines.join("\n");
  assert.match(text, /systemd does not run here[\s\S]*host\/main.ts \/etc\/cells\/host.json/);
  const credential = ((await h1.read("/etc/cells/operator.credential")) ?? "").trim();
  assert.ok(credential.length > 20 && !text.includes(credential), "the credential is never shown");
  await bootstrapping.end();

  // The bridge has what the interface had.
  const addresses = (await h1.run(["ip", "-br", "-4", "address"])).stdout;
  assert.match(addresses, /cells0 +UP +10\.0\.1\.1\/16/);
  assert.doesNotMatch(addresses, /eth0/);
  // Its first certificates were half over; the authority of the birth has renewed them.
  for (const role of ["host", "agent"])
    await until(
      `${role}.h1 has a certificate of the running authority`,
      async () => (await certificate("h1", role)).validFromDate.getTime(),
      (from) => from > Date.now() - 2 * 3_600_000,
    );
  // It is interrupted, and given again.
  const again = h1.begin(["bootstrap", "--images", images]);
  await says(again, /the bootstrap model was accepted/);
  await again.end();
  assert.equal(((await h1.read("/etc/cells/operator.credential")) ?? "").trim(), credential);

  const { hashCredential } = await import("../../runtime/http/bearer.ts");
  await startGateway(h1, gatewayAddress, hashCredential(credential));
});

test("two machines join with tokens, and all know of all", async () => {
  const [second, third] = [
    await token("h2", "10.0.1.2", "--agent"),
    await token("h3", "10.0.1.3", "--tags", "ssd,quiet"),
  ];
  const told = await own("h1").cells(["get", "root/hosts/h3"]);
  assert.match(told.stdout, /x\.tags[\s\S]*ssd[\s\S]*quiet/, "what it joins as stands there before it joins");
  const otherwise = await own("h1").cells(["host", "token", "h3", "--address", "10.0.1.3", "--tags", "hdd"]);
  assert.equal(otherwise.code, 1, otherwise.stdout);
  assert.match(
    otherwise.stderr,
    /h3 was to join with `x\.tags` \["hdd"\], and `root\/hosts\/h3` has \["ssd","quiet"\]/,
  );
  const joined = await join("h2", second, true);
  assert.match(
    joined.lines.join("\n"),
    /host.h2 has its certificate[\s\S]*agent.h2 has its certificate[\s\S]*h2 has joined/,
  );
  await join("h3", third, false);
  for (const name of ["h1", "h2", "h3"])
    await until(
      `${name} knows all`,
      () => book(name),
      (peers) =>
        peers["host.h1"] === "10.0.1.1" &&
        peers["agent.h1"] === "10.0.1.1:7130:7131" &&
        peers["host.h2"] === "10.0.1.2" &&
        peers["agent.h2"] === "10.0.1.2:7130:7131" &&
        peers["host.h3"] === "10.0.1.3" &&
        peers["agent.h3"] === undefined,
    );

  const shown = await Promise.all(["h1", "h2", "h3"].map((name) => certificate(name)));
  const authority = new X509Certificate((await own("h3").read("/var/lib/cells/host/identity/authority.pem")) ?? "");
  assert.deepEqual(
    shown.map((each) => /CN=(.*)$/m.exec(each.subject)?.[1]),
    ["host.h1", "host.h2", "host.h3"],
  );
  assert.ok(shown.every((each) => each.verify(authority.publicKey)));
  const keys = shown.map((each) => each.publicKey.export({ type: "spki", format: "pem" }));
  assert.equal(new Set(keys).size, 3, "each has a key of its own");
  const gossip = await Promise.all(
    ["h1", "h2", "h3"].map((name) => own(name).read("/var/lib/cells/host/identity/gossip.key")),
  );
  assert.match(gossip[0] ?? "", /^[0-9a-f]{64}\n$/);
  assert.equal(new Set(gossip).size, 1, "and all the same key for gossip");
  const pins = JSON.parse((await own("h3").read("/var/lib/cells/host/identity/pins.json")) ?? "{}");
  assert.deepEqual(
    ["agent.h1", "agent.h2", "authority", "host.h1", "host.h2", "host.h3"].filter(
      (name) => pins.pins[name] === undefined,
    ),
    [],
  );
  // What stands where others might read it.
  const secrets = "find /etc/cells /var/lib/cells -type f ( -name *.pem -o -name *.key -o -name *.token ) -perm /077";
  assert.equal((await own("h2").run(secrets.split(" "))).stdout, "");
  const left = await own("h2").run(["grep", "-rlF", "cells-join.", "/etc/cells", "/var/lib/cells"]);
  assert.equal(left.stdout, "", "the token is nowhere");

  // A thief of the token, who changes it to fit.
  const read = readJoinToken(third);
  assert.ok(read.ok);
  const stolen = writeJoinToken({ ...read.value, name: "h4", address: "10.0.1.4" });
  const late = await own("h4").cells(["host", "join"], stolen);
  assert.equal(late.code, 1, late.stdout);
  assert.match(late.stderr, /host.h4 was not let in: .*unknown, spent or expired/);
  const elsewhere = await own("h4").cells(["host", "join"], third);
  assert.match(elsewhere.stderr, /has 10.0.1.4, and not 10.0.1.3/);
});

test("an expired token, a wrong credential and a wrong address open nothing", async () => {
  const given = readJoinToken(await token("h4", "10.0.1.4"));
  assert.ok(given.ok);
  const { newToken } = await import("../../runtime/identity/own/keys.ts");
  const expired = newToken();
  const desire = {
    hash: expired.hash,
    cell: "root",
    endsAtMs: Date.now() - 1000,
    grants: [{ name: "host.h4", role: "host", addresses: ["10.0.1.4"] }],
  };
  // As the root controller would, an hour too late.
  const put = `
    import { readFileSync } from "node:fs";
    import { request } from "node:https";
    import { issueCertificate } from "${fileURLToPath(new URL("../../runtime/identity/certificates.ts", import.meta.url))}";
    const files = await issueCertificate("/var/lib/cells/authority", "controller.root", []);
    const options = { host: "10.0.0.31", port: 7125, method: "PUT", path: "/enrolments/joined-host-h4", rejectUnauthorized: false,
      // A connection that is kept would keep this program, too, for as long as the authority keeps it: two minutes.
      agent: false, cert: readFileSync(files.certFile), key: readFileSync(files.keyFile) };
    request(options, (answer) => console.log(answer.statusCode)).end(readFileSync(0));`;
  const done = await own("h1").run(
    [process.execPath, "--input-type=module-typescript", "-e", put],
    JSON.stringify(desire),
  );
  assert.equal(done.stdout.trim(), "204", done.stderr);
  for (const host of [given.value.host, expired.token]) {
    const refused = await own("h4").cells(["host", "join"], writeJoinToken({ ...given.value, host }));
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /host.h4 was not let in: .*unknown, spent or expired/);
  }
  // It is what the token says that is wrong, and nothing else: with a new one the machine gets in.
  const good = own("h4").begin(["host", "join"], await token("h4", "10.0.1.4"));
  await says(good, /host.h4 has its certificate/);
  await good.end();

  const ask = (...args: readonly string[]) => own("h1").cells(["host", "token", ...args]);
  const taken = await ask("h9", "--address", "10.0.1.2");
  assert.match(taken.stderr, /10.0.1.2 is the address of (host|agent).h2: h9 needs one of its own/);
  const outside = await ask("h9", "--address", "192.168.1.2");
  assert.match(outside.stderr, /192.168.1.2 is not on the underlay, 10.0.0.0\/16/);
  const replacing = await ask("h2", "--address", "10.0.1.2");
  assert.match(replacing.stderr, /host.h2 is there already/);
  const stranger = `sed -i 's/"credential": "[^"]*"/"credential": "x"/' /etc/cells-client.json`;
  await own("h1").run(["cp", "/etc/cells-client.json", "/etc/kept.json"]);
  await own("h1").run(["sh", "-euc", stranger]);
  const refused = await ask("h9", "--address", "10.0.1.9");
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /credential/);
  await own("h1").run(["mv", "/etc/kept.json", "/etc/cells-client.json"]);
});

test("a machine leaves, and the others forget it", async () => {
  // The first one holds the volume that the birth has made.
  const kept = await own("h1").cells(["host", "leave", "--purge"]);
  assert.equal(kept.code, 1);
  assert.match(kept.stderr, /0 machines run here and [12] volumes lie here/);
  const h3 = own("h3");
  const left = await h3.cells(["host", "leave", "--purge"]);
  assert.equal(left.code, 0, left.stderr);
  assert.match((await h3.run(["ip", "-br", "-4", "address"])).stdout, /eth0.* UP +10\.0\.1\.3\/16/);
  assert.equal((await h3.run(["sh", "-c", "ls /etc/systemd/system/cells-* /etc/cells/host.json"])).stdout, "");
  const removed = await own("h1").cells(["host", "remove", "h3", "--force"]);
  assert.equal(removed.code, 0, removed.stderr);
  await until(
    "h2 knows h3 no more",
    () => book("h2"),
    (peers) => peers["host.h3"] === undefined && peers["host.h1"] !== undefined,
  );
});
