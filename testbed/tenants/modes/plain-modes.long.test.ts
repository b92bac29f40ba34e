import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { listenerCommand } from "../../../cli/connection/probe.ts";
import { hostBridge, underlayDevice } from "../../configuration.ts";
import { type Testbed, withTestbed } from "../../harness.ts";
import { cells, stateOf, until, untilReady } from "../../lab.testing.ts";
import { memberRunDirectory } from "../../places.ts";
import { execIn } from "../questions.testing.ts";
import { external, fileOf, fromOutside, groupOf, machine, ports } from "./modes.testing.ts";

/**
 * MANAGED-NOVLAN, STATIC and SYSTEM with real guests, one after the other on the same three hosts, of which the third is the network host: only
 * with `./cells test --all`. What a guest adds nothing to is tried with namespaces in its place (`host/drivers/network/eucalyptus/packets/`): forged
 * frames and addresses, a group in two clusters with the tunnel between them, the loss of a network host.
 */
const networkHost = "h3";
const hosts = ["h1", "h2", networkHost] as const;
type Cell = "field" | "shed" | "lab";
const cellOf = (cell: Cell, more: string): string => `${cell} extends Cell {
  golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
  ${more}
}
`;
const configurations = {
  field: {
    Mode: "MANAGED-NOVLAN",
    InstanceDnsServers: ["10.0.0.9"],
    PublicIps: ["192.0.2.100-192.0.2.110"],
    ManagedSubnet: { Subnet: "172.30.0.0", Netmask: "255.255.0.0" },
    Clusters: [{ Name: "one" }],
  },
  shed: {
    Mode: "STATIC",
    InstanceDnsServers: ["10.0.0.9"],
    Subnets: [{ Name: "site", Subnet: "172.21.0.0", Netmask: "255.255.255.0", Gateway: "172.21.0.1" }],
    Clusters: [{ Name: "one", Subnet: { Name: "site" }, PrivateIps: ["172.21.0.10-172.21.0.20"] }],
  },
  lab: { Mode: "SYSTEM", InstanceDnsServers: ["10.0.0.9"], Clusters: [{ Name: "one" }] },
} as const;
/** Where the site's machines and its router are: the underlay, of which each host's bridge is a port. */
const router = "172.21.0.1";

/** Groups share one bridge: web and mate, at two hosts, are of one, and db, beside mate, of another. */
const field = cellOf(
  "field",
  `${groupOf(external)}
  ${machine("web", "h1", "", "field")}
  ${machine("mate", "h2", "", "field")}
  ${machine("db", "h2", groupOf(), "field")}
  asks extends NetworkRule {
    x.address1 "<ref:/field/group>"; x.address2 "<ref:/field/db/group>";
    x.protocol "tcp"; x.port2 ${ports.open}; x.direction "1to2";
  }
  enters extends NetworkRule {
    x.address1 "internet"; x.address2 "<ref:/field/group>"; x.protocol "tcp"; x.port2 ${ports.open}; x.direction "1to2";
  }`,
);
/** Two groups, which nothing keeps apart. */
const plain = (cell: Cell): string =>
  cellOf(
    cell,
    `x.policy.isolation "none";
  ${machine("web", "h1", groupOf(), cell)}
  ${machine("db", "h2", groupOf(), cell)}`,
  );

const sh = (t: Testbed, vm: string, script: string) => execIn(t, `${vm}/vm`, ["sh", "-c", script]);
/** As its guest has it, once that is what the cloud says. */
const untilAddressed = async (t: Testbed, vm: string, wanted: RegExp): Promise<string> => {
  const asked = async () => ({
    said: (await stateOf(t, `${vm}/card`))?.address ?? "",
    seen: (await sh(t, vm, "ip -4 address show dev eth0; ip route")).stdout,
  });
  const { said } = await until(
    `${vm} has its address`,
    asked,
    ({ said, seen }) => wanted.test(said) && seen.includes(`inet ${said}/`),
  );
  return said;
};
const reaches = (t: Testbed, vm: string, address: string): Promise<unknown> =>
  until(
    `${vm} reaches ${address}`,
    () => sh(t, vm, `ping -c 2 -W 4 ${address}`),
    ({ code }) => code === 0,
  );
const opens = async (t: Testbed, vm: string, address: string, port: number): Promise<boolean> =>
  (await sh(t, vm, `echo cells | socat -t5 - TCP4:${address}:${port},connect-timeout=5`)).stdout.includes("cells");
const listen = async (t: Testbed, vm: string): Promise<void> => {
  for (const port of Object.values(ports)) await execIn(t, `${vm}/vm`, listenerCommand("tcp", port));
};
const made = async (t: Testbed, cell: Cell, text: string, machines: readonly string[]): Promise<void> => {
  const file = fileOf(t, `${cell}.json`, JSON.stringify(configurations[cell]));
  await until(
    "the configuration is taken, once no address of the last is in place",
    () => t.cells(["network", "configuration", "set", file]),
    ({ code }) => code === 0,
  );
  await cells(t, "apply", fileOf(t, `${cell}.sf`, text), "--yes", "--no-wait");
  for (const name of machines) await untilReady(t, `${cell}/${name}/vm`);
};
const ended = async (t: Testbed, cell: Cell, machines: readonly string[]): Promise<void> => {
  const volumes = machines.map((name) => `${cell}/${name}/boot`).join(",");
  await cells(t, "delete", cell, "--yes", "--allow-destroy", volumes);
  for (const host of hosts)
    await until(
      `${host} has nothing of the cell`,
      () => t.exec(host, ["sh", "-c", "ip -o link; iptables-save; ebtables-nft-save; ipset save; ip -4 -o address"]),
      ({ stdout }) => !/vn_i-[0-9a-f]|sg-[0-9a-f]{8}|inet 172\.30\.|192\.0\.2\.1[01][0-9]/.test(stdout),
    );
};

/** Gateways, and the DHCP server of STATIC, are at the bridge: the device below it is a port and has no address. */
const areAtTheBridge = async (t: Testbed): Promise<void> => {
  for (const host of hosts) {
    const file = join(memberRunDirectory(host), "eucalyptus", "eucalyptus.conf");
    const device = `s/^VNET_PRIVINTERFACE=${underlayDevice}$/VNET_PRIVINTERFACE=${hostBridge}/`;
    const { code, stderr } = await t.exec(host, ["sed", "-i", device, file]);
    assert.equal(code, 0, stderr);
  }
};
const isOnNovlan = async (t: Testbed): Promise<void> => {
  await areAtTheBridge(t);
  await made(t, "field", field, ["web", "mate", "db"]);
  const [web, mate, db] = [
    await untilAddressed(t, "field/web", /^172\.30\./),
    await untilAddressed(t, "field/mate", /^172\.30\./),
    await untilAddressed(t, "field/db", /^172\.30\./),
  ];
  for (const name of ["web", "db"]) await listen(t, `field/${name}`);
  await reaches(t, "field/mate", web);
  await reaches(t, "field/web", mate);
  await until(
    "by the gateway to the other group",
    () => opens(t, "field/web", db, ports.open),
    (is) => is,
  );
  assert.ok(await opens(t, "field/mate", db, ports.open), "also beside it on the same bridge");
  assert.ok(!(await opens(t, "field/mate", db, ports.closed)), "a port that no rule opens");
  assert.ok(!(await opens(t, "field/db", web, ports.open)), "the other way");
  const elastic = (await stateOf(t, "field/web/card"))?.publicAddress ?? "";
  assert.match(elastic, /^192\.0\.2\.1[01]\d$/);
  await until(
    "an answer from outside",
    () => fromOutside(t, elastic, ports.open),
    (seen) => seen.includes("cells"),
  );
  assert.equal(await fromOutside(t, elastic, ports.closed), "");
  await ended(t, "field", ["web", "mate", "db"]);
};
const isOnStatic = async (t: Testbed): Promise<void> => {
  await t.exec(networkHost, ["ip", "address", "add", `${router}/24`, "dev", hostBridge]);
  await made(t, "shed", plain("shed"), ["web", "db"]);
  const [web, db] = [
    await untilAddressed(t, "shed/web", /^172\.21\.0\.(?:1\d|20)$/),
    await untilAddressed(t, "shed/db", /^172\.21\.0\.(?:1\d|20)$/),
  ];
  await reaches(t, "shed/web", db);
  await reaches(t, "shed/db", web);
  await reaches(t, "shed/web", router);
  assert.match((await sh(t, "shed/web", "ip route")).stdout, /default via 172\.21\.0\.1/);
  await ended(t, "shed", ["web", "db"]);
};
const isOnSystem = async (t: Testbed): Promise<void> => {
  const range = "--dhcp-range=172.21.0.100,172.21.0.150,255.255.255.0,1h";
  const files = ["--dhcp-leasefile=/run/site-leases", "--pid-file=/run/site-dhcp", "--conf-file=/dev/null"];
  const { code, stderr } = await t.exec(networkHost, [
    "dnsmasq",
    ...["--port=0", "--no-ping", range, `--interface=${hostBridge}`, "--bind-interfaces", "--except-interface=lo"],
    ...files,
  ]);
  assert.equal(code, 0, stderr);
  await made(t, "lab", plain("lab"), ["web", "db"]);
  const [web, db] = [
    await untilAddressed(t, "lab/web", /^172\.21\.0\.1[0-5]\d$/),
    await untilAddressed(t, "lab/db", /^172\.21\.0\.1[0-5]\d$/),
  ];
  assert.notEqual(web, db);
  await reaches(t, "lab/web", db);
  await reaches(t, "lab/db", router);
  await ended(t, "lab", ["web", "db"]);
};

test("cells on MANAGED-NOVLAN, STATIC and SYSTEM", {
  skip: process.getuid?.() === 0 ? false : "needs root",
}, async (context) => {
  const networkModes = { field: "MANAGED-NOVLAN", shed: "STATIC", lab: "SYSTEM" } as const;
  await withTestbed({ hosts: 3, servers: 1, networkModes, networkHosts: [networkHost] }, async (t) => {
    const steps: Readonly<Record<string, (t: Testbed) => Promise<void>>> = {
      "MANAGED-NOVLAN: groups on one bridge reach each other by the gateway, as rules say": isOnNovlan,
      "STATIC: guests have the addresses of the configuration from the network host": isOnStatic,
      "SYSTEM: guests have addresses of the site's own server, and the cloud says which": isOnSystem,
    };
    for (const [title, step] of Object.entries(steps)) await context.test(title, () => step(t));
  });
});
