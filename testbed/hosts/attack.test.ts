import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { listenerCommand, type Probe, probeCommand, seenIn } from "../../cli/connection/probe.ts";
import {
  addressKey,
  type Decoded,
  interfaceState,
  location,
  type MapName,
  policyEntry,
  policyKey,
  sourceRange,
  word,
} from "../../host/drivers/network/diverter/program/layout.ts";
import { protocolNumbers } from "../../host/drivers/network/diverter/program/protocol-numbers.ts";
import { kinds } from "../../host/drivers/network/diverter/rules/policy.ts";
import { arp, ethernet, everyone, ip, udp } from "../../host/drivers/network/diverter/testing/frames.testing.ts";
import type { ConnectionAnswer } from "../../model/api.ts";
import { ipv4, mac } from "../../model/cell/identifiers.ts";
import { parseMetrics } from "../../runtime/observation/metrics-text.ts";
import { type Testbed, withTestbed } from "../harness.ts";
import * as lab from "../lab.testing.ts";
import { memberRunDirectory } from "../places.ts";
import { execIn } from "../tenants/questions.testing.ts";

/**
 * The network under attack, with real guests on two hosts. One guest sends frames that it must not send, each of which
 * would reach the other one if nobody looked. Then entries of the dataplane are changed in the kernel, past the driver:
 * packets follow what is in force, `cells why` says so and names the entry, and the hosts mend it.
 */
const [one, two] = lab.machines;
/** What the rules open: for pings, for the marks of honest packets, for the entry that will be gone; and what they do not. */
const ports = { marks: 9000, web: 8080, closed: 9999 } as const;
const rules = (more = ""): string => {
  const rule = (name: string, protocol: string, port: number): string => `${name} extends NetworkRule {
    x.address1 "<ref:/lab/one/interface>"; x.address2 "<ref:/lab/two/interface>";
    x.protocol "${protocol}"; x.port2 "${port}"; x.direction "1to2";
  }`;
  return `${rule("marks", "udp", ports.marks)}\n${rule("web", "tcp", ports.web)}\n${more}`;
};
const oneMore = `later extends NetworkRule {
  x.address1 "<ref:/lab/one/interface>"; x.address2 "<ref:/lab/two/interface>";
  x.protocol "udp"; x.port2 "7777"; x.direction "1to2";
}`;

/** What every guest sees as its gateway. */
const gateway = "02:ce:11:5d:00:01";

interface End {
  readonly host: string;
  readonly address: string;
  /** Its entry in force on its host. */
  readonly state: Decoded<typeof interfaceState>;
}
interface Scene {
  readonly t: Testbed;
  readonly sender: End;
  readonly receiver: End;
}

const bytes = (buffer: Buffer): readonly string[] => [...buffer].map(String);
const bpftool = async (t: Testbed, host: string, ...args: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await t.exec(host, ["bpftool", "-j", "map", ...args]);
  assert.equal(code, 0, `bpftool ${args.join(" ")} on ${host}: ${stdout}${stderr}`);
  return stdout;
};
const pinned = (host: string, map: MapName): readonly string[] => [
  "pinned",
  join(memberRunDirectory(host), "bpf/diverter/maps", map),
];
const lookUp = async (t: Testbed, host: string, map: MapName, key: Buffer): Promise<Buffer> => {
  const found = JSON.parse(await bpftool(t, host, "lookup", ...pinned(host, map), "key", ...bytes(key)));
  return Buffer.from((found as { readonly value: readonly string[] }).value.map(Number));
};

const endOf = async (t: Testbed, vm: lab.Machine): Promise<End> => {
  const { host } = (await lab.stateOf(t, vm)) ?? {};
  const { address } = (await lab.stateOf(t, vm.replace(/vm$/, "interface"))) ?? {};
  assert.ok(host && address, `${vm} has a host and an address`);
  const device = await lookUp(t, host, "endpoints", addressKey.encode({ address: ipv4(address) }));
  return { host, address, state: interfaceState.decode(await lookUp(t, host, "interfaces", device)) };
};

const setScene = async (t: Testbed): Promise<Scene> => {
  await lab.applyLab(t, rules());
  for (const vm of lab.machines) await lab.untilReady(t, vm);
  const [sender, receiver] = [await endOf(t, one), await endOf(t, two)];
  assert.notEqual(sender.host, receiver.host, "the guests are on two hosts");
  await lab.untilInGuest(t, two, `ip -4 address`, new RegExp(receiver.address));
  // Frames of the guest's own would be counted among the forged ones.
  await lab.untilInGuest(t, one, "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6; ip -4 address", /eth0/);
  await lab.startInGuest(t, two, "marks", `socat -u UDP4-RECV:${ports.marks} OPEN:/tmp/marks,creat,append`);
  for (const port of [ports.web, ports.closed]) await lab.inGuest(t, two, listenerCommand("tcp", port)[2] ?? "");
  return { t, sender, receiver };
};

const dropsOf = async (t: Testbed, path: string): Promise<Readonly<Record<string, number>>> => {
  const { url, credential } = t.client();
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${credential}` } });
  const read = parseMetrics(await response.text());
  assert.ok(response.ok && read.ok);
  const drops = read.value.find(({ name }) => name === "cells_interface_drops_total");
  const own = (drops?.samples ?? []).filter(({ labels }) => labels.path === path);
  assert.ok(own.length > 0, `${path} has counters`);
  return Object.fromEntries(own.map(({ labels, value }) => [labels.reason ?? "", value]));
};

const sendFrames = async (t: Testbed, frames: readonly string[]): Promise<void> => {
  const script = frames.map((frame) => `echo ${frame} | xxd -r -p | socat -u - INTERFACE:eth0`).join(" && ");
  await lab.untilInGuest(t, one, `${script} && echo sent`, /sent/);
};

/** Frames of a guest that lies, with the reason for which each is dropped. */
const forgeries = ({ sender, receiver }: Scene): readonly (readonly [string, string])[] => {
  const own = sender.state.mac;
  const packet = (source: string, destination: string, port: number = ports.marks): string =>
    ip(source, destination, protocolNumbers.udp, udp(4000, port, Buffer.from("forged\n")));
  const honest = packet(sender.address, receiver.address);
  const neighbour = sender.address.replace(/\d+$/, (last) => String(Number(last) + 1));
  const offer = ip(sender.address, "255.255.255.255", protocolNumbers.udp, udp(67, 68, Buffer.alloc(300)));
  return [
    ["spoofed-address", ethernet(gateway, own, 0x0800, packet(neighbour, receiver.address))],
    ["spoofed-mac", ethernet(gateway, receiver.state.mac, 0x0800, honest)],
    ["rogue-arp", ethernet(everyone, own, 0x0806, arp(2, own, receiver.address, receiver.address))],
    ["rogue-dhcp", ethernet(everyone, own, 0x0800, offer)],
    ["ipv6", ethernet("33:33:00:00:00:01", own, 0x86dd, `6000000000003aff${"00".repeat(32)}`)],
    ["other-ethertype", ethernet(gateway, own, 0x88cc, "00".repeat(46))],
    // A header that promises more bytes than there are.
    ["malformed", ethernet(gateway, own, 0x0800, `45000fff${honest.slice(8)}`)],
    ["no-rule", ethernet(gateway, own, 0x0800, packet(sender.address, receiver.address, 22))],
    ["no-rule", ethernet(gateway, own, 0x0800, packet(sender.address, hostAddress(receiver)))],
    // Of what is sent to all, datagrams alone are judged by rules.
    ["broadcast", ethernet(everyone, own, 0x0800, ip(sender.address, "255.255.255.255", 47, Buffer.alloc(16)))],
  ];
};
/** Hosts are on the underlay with addresses that no guest may reach. */
const hostAddress = ({ host }: End): string => `10.0.1.${host.replace(/\D/g, "")}`;

const forge = async (scene: Scene): Promise<void> => {
  const { t, sender, receiver } = scene;
  const path = "lab/one/interface";
  const honest = (mark: string): string =>
    ethernet(
      gateway,
      sender.state.mac,
      0x0800,
      ip(sender.address, receiver.address, protocolNumbers.udp, udp(4000, ports.marks, Buffer.from(`${mark}\n`))),
    );
  await sendFrames(t, [honest("first")]);
  await lab.untilInGuest(t, two, "cat /tmp/marks", /^first\n$/);
  const before = await dropsOf(t, path);
  const expected: Record<string, number> = {};
  for (const [reason] of forgeries(scene)) expected[reason] = (expected[reason] ?? 0) + 1;
  // The last one comes the same way, so what has not arrived before it never will.
  await sendFrames(t, [...forgeries(scene).map(([, frame]) => frame), honest("last")]);
  await lab.untilInGuest(t, two, "cat /tmp/marks", /last\n$/);
  assert.equal((await lab.inGuest(t, two, "cat /tmp/marks")).stdout, "first\nlast\n");
  const after = await dropsOf(t, path);
  const grown = Object.entries(after).map(([reason, count]) => [reason, count - (before[reason] ?? 0)] as const);
  assert.deepEqual(Object.fromEntries(grown.filter(([, count]) => count > 0)), expected);
};

type Asked = "icmp" | keyof typeof ports;
const probeOf = (asked: Asked): Probe =>
  asked === "icmp"
    ? { from: one, to: two, protocol: "icmp", port: null, expected: "passes" }
    : { from: one, to: two, protocol: "tcp", port: ports[asked], expected: "passes" };

const why = async (t: Testbed, asked: Asked): Promise<ConnectionAnswer> => {
  const { protocol, port } = probeOf(asked);
  const connection = `${one} -> ${two}${port === null ? "" : `:${port}`}`;
  return JSON.parse((await t.cells(["why", connection, "--protocol", protocol, "--output", "json"])).stdout);
};
const tryPackets = async ({ t, receiver }: Scene, asked: Asked): Promise<"passes" | "blocked"> => {
  const { code, stdout, stderr } = await execIn(t, one, [...probeCommand(probeOf(asked), receiver.address)]);
  return seenIn(probeOf(asked), { exitCode: code, stdout, stderr });
};
/** Packets and `why` agree on what passes, and `why` names the entries that are astray, none where there is no pattern. */
const agree = async (scene: Scene, asked: Asked, expected: "passes" | "blocked", astray?: RegExp): Promise<void> => {
  assert.equal(await tryPackets(scene, asked), expected, `packets of ${asked}`);
  const { allowed, checks } = await why(scene.t, asked);
  const entries = checks.filter(({ check }) => check === "entry").map(({ where, detail }) => `${where}: ${detail}`);
  assert.equal(allowed, expected === "passes", `why about ${asked}: ${JSON.stringify(checks)}`);
  if (astray === undefined) assert.deepEqual(entries, []);
  else assert.match(entries.join("\n"), astray);
};
const allIsRight = async (scene: Scene): Promise<void> => {
  await agree(scene, "icmp", "passes");
  await agree(scene, "web", "passes");
  await agree(scene, "closed", "blocked");
};

const trieOf = async ({ t, sender }: Scene, host: string): Promise<readonly string[]> => {
  const inner = await lookUp(t, host, "rules", word.encode({ value: sender.state.cell }));
  return ["id", String(word.decode(inner).value)];
};
const ruleKey = ({ sender, receiver }: Scene, port: number): readonly string[] => {
  const [from, to] = [sender.state.identity, receiver.state.identity];
  const { rule: kind } = kinds;
  return bytes(policyKey.encode({ prefix_length: 112, kind, protocol: protocolNumbers.tcp, from, to, port }));
};

const loseRule = async (scene: Scene): Promise<void> => {
  const { t, sender } = scene;
  await bpftool(t, sender.host, "delete", ...(await trieOf(scene, sender.host)), "key", ...ruleKey(scene, ports.web));
  const says = new RegExp(
    `host ${sender.host} \\(sender\\): this host was told of rule \\d+ \\(lab/web\\), which would let`,
  );
  await agree(scene, "web", "blocked", says);
  await agree(scene, "icmp", "passes");
};
const addRule = async (scene: Scene): Promise<void> => {
  const ranges = Buffer.alloc(policyEntry.size - 4);
  sourceRange.encode({ rule: 77, first: 0, last: 65535 }).copy(ranges);
  const entry = bytes(policyEntry.encode({ count: 1, ranges }));
  for (const { host } of [scene.sender, scene.receiver]) {
    const trie = await trieOf(scene, host);
    await bpftool(scene.t, host, "update", ...trie, "key", ...ruleKey(scene, ports.closed), "value", ...entry);
  }
  await agree(
    scene,
    "closed",
    "passes",
    /the rules in force were changed: this host was told of no rule in this place/,
  );
};
const moveSender = async (scene: Scene): Promise<void> => {
  const { t, sender, receiver } = scene;
  const key = addressKey.encode({ address: sender.state.address });
  const { cell } = sender.state;
  const wrong = location.encode({ mac: mac("02:00:00:00:0e:0e"), cell });
  const { host } = receiver;
  await bpftool(t, host, "update", ...pinned(host, "locations"), "key", ...bytes(key), "value", ...bytes(wrong));
  const says = new RegExp(
    `host ${host} \\(receiver\\): where ${sender.address} is.*mac 02:00:00:00:0e:0e where this host`,
  );
  await agree(scene, "icmp", "blocked", says);
};
const untilMended = (t: Testbed, asked: Asked, expected: boolean): Promise<ConnectionAnswer> =>
  lab.until(
    `${asked} is as it was`,
    () => why(t, asked).catch(() => ({ allowed: !expected, checks: [] }) as unknown as ConnectionAnswer),
    ({ allowed, checks }) => allowed === expected && checks.every(({ check }) => check !== "entry"),
  );

test("the network under attack, and its entries changed in the kernel", {
  skip: process.getuid?.() === 0 ? false : "needs root",
}, async (context: TestContext) => {
  await withTestbed({ hosts: 2 }, async (t) => {
    const scene = await setScene(t);
    await context.test("what the rules say passes, and why says the same", () => allIsRight(scene));
    await context.test("forged frames end at their host, each for its reason", () => forge(scene));
    await context.test("rules changed in the kernel are noticed, and a restarted Host Manager mends them", async () => {
      await loseRule(scene);
      await addRule(scene);
      for (const { host } of [scene.sender, scene.receiver]) await t.kill(host);
      await untilMended(t, "web", true);
      await untilMended(t, "closed", false);
      await allIsRight(scene);
    });
    await context.test("a location changed in the kernel is noticed, and the next change mends it", async () => {
      await moveSender(scene);
      await lab.applyLab(t, rules(oneMore));
      await untilMended(t, "icmp", true);
      await agree(scene, "icmp", "passes");
    });
  });
});
