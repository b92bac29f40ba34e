import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { WhyEnds } from "../../../core/controller/requests/connection-ends.ts";
import { elementPath, ipv4, peerName } from "../../../model/cell/identifiers.ts";
import { type PeerServer, servePeers } from "../../http/https.ts";
import { createAuthority, issueCertificate } from "../../identity/certificates.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { type ExaminedEnd, examine, withNetworkHosts } from "./network-hosts.ts";
import { connectionAnswer, type Told, toldTo } from "./why.ts";

/** Loopback addresses of this process alone, one for each peer. */
const address = (number: number): string =>
  `127.${60 + (process.pid % 60)}.${(process.pid >> 6) % 250}.${100 + number}`;
const places = { "controller.shop": 1, gateway: 2, "host.h3": 3, "host.h4": 4 } as const;
let root = "";
const servers: PeerServer[] = [];
const asked: string[] = [];
let rule: readonly object[] = [];
/** The network host takes no more questions. */
let isBusy = false;
let configuration: ProcessConfiguration;

async function configure(name: keyof typeof places, role: ProcessConfiguration["role"]): Promise<ProcessConfiguration> {
  const directory = join(root, name);
  await mkdir(directory);
  return {
    name: peerName(name),
    role,
    address: address(places[name]),
    directory,
    runDirectory: directory,
    certificate: await issueCertificate(join(root, "ca"), peerName(name), [address(places[name])]),
    peersFile: join(root, "peers.json"),
  };
}
before(async () => {
  root = await mkdtemp(join(tmpdir(), `cells-network-hosts-${process.pid}-`));
  await createAuthority(join(root, "ca"));
  const peers = Object.fromEntries(Object.entries(places).map(([name, number]) => [name, address(number)]));
  await writeFile(join(root, "peers.json"), JSON.stringify({ peers }));
  configuration = await configure("controller.shop", "controller");
  const host = await configure("host.h3", "host");
  servers.push(
    await servePeers(host, async ({ body }, response) => {
      let text = "";
      for await (const chunk of body) text += String(chunk);
      asked.push((JSON.parse(text) as { readonly side: string }).side);
      if (rule.length === 0 || isBusy) response.statusCode = isBusy ? 429 : 400;
      response.end(JSON.stringify(rule));
    }),
  );
});
after(async () => {
  for (const server of servers) await server.stop();
  await rm(root, { recursive: true, force: true });
});

const end = (path: string, at: string) => ({ path, address: ipv4(at), vm: path, host: null });
const ends: WhyEnds = {
  from: end("shop/web/vm", "10.1.0.9"),
  to: end("shop/db/vm", "10.1.0.25"),
  cellNumber: 7,
  rules: {},
  waiting: [],
  nowhere: null,
  groups: {
    from: elementPath("shop/web/group"),
    to: elementPath("shop/db/group"),
    names: { "sg-00000002": elementPath("shop/db/group") },
    openings: [],
  },
};
const question = { protocol: "tcp", port: 22 } as const;
const part = (side: ExaminedEnd["side"], ask: string): ExaminedEnd => ({
  side,
  where: `host ${side === "sender" ? "h1" : "h2"} (${side})`,
  checks: [{ check: "network-host", passes: true, detail: "it goes by it", ask }],
});
const answeredTo = async (told: Told, ...parts: readonly ExaminedEnd[]) => {
  asked.length = 0;
  const all = await withNetworkHosts(configuration, parts, ends, question);
  assert.ok(all.ok, JSON.stringify(all));
  const shown = toldTo(told, all.value, ends);
  return { where: shown.map(({ where }) => where), ...connectionAnswer(ends, question, shown) };
};
const answered = (...parts: readonly ExaminedEnd[]) => answeredTo({ to: "operator" }, ...parts);

test("the network host that both ends' hosts name is asked once, between them, and what it drops is said with what to change", async () => {
  const both = [part("sender", address(3)), part("receiver", address(3))];
  rule = [{ check: "rule", passes: true, detail: '"-j ACCEPT" of sg-00000002 lets it pass' }];
  const open = await answered(...both);
  assert.deepEqual(open.where, ["host h1 (sender)", "host h3 (network host)", "host h2 (receiver)"]);
  assert.deepEqual([open.allowed, asked], [true, ["behind-sender"]]);
  assert.ok(open.checks.some(({ detail }) => detail.includes("sg-00000002 (shop/db/group)")));
  assert.ok(open.checks.every((check) => !("ask" in check)));
  rule = [{ check: "rule", passes: false, detail: "no rule of a group lets it pass: policy DROP of FORWARD" }];
  const closed = await answered(...both);
  assert.equal(closed.allowed, false);
  assert.match(
    closed.verdict,
    /dropped at host h3 \(network host\): no rule in force there lets it pass\. To open it, add: allow extends NetworkRule .*<ref:\/shop\/web\/group>/,
  );
});

test("of an end alone its own is asked; one that is of no host, silent or of an earlier version is said to be", async () => {
  rule = [{ check: "rule", passes: true, detail: "lets it pass" }];
  const alone = await answered(part("receiver", address(3)));
  assert.deepEqual([alone.where, asked], [["host h3 (network host)", "host h2 (receiver)"], ["before-receiver"]]);
  // A host can have nobody asked who is no host.
  for (const [at, told] of [
    [address(2), /no host of the installation has the address that is said to be the network host's \(127\.[\d.]+\)$/],
    [
      address(4),
      /dropped at host h4 \(network host\), at its check "network-host": it could not be asked, .*`cells status`.* \("host\.h4" at 127\./,
    ],
  ] as const) {
    const { allowed, verdict } = await answered(part("sender", at));
    assert.deepEqual([allowed, asked], [false, []]);
    assert.match(verdict, told);
  }
  rule = [];
  const earlier = await answered(part("sender", address(3)));
  assert.equal(earlier.allowed, true);
  assert.match(JSON.stringify(earlier.checks), /as a host of an earlier version does not/);
});

test("among thousands of hosts the network host is found by one look at who there is", async () => {
  const peersFile = join(root, "many.json");
  const own = Object.entries(places).map(([name, number]) => [name, address(number)]);
  const others = Array.from({ length: 4_000 }, (_, number) => [
    `host.a${number}`,
    `10.7.${number >> 8}.${number % 256}`,
  ]);
  await writeFile(peersFile, JSON.stringify({ peers: Object.fromEntries([...own, ...others]) }));
  rule = [{ check: "rule", passes: true, detail: "lets it pass" }];
  asked.length = 0;
  const before = process.cpuUsage();
  const all = await withNetworkHosts({ ...configuration, peersFile }, [part("sender", address(3))], ends, question);
  const { user, system } = process.cpuUsage(before);
  assert.ok(all.ok);
  assert.deepEqual([all.value.at(-1)?.where, asked], ["host h3 (network host)", ["behind-sender"]]);
  assert.ok((user + system) / 1000 < 1_000, `${(user + system) / 1000} ms of processor`);
});

test("a tenant is told no address of a machine, but those of his own question and of his cell; who runs them is told all", async () => {
  const apart = `at ${address(4)}`;
  rule = [{ check: "rule", passes: true, detail: '"-s 10.1.0.9/32 -j ACCEPT" of sg-00000002 lets it pass', apart }];
  // As a host of an earlier version says it.
  const checks = [
    { check: "network-host", passes: true, detail: `it goes by the network host, ${address(3)}`, ask: address(3) },
    { check: "location", passes: true, detail: `10.1.0.25 is at the node ${address(4)}/32 behind ${address(9)}` },
  ];
  const end: ExaminedEnd = { side: "sender", where: "host h1 (sender)", checks };
  const machines = new Set([address(3), address(4), ends.to.address]);
  const tenant = JSON.stringify(await answeredTo({ to: "tenant", machines }, end));
  assert.doesNotMatch(tenant, new RegExp(`${address(3)}|${address(4)}`.replaceAll(".", "\\.")));
  for (const kept of ["10.1.0.9/32", "10.1.0.25 is at the node a host", address(9)])
    assert.ok(tenant.includes(kept), kept);
  assert.doesNotMatch(
    JSON.stringify(await answeredTo({ to: "tenant", machines }, part("sender", address(2)))),
    /127\./,
  );
  const operator = JSON.stringify(await answered(end));
  for (const told of [address(3), `(${apart})`, `the node ${address(4)}/32`]) assert.ok(operator.includes(told), told);
});

test("a host that answers no more questions of the cell is said to be asked too often, at its end or between", async () => {
  rule = [{ check: "rule", passes: true, detail: "lets it pass" }];
  const [there, between] = [{ side: "sender", host: "h3" } as const, [part("sender", address(3))]];
  assert.ok((await examine(configuration, there, ends, question)).ok);
  isBusy = true;
  for (const refused of [
    await examine(configuration, there, ends, question),
    await withNetworkHosts(configuration, between, ends, question),
  ]) {
    assert.ok(!refused.ok);
    assert.equal(refused.error.kind, "busy");
    assert.match(refused.error.why, /^this cell asks host h3 about packets more often than that answers: ask again in/);
  }
  isBusy = false;
});
