import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ipv4 } from "../../../../../model/cell/identifiers.ts";
import { readView } from "../../../../../model/eucalyptus/view/read-view.ts";
import { writeView } from "../../../../../model/eucalyptus/view/write-view.ts";
import type { Machine } from "../../diverter/testing/namespaces.testing.ts";
import type { PacketCheck } from "../../driver.ts";
import { soon, World } from "../packets/world.testing.ts";
import { machineFile, type NetworkAgent, startAgent, viewFile } from "./agent.ts";

/*
 * Each answer beside a real packet: two instances of two groups at one node, and what somebody does to chains, sets and devices behind the
 * agent's back.
 */
const [web, db] = [
  { id: "i-a7f05959", address: "1.119.128.35", mac: "D0:0D:A7:F0:59:59", group: "sg-00000001" },
  { id: "i-c1c2c3c4", address: "1.119.128.37", mac: "D0:0D:C1:C2:C3:C4", group: "sg-00000002" },
] as const;
const world = new World();
const directory = join(world.directory, "agent");
let node: Machine;
let guests: readonly [Machine, Machine];
let agent: NetworkAgent;
/** No pass of the agent's mends anything while this is not null. */
let held: Promise<void> | null = null;
/** So often the rules in force were printed. */
let printed = 0;

const what = { protocol: 6, fromPort: 7000, toPort: 7000, icmpType: 0, icmpCode: 0 };
const viewText = (): string => {
  const read = readView(
    readFileSync(join(import.meta.dirname, "..", "cases", "edge-03-two-nodes-n1", "gni.xml"), "utf8"),
  );
  if (!read.ok) throw new Error(JSON.stringify(read.error));
  const { view } = read.value;
  const group = (id: string, rules: object) => ({ id, owner: "shop", ingress: [], egress: [], ...rules });
  return writeView({
    ...view,
    instances: view.instances.map((each) => {
      const { group: own } = [web, db].find(({ id }) => id === each.id) ?? { group: db.group };
      const { publicIp: _, ...rest } = each;
      return { ...rest, owner: "shop", securityGroups: [own] };
    }),
    securityGroups: [
      group(web.group, { egress: [{ ...what, group: db.group }] }),
      group(db.group, { ingress: [{ ...what, group: web.group }] }),
    ],
  });
};
type Asked = { readonly to?: string; readonly port?: number };
const asked = async (side: "sender" | "receiver", { to = db.address, port = 7000 }: Asked = {}) => {
  const question = { side, source: ipv4(web.address), destination: ipv4(to), protocol: "tcp", port } as const;
  const checks = await agent.examine(question);
  assert.ok(checks !== null, "it is about an instance here");
  return checks;
};
const first = (checks: readonly PacketCheck[]): string => {
  const found = checks.find(({ passes }) => !passes);
  return found === undefined ? "passes" : `${found.check}: ${found.detail}`;
};
const opens = (port: number): boolean =>
  guests[0].succeeds("socat", "-u", "/dev/null", `TCP:${db.address}:${port},connect-timeout=1`);
/** Something is done by hand, and asked about before the agent has mended it; then it has. */
const behindItsBack = async (hand: () => void, then: () => Promise<void>): Promise<void> => {
  let release = (): void => undefined;
  held = new Promise((resolve) => {
    release = resolve;
  });
  try {
    hand();
    await then();
  } finally {
    held = null;
    release();
  }
  const isMended = async (): Promise<boolean> =>
    [...(await asked("sender")), ...(await asked("receiver"))].every(
      ({ check, passes }) => passes && check !== "entry",
    );
  assert.ok(await soon(isMended), "it is mended");
  assert.ok(opens(7000));
};

before(async () => {
  [node, guests] = [await world.machine(), [await world.machine(), await world.machine()]];
  mkdirSync(directory);
  node.run("ip", "link", "add", "eno1", "type", "veth");
  node.run("ip", "link", "add", "br9", "type", "bridge");
  for (const [index, { id, mac, address }] of [web, db].entries()) {
    const guest = guests[index as 0 | 1];
    node.cable(`vn_${id}`, guest, "eth0", mac.toLowerCase());
    guest.run("ip", "address", "add", `${address}/24`, "dev", "eth0");
  }
  for (const port of [7000, 7001]) world.spawn(guests[1], "socat", `TCP-LISTEN:${port},fork,reuseaddr`, "PIPE");
  writeFileSync(join(directory, machineFile), "VNET_PUBINTERFACE=eno1\nVNET_BRIDGE=br9\nCELLS_OUTGOING_CLOSED=Y\n");
  writeFileSync(join(directory, viewFile), viewText());
  const run = world.run(node);
  const writers = new Set(["iptables-restore", "ebtables-nft-restore", "ipset", "ip", "sysctl"]);
  agent = await startAgent({
    directory,
    self: { address: "10.111.5.43", peer: "node" },
    signals: new EventEmitter(),
    run: async (program, args, input) => {
      const isReader = ["save", "-j", "-e", "-V", "--version"].includes(args[0] ?? "");
      if (program === "iptables-save") printed += 1;
      if (writers.has(program) && !isReader) await held;
      return run(program, args, input);
    },
    log: () => undefined,
  });
  assert.deepEqual(agent.state.failed, {});
});
after(async () => {
  await agent.leave().catch(() => {});
  await world.end();
});

test("what a rule opens passes on both sides, and what none opens dies by the rule of its group", async () => {
  assert.ok(await soon(() => opens(7000)));
  for (const side of ["sender", "receiver"] as const) assert.equal(first(await asked(side)), "passes", side);
  const text = JSON.stringify(await asked("sender"));
  assert.match(text, /match-set sg-00000001 src .*--dport 7000 -j ACCEPT\\" of sg-00000002 lets it pass/);
  assert.match(text, /1\.119\.128\.37 is the instance i-c1c2c3c4, on this host too/);
  assert.ok(!opens(7001));
  assert.match(first(await asked("sender", { port: 7001 })), /^rule: "-j DROP" of CELLS_i-a7f05959 drops it/);
  assert.match(first(await asked("receiver", { port: 7001 })), /^rule: /);
  const elsewhere = await agent.examine({
    side: "sender",
    source: ipv4("10.0.0.9"),
    destination: ipv4(db.address),
    protocol: "icmp",
    port: null,
  });
  assert.equal(elsewhere, null, "a question about no instance here is somebody else's");
});

test("a chain that somebody emptied is noticed, with what it does to the packet, and is mended", async () => {
  await behindItsBack(
    () => node.run("iptables", "-F", db.group),
    async () => {
      assert.ok(!opens(7000));
      const checks = await asked("sender");
      assert.match(first(checks), /^entry: the chain sg-00000002 of iptables, table filter, reads otherwise than/);
      assert.ok(checks.some(({ check, passes }) => check === "rule" && !passes));
    },
  );
  await behindItsBack(
    () => node.run("iptables", "-I", "CELLS_i-a7f05959", "-p", "tcp", "-j", "RETURN"),
    async () => {
      // What passes by a rule that nobody told is let pass here too, and is said.
      const checks = await asked("sender", { port: 7000 });
      assert.equal(first(checks), "passes");
      assert.ok(checks.some(({ check, detail }) => check === "entry" && /CELLS_i-a7f05959/.test(detail)));
    },
  );
});

test("a set that lacks a member, a guard that is another, a tap that is no port", async () => {
  await behindItsBack(
    () => node.run("ipset", "del", web.group, `${web.address}/32`),
    async () => {
      assert.ok(!opens(7000));
      assert.match(first(await asked("receiver")), /^entry: the set sg-00000001 has other members/);
    },
  );
  await behindItsBack(
    () => node.run("ebtables-nft", "-t", "nat", "-I", "EUCA_EBT_NAT_PRE", "-i", `vn_${web.id}`, "-j", "DROP"),
    async () => {
      assert.ok(!opens(7000));
      const checks = await asked("sender");
      assert.match(first(checks), /^entry: the chain EUCA_EBT_NAT_PRE of ebtables/);
      assert.ok(checks.some(({ check, passes }) => check === "guard" && !passes));
    },
  );
  await behindItsBack(
    () => node.run("ip", "link", "set", `vn_${db.id}`, "nomaster"),
    async () => {
      assert.ok(!opens(7000));
      assert.match(first(await asked("receiver")), /^interface: .*vn_i-c1c2c3c4 is no port of the bridge br9/);
    },
  );
});

test("a rule of the site's own is told apart from the cell's", async () => {
  node.run("iptables", "-I", "FORWARD", "1", "-p", "tcp", "--dport", "7000", "-j", "DROP");
  assert.ok(!opens(7000));
  assert.match(
    first(await asked("sender")),
    /^site-rule: a rule of the chain FORWARD drops it: that is no rule of the cell/,
  );
  node.run("iptables", "-D", "FORWARD", "1");
  node.run("iptables", "-I", "FORWARD", "1", "-m", "length", "--length", "1:9000", "-j", "ACCEPT");
  const checks = await asked("sender");
  assert.ok(
    checks.some(({ check, apart = "" }) => check === "doubt" && /-m length .* of FORWARD$/.test(apart)),
    JSON.stringify(checks),
  );
  node.run("iptables", "-D", "FORWARD", "1");
});

test("the rules are printed for all who ask at once together", async () => {
  await asked("sender");
  const before = printed;
  const all = await Promise.all(Array.from({ length: 40 }, () => asked("sender")));
  assert.ok(all.every((checks) => first(checks) === "passes"));
  // Two readings, and what the agent looks for itself.
  assert.ok(printed - before <= 8, String(printed - before));
});

test("what an instance sends and gets is counted", async () => {
  const counts = async () => (await agent.counters()).get(web.id);
  const before = await counts();
  assert.ok(before !== undefined);
  assert.ok(opens(7000));
  const now = await counts();
  assert.ok((now?.sent.packets ?? 0) > before.sent.packets && (now?.received.bytes ?? 0) > before.received.bytes);
});
