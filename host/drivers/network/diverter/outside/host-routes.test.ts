import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Announced, PacketCheck } from "../../driver.ts";
import { type GuestPlan, Installation, outsideNetwork, policy, rule } from "../testing/installation.testing.ts";
import { canRun, type Machine } from "../testing/namespaces.testing.ts";

/**
 * External addresses in a fabric that routes: each host's `bird`, or `frr`, announces them from the kernel's table to two
 * routers, which have no other way to them.
 */
const frr = "/usr/lib/frr";
type Kind = "bird" | "frr";
const whySkipped = (kind: Kind): string | false =>
  canRun() && existsSync("/usr/sbin/bird") && (kind === "bird" || existsSync(`${frr}/bgpd`))
    ? false
    : `needs root, for namespaces, bird2${kind === "bird" ? "" : " and frr"}`;
const table = 100;
const plan = (name: string, host: "a" | "b", address: string, number: number, subnet: number): GuestPlan => ({
  name,
  host,
  address,
  number,
  cell: 1,
  identities: [number, 100 + number, subnet],
});
const web = plan("web", "a", "198.18.0.10", 1, 10);
const inner = plan("inner", "a", "10.64.0.50", 2, 11);
const server = plan("server", "b", "198.18.1.20", 3, 12);
const internet = 80;
const policies = [policy(1, 1, [rule(1, internet, 12, "tcp", 443)], [["0.0.0.0/0", internet]])];
const routers = { one: outsideNetwork.router.own, two: "192.0.2.2" } as const;
const hostsAt = { a: outsideNetwork.hosts.a[0], b: outsideNetwork.hosts.b[0] } as const;

const pools = "[ 198.18.0.0/15{32,32} ]";
const session = (name: string, own: string, ownAs: number, other: string, otherAs: number, channel: string): string => `
protocol bgp ${name} {
  local ${own} as ${ownAs}; neighbor ${other} as ${otherAs};
  hold time 3; keepalive time 1; connect delay time 1; connect retry time 1; error wait time 1, 2; bfd on;
  ipv4 { ${channel} };
}`;
const common = (own: string, device: string): string => `router id ${own};
protocol device { scan time 1; }
protocol bfd { interface "${device}" { min rx interval 100 ms; min tx interval 100 ms; multiplier 3; }; }`;
const ofHost = (own: string): string => `${common(own, "out0")}
ipv4 table outward;
protocol kernel { kernel table ${table}; learn; scan time 1; ipv4 { table outward; import all; export none; }; }
${Object.entries(routers)
  .map(([name, at]) =>
    session(name, own, 65_001, at, 65_000, `table outward; import none; export where net ~ ${pools};`),
  )
  .join("")}`;
const ofRouter = (own: string): string => `${common(own, "eth0")}
protocol kernel { scan time 1; ipv4 { import none; export all; }; }
${Object.entries(hostsAt)
  .map(([name, at]) => session(name, own, 65_000, at, 65_001, `import where net ~ ${pools}; export none;`))
  .join("")}`;

const frrZebra = `ip import-table ${table}\n`;
const frrBfd = `bfd
 profile quick
  detect-multiplier 3
  receive-interval 100
  transmit-interval 100
`;
const frrBgp = (own: string): string => `router bgp 65001
 bgp router-id ${own}
${Object.values(routers)
  .map(
    (at) => ` neighbor ${at} remote-as 65000
 neighbor ${at} timers 1 3
 neighbor ${at} timers connect 1
 neighbor ${at} bfd profile quick`,
  )
  .join("\n")}
 address-family ipv4 unicast
  redistribute table ${table}
${Object.values(routers)
  .map((at) => `  neighbor ${at} route-map outward out`)
  .join("\n")}
 exit-address-family
ip prefix-list outward permit 198.18.0.0/15 ge 32
route-map outward permit 10
 match ip address prefix-list outward
`;

const announced = (kind: Kind): void => {
  const installation = new Installation();
  const daemons: ChildProcess[] = [];
  /** `frr` gives up its privileges, and writes there all the same. */
  let open = "";
  const spawns = async (machine: Machine, command: readonly string[]): Promise<void> => {
    const [program, args] = machine.inside([...command]);
    const daemon = spawn(program, [...args], { stdio: ["ignore", "ignore", "inherit"] });
    daemons.push(daemon);
    await once(daemon, "spawn");
  };
  const startsFrr = async (name: string, machine: Machine, own: string): Promise<void> => {
    const directory = join(open, name);
    mkdirSync(directory);
    chmodSync(directory, 0o777);
    const daemon = async (program: string, text: string): Promise<void> => {
      const file = join(directory, `${program}.conf`);
      writeFileSync(file, text);
      const places = [
        "-i",
        join(directory, `${program}.pid`),
        "-z",
        join(directory, "zserv"),
        "--vty_socket",
        directory,
      ];
      const control = program === "bfdd" ? ["--bfdctl", join(directory, "bfdd.sock")] : [];
      await spawns(machine, [join(frr, program), ...places, ...control, "-f", file, "-P", "0"]);
    };
    await daemon("zebra", frrZebra);
    for (let tries = 0; !existsSync(join(directory, "zserv")); tries += 1) {
      assert.ok(tries < 500, "zebra has started");
      await waits(20);
    }
    await daemon("bfdd", frrBfd);
    await daemon("bgpd", frrBgp(own));
  };
  const starts = async (name: string, machine: Machine, text: string): Promise<void> => {
    const directory = join(installation.directory, name);
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, "bird.conf"), text);
    const files = ["-c", join(directory, "bird.conf"), "-s", join(directory, "socket")];
    await spawns(machine, ["bird", "-f", ...files]);
  };
  let machines: readonly Machine[];
  /** Where a router sends what goes to an address; empty: nowhere. */
  const next = (router: Machine, address: string): string =>
    /via (\S+)/.exec(router.run("ip", "-4", "route", "show", `${address}/32`))?.[1] ?? "";
  const waits = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
  /** Until both routers say so; milliseconds since it began. */
  const untilNext = async (address: string, wanted: string, begun = performance.now()): Promise<number> => {
    for (const router of machines)
      while (next(router, address) !== wanted) {
        assert.ok(
          performance.now() - begun < 20_000,
          `${address} is at "${next(router, address)}", not at "${wanted}"`,
        );
        await waits(20);
      }
    return Math.round(performance.now() - begun);
  };
  const inTable = (host: "a" | "b", number = table): readonly string[] =>
    installation.hostMachines[host]
      .run("ip", "-4", "route", "show", "table", "all")
      .split("\n")
      .filter((line) => line.includes(`table ${number} `))
      .map((line) => /^blackhole (\S+)/.exec(line)?.[1] ?? line)
      .sort();
  const restarts = async (host: "a" | "b", plans: readonly GuestPlan[]): Promise<void> => {
    await installation.drivers[host].stop();
    installation.agents.delete(installation.drivers[host]);
    await installation.startDriver(host);
    await installation.apply(plans, policies);
  };

  before(async () => {
    installation.table = table;
    open = mkdtempSync(join(tmpdir(), "cells-frr-"));
    chmodSync(open, 0o777);
    await installation.start({ outside: "own" });
    await installation.addGuest(server);
    const [one, two] = [installation.router.machine, installation.stranger.machine];
    machines = [one, two];
    two.run("ip", "addr", "add", `${routers.two}/24`, "dev", "eth0");
    one.run("ip", "route", "del", "198.18.0.0/15");
    for (const [name, machine] of [
      ["one", one],
      ["two", two],
    ] as const)
      await starts(name, machine, ofRouter(routers[name]));
    for (const host of ["a", "b"] as const)
      if (kind === "bird") await starts(`bird-${host}`, installation.hostMachines[host], ofHost(hostsAt[host]));
      else await startsFrr(host, installation.hostMachines[host], hostsAt[host]);
    await installation.drivers.b.call("untilRouter", outsideNetwork.routerMac, true);
  });
  after(async () => {
    for (const daemon of daemons) daemon.kill("SIGKILL");
    await installation.stop();
    rmSync(open, { recursive: true });
  });

  test("an address is announced where its machine is, reached there, moves with it, and is withdrawn with it", async (t) => {
    await installation.apply([web, inner, server], policies);
    await untilNext(web.address, hostsAt.a);
    await untilNext(server.address, hostsAt.b);
    assert.deepEqual([inTable("a"), inTable("b")], [[web.address], [server.address]], "none of an internal address");
    const { agent } = installation.guests.server!;
    await agent.call("listen", 443);
    assert.equal(await installation.router.agent.call("open", server.address, 443), "open");

    const applied = async (plans: readonly GuestPlan[], wanted: string): Promise<number> => {
      const begun = performance.now();
      await installation.apply(plans, policies);
      return untilNext(web.address, wanted, begun);
    };
    const moved = await applied([{ ...web, host: "b" }, inner, server], hostsAt.b);
    assert.deepEqual(inTable("a"), []);
    const gone = await applied([inner, server], "");
    const came = await applied([web, inner, server], hostsAt.a);
    t.diagnostic(`both routers know after ${came} ms of a start, ${moved} ms of a move, ${gone} ms of a stop`);
  });

  test("a host says what it announces, to whom and since when, and `why` says what keeps routers from being told", async () => {
    await installation.apply([web, inner, server], policies);
    await untilNext(web.address, hostsAt.a);
    const { a: driver } = installation.drivers;
    const host = installation.hostMachines.a;
    const ask = async (destination: string): Promise<PacketCheck | undefined> => {
      const question = { side: "receiver", source: "203.0.113.9", destination, protocol: "tcp", port: 443 };
      return (await driver.call<readonly PacketCheck[]>("examine", question)).find(
        ({ check }) => check === "announced",
      );
    };
    const peers = Object.values(routers);
    const untilPeers = async (wanted: readonly string[]): Promise<void> => {
      for (let tries = 0; (await driver.call<Announced>("announced")).peers.join() !== wanted.join(); tries += 1) {
        assert.ok(tries < 400, `the sessions are not those with ${wanted.join()}`);
        await waits(50);
      }
    };
    const { addresses, ...now } = await driver.call<Announced>("announced");
    assert.deepEqual(now, { table, peers });
    assert.deepEqual(
      addresses.map(({ address, isRouted }) => [address, isRouted]),
      [[web.address, true]],
    );
    assert.ok(Math.abs((addresses[0]?.sinceMs ?? 0) - Date.now()) < 60_000);
    assert.deepEqual(await ask(web.address), {
      check: "announced",
      passes: true,
      detail: `${web.address} is in table ${table}, whose daemon has a BGP connection with ${peers.join(" and ")}`,
    });
    assert.equal(await ask(inner.address), undefined, "of what is inside nobody is told");

    host.run("ip", "route", "flush", "table", String(table));
    for (let tries = 0; inTable("a").length === 0; tries += 1) {
      assert.ok(tries < 200, "what somebody takes out is put back");
      await waits(50);
    }
    await untilNext(web.address, hostsAt.a);
    assert.equal((await ask(web.address))?.passes, true);

    host.run("ip", "link", "set", "out0", "down");
    try {
      await untilPeers([]);
      const down = await ask(web.address);
      assert.match(down?.detail ?? "", /^no router is told of 198\.18\.0\.10: this machine has no BGP connection/);
      assert.equal(down?.passes, false);
    } finally {
      host.run("ip", "link", "set", "out0", "up");
    }
    await untilPeers(peers);
    assert.equal((await ask(web.address))?.passes, true);
    await untilNext(web.address, hostsAt.a);

    // A router's daemon is gone: the other router is told still, and leads here.
    daemons[1]?.kill("SIGKILL");
    await untilPeers([routers.one]);
    const left = await ask(web.address);
    assert.deepEqual([left?.passes, left?.detail.endsWith(`a BGP connection with ${routers.one}`)], [true, true]);
    assert.deepEqual([next(installation.router.machine, web.address), inTable("a")], [hostsAt.a, [web.address]]);
    assert.equal(await installation.router.agent.call("open", server.address, 443), "open");
    await starts("two", installation.stranger.machine, ofRouter(routers.two));
    await untilPeers(peers);
    await untilNext(web.address, hostsAt.a);
  });

  const outlasting = (): void => {
    test("routes outlast the driver's process; a new one takes back what an earlier one left, and nobody else's", async () => {
      await installation.apply([web, inner, server], policies);
      await untilNext(web.address, hostsAt.a);
      await installation.drivers.a.stop();
      installation.agents.delete(installation.drivers.a);
      assert.deepEqual(inTable("a"), [web.address]);
      const host = installation.hostMachines.a;
      host.run("ip", "route", "add", "blackhole", "198.18.0.77/32", "table", String(table), "proto", "67");
      host.run("ip", "route", "add", "blackhole", "198.18.0.78/32", "table", "200", "proto", "67");
      host.run("ip", "route", "add", "blackhole", "198.18.0.79/32", "table", String(table), "proto", "static");
      await untilNext("198.18.0.77", hostsAt.a);
      await installation.startDriver("a");
      await installation.apply([web, inner, server], policies);
      await untilNext("198.18.0.77", "");
      assert.deepEqual([inTable("a"), inTable("a", 200)], [[web.address, "198.18.0.79"], []]);
      host.run("ip", "route", "del", "blackhole", "198.18.0.79/32", "table", String(table));
      assert.equal(next(machines[0]!, web.address), hostsAt.a);
    });

    test("routes are gone with everything that the driver takes away, and without a table in the configuration", async () => {
      await installation.apply([web, inner, server], policies);
      assert.deepEqual(inTable("a"), [web.address]);
      await installation.drivers.a.call("flush");
      assert.deepEqual(inTable("a"), []);
      await installation.apply([web, inner, server], policies);
      assert.deepEqual(inTable("a"), [web.address]);
      installation.table = undefined;
      await restarts("a", [web, inner, server]);
      assert.deepEqual(inTable("a"), []);
      installation.table = table;
      await restarts("a", [web, inner, server]);
      assert.deepEqual(inTable("a"), [web.address]);
      await installation.drivers.a.call("cleanup");
      assert.deepEqual(inTable("a"), []);
    });
  };
  if (kind === "bird") outlasting();

  test("a host that is gone is no way to an address any more", async (t) => {
    await installation.drivers.b.call("apply", installation.global("b", [server], policies));
    await untilNext(server.address, hostsAt.b);
    const begun = performance.now();
    installation.hostMachines.b.run("ip", "link", "set", "out0", "down");
    const ms = await untilNext(server.address, "", begun);
    assert.deepEqual(inTable("b"), [server.address], "which it does not know itself");
    t.diagnostic(`both routers know after ${ms} ms that a host is gone, by BFD of three times 100 ms`);
  });
};

test("the operator's guide has a configuration that bird reads", { skip: whySkipped("bird") }, () => {
  const guide = readFileSync(join(import.meta.dirname, "../../../../../docs/operator.md"), "utf8");
  const [, text = ""] = /```text\n(router id [^`]+)```/.exec(guide) ?? [];
  const directory = mkdtempSync(join(tmpdir(), "cells-bird-"));
  try {
    const file = join(directory, "bird.conf");
    writeFileSync(file, text);
    execFileSync("/usr/sbin/bird", ["-p", "-c", file], { stdio: "pipe" });
    writeFileSync(file, text.replace("neighbor", "neighbour"));
    assert.throws(() => execFileSync("/usr/sbin/bird", ["-p", "-c", file], { stdio: "pipe" }), /syntax error/);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
for (const kind of ["bird", "frr"] as const)
  describe(`external addresses announced by BGP, with ${kind}`, { skip: whySkipped(kind) }, () => announced(kind));
