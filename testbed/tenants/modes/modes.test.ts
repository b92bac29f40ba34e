import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "../../../cli/connection/client.ts";
import { listenerCommand, type Probe, probeCommand, seenIn } from "../../../cli/connection/probe.ts";
import { type Testbed, withTestbed } from "../../harness.ts";
import { cells, stateOf, until, untilReady, untilSaid } from "../../lab.testing.ts";
import { askElements, execIn } from "../questions.testing.ts";
import { external, fileOf, fromOutside, groupOf, machine, ports } from "./modes.testing.ts";

/**
 * A cell whose networks EDGE makes, on two hosts beside Diverter: guests with addresses of the network configuration, which reach one
 * another as the rules of their groups say, and as they say now. Then one of MANAGED on the same hosts, with a third as their network host.
 */
const networkHost = "h3";
const configuration = {
  Mode: "EDGE",
  InstanceDnsServers: ["10.0.0.9"],
  PublicIps: ["192.0.2.100-192.0.2.110"],
  Subnets: [{ Name: "site", Subnet: "172.20.0.0", Netmask: "255.255.255.0", Gateway: "172.20.0.1" }],
  Clusters: [{ Name: "one", Subnet: { Name: "site" }, PrivateIps: ["172.20.0.10-172.20.0.20"] }],
};
const managedConfiguration = {
  Mode: "MANAGED",
  InstanceDnsServers: ["10.0.0.9"],
  PublicIps: ["192.0.2.120-192.0.2.130"],
  ManagedSubnet: { Subnet: "172.30.0.0", Netmask: "255.255.0.0" },
  Clusters: [{ Name: "one" }],
};
const rule = `
  asks extends NetworkRule {
    x.address1 "<ref:/shop/web/group>"; x.address2 "<ref:/shop/db/group>";
    x.protocol "tcp"; x.port2 ${ports.open}; x.direction "1to2";
  }`;
const shop = (more: string, host: string | null): string => `shop extends Cell {
  golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
  ${machine("web", host, groupOf(external))}
  ${machine("db", "h2", groupOf())}
  ${more}
}
`;
/** Both are members of one group. */
const yard = (host: string | null): string => `yard extends Cell {
  golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
  ${groupOf(external)}
  ${machine("web", host, "", "yard")}
  ${machine("mate", "h1", "", "yard")}
  enters extends NetworkRule {
    x.address1 "internet"; x.address2 "<ref:/yard/group>"; x.protocol "tcp"; x.port2 ${ports.open}; x.direction "1to2";
  }
}
`;
/** Of the group that is an external subnet, to itself and from outside. */
const enters = `
  enters extends NetworkRule {
    x.address1 "internet"; x.address2 "<ref:/shop/web/group>";
    x.protocol "tcp"; x.port2 ${ports.open}; x.direction "1to2";
  }`;
const back = `
  back extends NetworkRule {
    x.address1 "<ref:/shop/db/group>"; x.address2 "<ref:/shop/web/group>";
    x.protocol "tcp"; x.port2 ${ports.closed}; x.direction "1to2";
  }`;
type CellOfTest = "shop" | "twin" | "yard";
/** Where web has to be; null: anywhere. */
let pinned: string | null = "h1";
/** In which cell a machine is that is called by its name alone. */
let inCell: CellOfTest = "shop";
const apply = (t: Testbed, more: string, ...flags: readonly string[]): Promise<string> =>
  cells(t, "apply", fileOf(t, "shop.sf", shop(more, pinned)), "--yes", ...flags);

const addressOf = async (t: Testbed, name: string, cell = inCell): Promise<string> => {
  const state = await stateOf(t, `${cell}/${name}/card`);
  assert.ok(state?.address, `${name} has no address`);
  return state.address;
};
const sh = (t: Testbed, name: string, script: string) => execIn(t, `${inCell}/${name}/vm`, ["sh", "-c", script]);
const probe = async (t: Testbed, from: string, to: string, port: number, cell = inCell): Promise<string> => {
  const asked: Probe = {
    from: `${cell}/${from}/vm`,
    to: `${cell}/${to}/vm`,
    protocol: "tcp",
    port,
    expected: "passes",
  };
  const { code, stdout, stderr } = await execIn(t, asked.from, probeCommand(asked, await addressOf(t, to, cell)));
  return seenIn(asked, { exitCode: code, stdout, stderr });
};
const untilProbed = (t: Testbed, wanted: "passes" | "blocked"): Promise<string> =>
  until(
    `a connection from web to db ${wanted}`,
    () => probe(t, "web", "db", ports.open),
    (seen) => seen === wanted,
  );
/** All of a mode at a host: its taps, and its chains. */
const inPlace = async (t: Testbed, host: string): Promise<string> =>
  (await t.exec(host, ["sh", "-c", "ip -o link; iptables-save; ebtables-nft-save; ipset save; ip -4 -o address"]))
    .stdout;

const becomesReady = async (t: Testbed): Promise<void> => {
  await apply(t, rule, "--no-wait");
  await untilSaid(t, "shop/web/vm", /asks for a host of the mode EDGE, and it offers Diverter alone/);
  assert.match(
    await cells(t, "network", "configuration", "set", fileOf(t, "network.json", JSON.stringify(configuration))),
    /./,
  );
  for (const name of ["web", "db"]) await untilReady(t, `shop/${name}/vm`);
  await untilReady(t, "shop/asks");
  for (const name of ["web", "db"]) {
    const address = await addressOf(t, name);
    assert.match(address, /^172\.20\.0\.1\d$/);
    const seen = await until(
      `${name} has its address`,
      () => sh(t, name, "ip -4 address show dev eth0; ip route; cat /etc/resolv.conf"),
      ({ stdout }) => stdout.includes(`${address}/24`),
    );
    assert.match(seen.stdout, /default via 172\.20\.0\.1 [\s\S]*nameserver 10\.0\.0\.9/);
  }
};
const listen = async (t: Testbed, cell: CellOfTest): Promise<void> => {
  for (const name of ["web", "db"])
    for (const port of Object.values(ports)) await execIn(t, `${cell}/${name}/vm`, listenerCommand("tcp", port));
};
const rulesHold = async (t: Testbed): Promise<void> => {
  await listen(t, "shop");
  await untilProbed(t, "passes");
  assert.equal(await probe(t, "web", "db", ports.closed), "blocked", "a port that no rule opens");
  assert.equal(await probe(t, "db", "web", ports.open), "blocked", "the other way");
  await apply(t, "");
  await untilProbed(t, "blocked");
  await apply(t, rule);
  await untilProbed(t, "passes");
};
/** The same text, but for its cell's name, with its machines at the same hosts. What EDGE lets pass and drops, Diverter does. */
const holdsOnDiverter = async (t: Testbed): Promise<void> => {
  const text = shop(rule, pinned).replaceAll(/\bshop\b/g, "twin");
  await cells(t, "apply", fileOf(t, "twin.sf", text), "--yes");
  await listen(t, "twin");
  assert.doesNotMatch(await addressOf(t, "db", "twin"), /^172\.20\./, "Diverter's own");
  const verdicts = (cell: CellOfTest): Promise<readonly string[]> =>
    Promise.all(
      [
        ["web", "db"],
        ["db", "web"],
      ].flatMap(([from = "", to = ""]) => Object.values(ports).map((port) => probe(t, from, to, port, cell))),
    );
  const [edge, diverter] = [await verdicts("shop"), await verdicts("twin")];
  assert.deepEqual(edge, ["passes", "blocked", "blocked", "blocked"]);
  assert.deepEqual(diverter, edge);
  await cells(t, "delete", "twin", "--yes", "--no-wait", "--allow-destroy", "twin/web/boot,twin/db/boot");
};
const elasticOf = async (t: Testbed): Promise<string> => {
  const elastic = (await stateOf(t, `${inCell}/web/card`))?.publicAddress ?? "";
  assert.match(elastic, /^192\.0\.2\.1[02]\d$/);
  return elastic;
};
const isTold = (t: Testbed): Promise<void> =>
  tellsOfNoMachine(t, [
    ["shop/web", "shop/db"],
    ["shop/db", "shop/web"],
    ["internet", "shop/web"],
    ["shop/web", "internet"],
  ]);
const isReachedOutside = async (t: Testbed): Promise<void> => {
  const elastic = await elasticOf(t);
  const outside = (port: number): Promise<string> => fromOutside(t, elastic, port);
  assert.equal(await outside(ports.open), "", "no rule opens the port");
  await apply(t, `${rule}${enters}`);
  await until(
    "an answer from outside",
    () => outside(ports.open),
    (seen) => seen.includes("cells"),
  );
  assert.equal(await outside(ports.closed), "", "a port that no rule opens");
  const itself = await sh(t, "web", `echo cells | socat -t3 - TCP4:${elastic}:${ports.open},connect-timeout=8`);
  assert.match(itself.stdout, /cells/, "the machine itself under its elastic address");
  await apply(t, `${rule}${enters}${back}`);
  const other = `echo cells | socat -t3 - TCP4:${elastic}:${ports.closed},connect-timeout=3`;
  await until(
    "an answer to a machine at another host",
    () => sh(t, "db", other),
    ({ stdout }) => stdout.includes("cells"),
  );
  assert.equal(await outside(ports.closed), "", "what a rule opens to a group is open to that");
  const listed = await cells(t, "list", "VirtualInterface", "--columns", "path,address,public");
  assert.ok(listed.includes(elastic), listed);
  await apply(t, rule);
  await until(
    "no answer any more",
    () => outside(ports.open),
    (seen) => seen === "",
  );
};
/** Whoever has the cell's own credential reads of no machine of the installation in what `why` tells; who runs them does. */
const tellsOfNoMachine = async (t: Testbed, pairs: readonly (readonly [from: string, to: string])[]): Promise<void> => {
  const { credential } = await t.gateway().addCredential(inCell, { note: "of a tenant" });
  const tenant = new Client({ ...t.client(), credential });
  const told = async (client: Client): Promise<string> => {
    const answers: unknown[] = [];
    for (const [from, to] of pairs)
      for (const port of Object.values(ports))
        answers.push(await client.why(inCell, { from, to, protocol: "tcp", port }));
    for (const { path } of (await askElements(t, inCell)) ?? []) answers.push(await client.whyElement(inCell, path));
    return JSON.stringify(answers);
  };
  const machines = /\bh[1-9]\b|\b10\.0\.[12]\.\d+/g;
  assert.deepEqual((await told(tenant)).match(machines), null);
  assert.match(await told(t.gateway()), machines);
};
const staysInPlace = async (t: Testbed): Promise<void> => {
  await t.kill("network-view-manager");
  for (const host of ["h1", "h2"]) await t.kill(host);
  // Asked by a host that answers again; no guest was started anew meanwhile.
  await untilProbed(t, "passes");
  await untilReady(t, "shop/web/vm");
  // What a host forgets by hand comes back, and the manager that began anew still knows who has what.
  await t.exec("h2", ["iptables", "-F", "EUCA_FILTER_FWD"]);
  await apply(t, "");
  await untilProbed(t, "blocked");
  assert.equal((await stateOf(t, "shop/web/vm"))?.incarnation, 1);
};
/** At what images for EC2 ask, each machine is told its own. */
const isToldOfItself = async (t: Testbed): Promise<void> => {
  const ask = async (name: string, path: string): Promise<string> => {
    const request = `GET /latest/${path} HTTP/1.0\\r\\nHost: 169.254.169.254\\r\\n\\r\\n`;
    const { stdout } = await sh(t, name, `printf '${request}' | socat -t5 - TCP4:169.254.169.254:80,connect-timeout=8`);
    return stdout.split("\r\n\r\n")[1] ?? "";
  };
  for (const name of ["web", "db"]) {
    assert.equal(await ask(name, "user-data"), `for ${name}`);
    assert.equal(await ask(name, "meta-data/local-ipv4"), await addressOf(t, name));
  }
  assert.equal(await ask("web", "meta-data/public-ipv4"), await elasticOf(t));
};
const keepsItsAddresses = async (t: Testbed): Promise<void> => {
  const [before, elastic] = [await addressOf(t, "web"), await elasticOf(t)];
  pinned = null;
  await apply(t, `${rule}${enters}`);
  await cells(t, "move", "shop/web/vm", "--to", "h2");
  await untilReady(t, "shop/web/card");
  assert.deepEqual([await addressOf(t, "web"), await elasticOf(t)], [before, elastic]);
  assert.equal((await stateOf(t, "shop/web/vm"))?.host, "h2");
  await execIn(t, "shop/web/vm", listenerCommand("tcp", ports.open));
  await until(
    "an answer from outside",
    () => fromOutside(t, elastic, ports.open),
    (seen) => seen.includes("cells"),
  );
  await until(
    "h1 has nothing of it",
    () => t.exec("h1", ["ip", "-4", "-o", "address"]),
    ({ stdout }) => !stdout.includes(elastic),
  );
};
const nothingIsLeft = async (t: Testbed): Promise<void> => {
  assert.match(await inPlace(t, "h2"), /vn_i-/);
  await cells(t, "delete", "shop", "--yes", "--allow-destroy", "shop/web/boot,shop/db/boot");
  for (const host of ["h1", "h2"])
    await until(
      `${host} has nothing of the cell`,
      () => inPlace(t, host),
      (seen) => !/vn_i-[0-9a-f]|sg-|172\.20\.0\.1[0-9]|192\.0\.2\.10[0-9]/.test(seen),
    );
};

/** A packet of either kind that a machine of the same group answers, and somebody outside. */
const areAnswered = async (t: Testbed, elastic: string): Promise<void> => {
  const address = await addressOf(t, "web");
  await until(
    "mate has answers from web",
    () => sh(t, "mate", `ping -c 2 -W 4 ${address}`),
    ({ code }) => code === 0,
  );
  await execIn(t, "yard/web/vm", listenerCommand("tcp", ports.open));
  await until(
    "an answer from outside",
    () => fromOutside(t, elastic, ports.open),
    (seen) => seen.includes("cells"),
  );
  assert.equal(await fromOutside(t, elastic, ports.closed), "", "a port that no rule opens");
};
const goesToManaged = async (t: Testbed): Promise<void> => {
  const file = fileOf(t, "network.json", JSON.stringify(managedConfiguration));
  await until(
    "the configuration is taken, once no address of the last is in place",
    () => t.cells(["network", "configuration", "set", file]),
    ({ code }) => code === 0,
  );
  inCell = "yard";
  await cells(t, "apply", fileOf(t, "yard.sf", yard("h1")), "--yes", "--no-wait");
  for (const name of ["web", "mate"]) await untilReady(t, `yard/${name}/vm`);
  for (const name of ["web", "mate"]) {
    const address = await addressOf(t, name);
    assert.match(address, /^172\.30\.\d+\.\d+$/);
    await until(
      `${name} has its address`,
      () => sh(t, name, "ip -4 address show dev eth0"),
      ({ stdout }) => stdout.includes(`${address}/`),
    );
  }
  await areAnswered(t, await elasticOf(t));
  await tellsOfNoMachine(t, [
    ["yard/web", "yard/mate"],
    ["internet", "yard/web"],
    ["yard/mate", "internet"],
  ]);
};
const keepsItsAddressesInManaged = async (t: Testbed): Promise<void> => {
  const [before, elastic] = [await addressOf(t, "web"), await elasticOf(t)];
  await cells(t, "apply", fileOf(t, "yard.sf", yard(null)), "--yes");
  await cells(t, "move", "yard/web/vm", "--to", "h2");
  await untilReady(t, "yard/web/card");
  assert.deepEqual([await addressOf(t, "web"), await elasticOf(t)], [before, elastic]);
  assert.equal((await stateOf(t, "yard/web/vm"))?.host, "h2");
  // From h1 by the group's tag to h2, and from outside by the network host.
  await areAnswered(t, elastic);
  const tapsAt = async (host: string): Promise<readonly string[]> =>
    (await inPlace(t, host)).match(/vn_i-[0-9a-f]{8}(?=[:@])/g) ?? [];
  await until(
    "each host has the tap of its own machine alone",
    async () => Promise.all(["h1", "h2", networkHost].map(tapsAt)),
    ([h1 = [], h2 = [], h3 = []]) => h1.length === 1 && h2.length === 1 && h3.length === 0 && h1[0] !== h2[0],
  );
};
const nothingIsLeftOfManaged = async (t: Testbed): Promise<void> => {
  assert.match(await inPlace(t, networkHost), /sg-[0-9a-f]{8}/);
  await cells(t, "delete", "yard", "--yes", "--allow-destroy", "yard/web/boot,yard/mate/boot");
  for (const host of ["h1", "h2", networkHost])
    await until(
      `${host} has nothing of the cell`,
      () => inPlace(t, host),
      (seen) => !/vn_i-[0-9a-f]|sg-[0-9a-f]{8}|inet 172\.30\.|192\.0\.2\.12[0-9]/.test(seen),
    );
};

test("cells on EDGE, and then on MANAGED", {
  skip: process.getuid?.() === 0 ? false : "needs root",
}, async (context) => {
  const modes = { networkModes: { shop: "EDGE", yard: "MANAGED" }, networkHosts: [networkHost] } as const;
  await withTestbed({ hosts: 3, servers: 1, ...modes }, async (t) => {
    const steps: Readonly<Record<string, (t: Testbed) => Promise<void>>> = {
      "its machines wait for a configuration, and get their addresses of it": becomesReady,
      "a rule of groups opens its port, one way, for as long as it is there": rulesHold,
      "the same text lets the same packets pass where Diverter makes the networks": holdsOnDiverter,
      "a machine of an external subnet is reached from outside under its elastic address": isReachedOutside,
      "a tenant is told of no machine of the installation by `why`": isTold,
      "managers that end take nothing away, and go on from what is in place": staysInPlace,
      "each machine is told of itself at the address of metadata": isToldOfItself,
      "a machine that goes to another host keeps its addresses": keepsItsAddresses,
      "a cell that is deleted leaves nothing at its hosts": nothingIsLeft,
      "under MANAGED members of a group reach one another, and are reached by the network host": goesToManaged,
      "a machine that goes to another host keeps its addresses there, too": keepsItsAddressesInManaged,
      "a cell that is deleted leaves nothing at its hosts, nor at the network host": nothingIsLeftOfManaged,
    };
    for (const [title, step] of Object.entries(steps)) await context.test(title, () => step(t));
  });
});
