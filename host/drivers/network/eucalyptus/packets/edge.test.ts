import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { arp, dhcp, ethernet, everyone, ip, udp } from "../../diverter/testing/frames.testing.ts";
import type { Agent, Machine } from "../../diverter/testing/namespaces.testing.ts";
import type { NetworkService } from "../../service/network-service.ts";
import type { LocalNetwork } from "../driver.ts";
import type { LocalConfiguration, LocalPlan } from "../plan/plan.ts";
import { planOf, soon, type Watched, World } from "./world.testing.ts";

/*
 * EDGE with real packets: a node, two instances there and one on the site's network, each a network namespace. `outside` is the site: a
 * router, the cloud controller that answers for metadata, and whoever comes from outside.
 */

const text = readFileSync(join(import.meta.dirname, "..", "cases", "edge-03-two-nodes-n1", "gni.xml"), "utf8");
const bridgeMac = "02:00:00:00:00:FE";
const [first, second] = [
  { tap: "vn_i-a7f05959", mac: "d0:0d:a7:f0:59:59", address: "1.119.128.35" },
  { tap: "vn_i-c1c2c3c4", mac: "d0:0d:c1:c2:c3:c4", address: "1.119.128.37" },
] as const;
const [elastic, gateway, site, controller] = ["10.111.101.60", "1.119.128.1", "10.111.0.1", "10.111.5.27"] as const;

const world = new World();
let node: Machine;
let outside: Machine;
let guests: readonly [Machine, Machine];
let agents: readonly [guest: Agent, outside: Agent];
let onTheWire: Watched;
let service: NetworkService<LocalPlan, LocalNetwork, unknown>;
/** A program of which each run that writes fails. */
let failing = "";
const plan = (
  change = (view: string) => view,
  outgoingClosed = false,
  more: Partial<LocalConfiguration> = {},
): LocalPlan => planOf(change(text), "10.111.5.43", { bridgeMac, outgoingClosed, ...more });
const offered = async (wanted: LocalPlan): Promise<void> => {
  await service.offer({ mode: "EDGE", global: wanted });
  assert.deepEqual(service.state.failed, {});
};
const pings = (from: Machine, to: string): boolean => from.succeeds("ping", "-c", "1", "-W", "1", to);
/** Does a TCP connection open? */
const opens = (from: Machine, to: string, port: number): boolean =>
  from.succeeds("socat", "-u", "/dev/null", `TCP:${to}:${port},connect-timeout=1`);

before(async () => {
  [node, outside] = [await world.machine(), await world.machine()];
  guests = [await world.machine(), await world.machine()];
  node.cable("em1", outside, "net");
  node.run("ip", "address", "add", "10.111.5.43/16", "dev", "em1");
  node.run("ip", "route", "add", "default", "via", site);
  for (const address of [site, controller, "10.111.9.9"])
    outside.run("ip", "address", "add", `${address}/16`, "dev", "net");
  node.run("ip", "link", "add", "br0", "type", "bridge");
  for (const [index, { tap, mac }] of [first, second].entries()) node.cable(tap, guests[index as 0 | 1], "eth0", mac);
  outside.run("ip", "route", "add", "1.119.128.0/24", "via", "10.111.5.43");
  world.spawn(outside, "socat", `TCP-LISTEN:8773,bind=${controller},fork,reuseaddr`, "PIPE");
  for (const port of [22, 80]) world.spawn(guests[0], "socat", `TCP-LISTEN:${port},fork,reuseaddr`, "PIPE");
  agents = [world.agent(guests[0]), world.agent(outside)];
  onTheWire = await world.watch(outside, "net", "arp");
  const there = world.run(node);
  service = world.service(node, "node", (program, args, input) =>
    program === failing && args[0] !== "save"
      ? Promise.reject(new Error("out of memory"))
      : there(program, args, input),
  );
  await offered(plan());
  for (const guest of guests) assert.ok(world.lease(guest), "a lease");
});
after(() => world.end());

test("an instance gets its address, gateway, name server and domain by DHCP, and nobody else any", async () => {
  for (const [index, { address }] of [first, second].entries()) {
    const guest = guests[index as 0 | 1];
    assert.match(guest.run("ip", "-4", "address", "show", "dev", "eth0"), new RegExp(`${address}/24`));
    assert.match(guest.run("ip", "route"), new RegExp(`default via ${gateway}`));
  }
  assert.ok(pings(guests[0], gateway), "the gateway answers");
  guests[0].run("ip", "link", "set", "eth0", "address", "d0:0d:00:00:00:01");
  assert.ok(!world.lease(guests[0], 1), "no lease for another MAC");
  guests[0].run("ip", "link", "set", "eth0", "address", first.mac);
  guests[0].run("ip", "route", "replace", "default", "via", gateway);
  assert.ok(pings(guests[0], gateway));
});

test("an elastic address is announced, and reached from outside, by others and by its owner, where a rule opens the port", async () => {
  assert.ok(
    await soon(
      () => onTheWire.text.includes(`Announcement ${elastic}`) || onTheWire.text.includes(`who-has ${elastic}`),
    ),
  );
  for (const [who, from] of [
    ["outside", outside],
    ["another instance of the group", guests[1]],
    ["its owner", guests[0]],
  ] as const)
    assert.ok(opens(from, elastic, 22), who);
  assert.ok(pings(outside, elastic));
  assert.ok(!opens(outside, elastic, 80), "a port that no rule opens");
  const opened = (view: string): string =>
    view.replace("<toPort>22</toPort>", "<toPort>80</toPort>").replace("-p 22-22", "-p 22-80");
  await offered(plan(opened));
  assert.ok(opens(outside, elastic, 80), "the rule opens it");
  await offered(plan());
  assert.ok(!opens(outside, elastic, 80), "and closes it again");
});

test("metadata answers, and nothing else of the node does", async () => {
  for (const guest of guests) assert.ok(opens(guest, "169.254.169.254", 80), "metadata");
  world.spawn(node, "socat", "TCP-LISTEN:9999,fork,reuseaddr", "PIPE");
  assert.ok(await soon(() => opens(node, "127.0.0.1", 9999)));
  for (const to of [gateway, "10.111.5.43"]) assert.ok(!opens(guests[0], to, 9999), to);
  assert.ok(opens(outside, "10.111.5.43", 9999), "the site reaches it");
});

test("a machine that answers for metadata itself tells each instance its own, and gives it nothing else of the node", async () => {
  const here = { metadataHere: true, underlay: ["10.111.0.0/16"] };
  await offered(plan((view) => view, true, here));
  const responder = join(import.meta.dirname, "..", "metadata", "responder.ts");
  const known = JSON.stringify(
    [first, second].map(({ tap, mac, address }) => [
      address,
      { instance: tap.slice(3), mac, address, hostName: tap, cluster: "one", data: { userData: `for ${address}` } },
    ]),
  );
  const program = `import(${JSON.stringify(responder)}).then(({ startResponder }) =>
    startResponder({ log() {}, factsOf: async (address) => new Map(${known}).get(address) ?? null }))`;
  world.spawn(node, process.execPath, "-e", program);
  const ask = (from: Machine, path: string, to = "169.254.169.254:80", more = ""): string => {
    const request = `GET /latest/${path} HTTP/1.0\\r\\nHost: 169.254.169.254\\r\\n\\r\\n`;
    try {
      return from.run("sh", "-c", `printf "${request}" | socat -t2 - TCP:${to},connect-timeout=1${more}`);
    } catch {
      return "";
    }
  };
  assert.ok(await soon(() => ask(guests[0], "user-data").endsWith(`for ${first.address}`)), "its own");
  assert.ok(ask(guests[1], "meta-data/instance-id").endsWith(second.tap.slice(3)));
  assert.match(ask(outside, "user-data", "10.111.5.43:8773"), /^HTTP\/1\.1 404 /, "nobody's");
  // By no other way than metadata's address, neither here nor at the cloud controller, which answers for it elsewhere.
  for (const to of [gateway, "10.111.5.43", "169.254.169.254", controller])
    assert.equal(ask(guests[0], "user-data", `${to}:8773`), "", to);
  assert.equal(ask(guests[0], "user-data", "169.254.169.254:22"), "");
  // Under another one's address nothing leaves an instance.
  guests[0].run("ip", "address", "add", `${second.address}/32`, "dev", "eth0");
  assert.equal(ask(guests[0], "user-data", undefined, `,bind=${second.address}`), "");
  guests[0].run("ip", "address", "del", `${second.address}/32`, "dev", "eth0");
  assert.ok(ask(guests[0], "user-data").endsWith(`for ${first.address}`));
  await offered(plan());
  assert.ok(opens(guests[0], "169.254.169.254", 80), "the cloud controller answers again");
});

test("a command that fails stays due with its reason, what does not need it is in place, and it is tried again", async () => {
  const opened = (view: string): string =>
    view.replace("<toPort>22</toPort>", "<toPort>80</toPort>").replace("-p 22-22", "-p 22-80");
  node.run("ip", "address", "del", `${elastic}/32`, "dev", "em1");
  failing = "iptables-restore";
  await service.offer({ mode: "EDGE", global: plan(opened) });
  assert.deepEqual(service.state.failed, { securityGroup: "out of memory" });
  assert.ok(!opens(outside, elastic, 80), "its rule is not in force");
  assert.ok(opens(outside, elastic, 22), "what was in force is, and the address, which does not need it, is back");
  await service.look();
  assert.deepEqual(service.state.failed, { securityGroup: "out of memory" }, "as long as it fails");
  failing = "";
  await service.look();
  assert.deepEqual(service.state.failed, {});
  assert.ok(opens(outside, elastic, 80));
  await offered(plan());
});

test("where what instances send needs a rule, it is a rule of theirs that lets it out", async () => {
  world.spawn(outside, "socat", "TCP-LISTEN:7000,fork,reuseaddr", "PIPE");
  const stranger = "10.111.9.9";
  assert.ok(await soon(() => opens(guests[0], stranger, 7000)), "in Eucalyptus all goes out");
  await offered(plan((view) => view, true));
  assert.ok(!opens(guests[0], stranger, 7000), "no rule lets it out");
  assert.ok(!pings(guests[0], stranger));
  assert.ok(opens(outside, elastic, 22), "answers go out");
  assert.ok(opens(guests[1], first.address, 22), "members reach one another");
  assert.ok(opens(guests[0], "169.254.169.254", 80) && pings(guests[0], gateway), "what all need");
  const rule =
    "<rule><protocol>6</protocol><fromPort>7000</fromPort><toPort>7000</toPort><cidr>10.111.9.0/24</cidr></rule>";
  await offered(plan((view) => view.replace("<egressRules/>", `<egressRules>${rule}</egressRules>`), true));
  assert.ok(opens(guests[0], stranger, 7000), "the rule lets it out");
  assert.ok(!opens(guests[0], site, 7000), "and nothing else");
  const everywhere = rule.replace("10.111.9.0/24", "0.0.0.0/0");
  const wide = (view: string): string => view.replace("<egressRules/>", `<egressRules>${everywhere}</egressRules>`);
  await offered(plan(wide, true));
  assert.ok(opens(guests[0], stranger, 7000) && opens(guests[0], site, 7000), "a rule about all networks");
  const underlay = { underlay: ["10.111.0.0/29"] };
  await offered(plan(wide, true, underlay));
  assert.ok(!opens(guests[0], site, 7000), "is about none of the installation's own");
  assert.ok(
    opens(guests[0], stranger, 7000) && opens(guests[0], "169.254.169.254", 80) && opens(guests[1], first.address, 22),
  );
  await offered(plan(wide, true, { ...underlay, underlayOpen: true }));
  assert.ok(opens(guests[0], site, 7000), "unless its operator says so");
  await offered(plan());
  assert.ok(opens(guests[0], site, 7000));
});

test("a forged MAC, address, ARP, RARP and DHCP server die, each beside its honest brother", async () => {
  const [agent] = agents;
  const [victim, bridge] = [await world.watch(guests[1], "eth0", "inbound"), await world.watch(node, "br0", "inbound")];
  const frame = (source: string, port: number, from: string = first.mac, to: string = second.mac): string =>
    ethernet(to, from, 0x0800, ip(source, second.address, 17, udp(5000, port, Buffer.from("x"))));
  let marks = 6000;
  /** What comes of frames, once an honest one behind them has come. */
  const seen = async (...frames: readonly string[]): Promise<string> => {
    const from = victim.text.length;
    const mark = marks++;
    await agent.call("inject", "eth0", [...frames, frame(first.address, mark)]);
    assert.ok(await soon(() => victim.text.includes(`.${mark}: `)), "the honest packet arrives");
    return victim.text.slice(from);
  };
  // The watchers may still be starting.
  assert.ok(
    await soon(async () => {
      await agent.call("inject", "eth0", [frame(first.address, 5000)]);
      return victim.text.includes(".5000: ");
    }),
  );
  assert.match(await seen(frame(first.address, 5001)), /\.5001: /);
  assert.ok(!(await seen(frame(first.address, 5002, "d0:0d:00:00:00:01"))).includes(".5002: "), "forged MAC");
  assert.ok(!(await seen(frame("1.119.128.99", 5003))).includes(".5003: "), "forged address");
  assert.ok(!(await seen(frame(gateway, 5004))).includes(".5004: "), "the gateway's address");
  const asked = (source: string, mac: string = first.mac): string =>
    ethernet(everyone, first.mac, 0x0806, arp(1, mac, source, second.address));
  assert.match(await seen(asked(first.address)), /who-has 1\.119\.128\.37 .*tell 1\.119\.128\.35/);
  assert.ok(!(await seen(asked(gateway))).includes(`tell ${gateway}`), "the gateway's ARP");
  assert.ok(!(await seen(asked("1.119.128.99"))).includes("tell 1.119.128.99"), "another address by ARP");
  assert.ok(!(await seen(asked(first.address, "d0:0d:00:00:00:01"))).includes("who-has"), "another MAC in ARP");
  const answer = (source: string): string => {
    const said = arp(2, first.mac, source, second.address).replace("000000000000", second.mac.replaceAll(":", ""));
    return ethernet(second.mac, first.mac, 0x0806, said);
  };
  assert.match(await seen(answer(first.address)), /Reply 1\.119\.128\.35 is-at/);
  assert.ok(!(await seen(answer(gateway))).includes(`Reply ${gateway}`), "an answer for the gateway");
  // RARP of an instance reaches the bridge, and nobody else's does.
  const reverse = (mac: string, from: string = first.mac): string => {
    const address = mac.replaceAll(":", "");
    return ethernet(everyone, from, 0x8035, `00010800060400${"03"}${address}00000000${address}00000000`);
  };
  await seen(reverse("d0:0d:00:00:00:02"), reverse(first.mac));
  assert.ok(await soon(() => bridge.text.includes(`who-is ${first.mac}`)), bridge.text);
  assert.ok(!bridge.text.includes("who-is d0:0d:00:00:00:02"), "RARP for another MAC");
  // A DHCP server that speaks to its victim alone, under its own address and under the gateway's.
  const offer = (source: string): string =>
    ethernet(
      second.mac,
      first.mac,
      0x0800,
      ip(source, second.address, 17, udp(67, 68, dhcp(2, second.mac).subarray(8))),
    );
  for (const source of [first.address, gateway])
    assert.ok(!(await seen(offer(source))).includes(".68: "), `a DHCP server at ${source}`);
  const call = ethernet(everyone, second.mac, 0x0800, ip("0.0.0.0", "255.255.255.255", 17, dhcp(1, second.mac)));
  assert.ok(!(await seen(call)).includes(".67: "), "another's DHCP request");
  assert.ok(world.lease(guests[1]), "the node's own server answers");
});

test("to a port of DHCP goes what comes from an instance's own address, and who has none asks everybody", async () => {
  const [agent] = agents;
  await offered(plan((view) => view, true));
  const bridge = await world.watch(node, "br0", "inbound and udp");
  const out = await world.watch(outside, "net", "udp");
  const bridgeMac = (JSON.parse(node.run("ip", "-j", "link", "show", "dev", "br0")) as { address: string }[])[0];
  const to = bridgeMac?.address ?? assert.fail();
  const frame = (source: string, target: string, port: number, from = 68): string =>
    ethernet(to, first.mac, 0x0800, ip(source, target, 17, udp(from, port, dhcp(0, first.mac).subarray(8))));
  const forged = ["1.119.128.99", second.address, gateway, "0.0.0.0"];
  const honest = (port: number) => async (): Promise<boolean> => {
    await agent.call("inject", "eth0", [frame(first.address, gateway, 67, port)]);
    return bridge.text.includes(`.${port} > `);
  };
  // The watchers may still be starting.
  assert.ok(await soon(honest(6210)));
  for (const [at, source] of forged.entries())
    for (const port of [67, 68]) await agent.call("inject", "eth0", [frame(source, "10.111.5.1", port, 6200 + at)]);
  assert.ok(await soon(honest(6211)));
  for (const [at, source] of forged.entries())
    assert.ok(!`${bridge.text}${out.text}`.includes(`.${6200 + at} > `), `from ${source}: ${bridge.text}`);
  const [guest] = guests;
  guest.run("ip", "address", "flush", "dev", "eth0");
  assert.ok(world.lease(guest), "without an address");
  await offered(plan());
});

test("a DHCP server is asked by nobody in another's name: neither MAC nor identifier takes a neighbour's address out of use", async () => {
  const [agent] = agents;
  const to =
    (JSON.parse(node.run("ip", "-j", "link", "show", "dev", "br0")) as { address: string }[])[0]?.address ?? "";
  const asked = await world.watch(node, "br0", "-v", "inbound and udp port 67");
  const [declines, requests] = [4, 3];
  const byte = (address: string): readonly number[] => address.split(".").map(Number);
  const option = (code: number, address: string): readonly number[] => [code, 4, ...byte(address)];
  const named = (mac: string): readonly number[] => [61, 7, 1, ...Buffer.from(mac.replaceAll(":", ""), "hex")];
  const changed = (message: Buffer, at: number, bytes: readonly number[]): Buffer => {
    message.set(bytes, 8 + at);
    return message;
  };
  const packet = (message: Buffer, fragment = 0): string =>
    ethernet(to, first.mac, 0x0800, ip(first.address, gateway, 17, message, fragment));
  const decline = (mac: string): Buffer => dhcp(declines, mac, [...option(54, gateway), ...option(50, second.address)]);
  const forged = decline(second.mac);
  const rest = ethernet(to, first.mac, 0x0800, ip(first.address, gateway, 17, forged.subarray(24), 3));
  await agent.call("inject", "eth0", [
    packet(forged),
    // Without a length of its own the server would look at nothing, and a relay speaks for others.
    packet(changed(decline(second.mac), 2, [0])),
    packet(changed(decline(first.mac), 24, byte(first.address))),
    // In parts, of which none alone says for whom it is.
    packet(forged.subarray(0, 24), 0x2000),
    rest,
  ]);
  const own = (mark: number): string => packet(changed(decline(first.mac), 4, [0, 0, 0, mark]));
  assert.ok(
    await soon(async () => {
      await agent.call("inject", "eth0", [own(77)]);
      return asked.text.includes("xid 0x4d");
    }),
    "its own arrives",
  );
  for (const bad of [`Request from ${second.mac}`, "hlen 0", "Gateway-IP", "xid 0xdeadbeef"])
    assert.ok(!asked.text.includes(bad), `${bad} in ${asked.text}`);
  assert.ok(world.lease(guests[1]), "the neighbour has its address anew");
  // Under the neighbour's identifier for its own address; then the neighbour asks to keep its own.
  const heard = await world.watch(guests[1], "eth0", "-v", "inbound and udp port 68");
  const kept = (mac: string, address: string, source: string): string =>
    ethernet(
      to,
      mac,
      0x0800,
      ip(source, gateway, 17, changed(dhcp(requests, mac, named(second.mac)), 12, byte(address))),
    );
  await agent.call("inject", "eth0", [
    packet(dhcp(requests, first.mac, [...named(second.mac), ...option(54, gateway), ...option(50, first.address)])),
  ]);
  const neighbour = world.agent(guests[1]);
  assert.ok(
    await soon(async () => {
      await neighbour.call("inject", "eth0", [kept(second.mac, second.address, second.address)]);
      return heard.text.includes("BOOTP/DHCP, Reply");
    }),
    "it is answered",
  );
  assert.ok(heard.text.includes(`Your-IP ${second.address}`) && !heard.text.includes("NACK"), heard.text);
});

test("a set that is full keeps what it has and stays due with its reason, other groups go on, and with room it is whole", async () => {
  const [name, other, more] = ["sg-e33c6cf3", "sg-11aa22bb", "10.111.101.62"];
  const members = (set = name): readonly string[] =>
    node
      .run("ipset", "save", set)
      .split("\n")
      .flatMap((line) => (line.startsWith("add ") ? (line.split(" ")[2] ?? []) : []))
      .sort();
  /** As if it had been made with room for so many. */
  const resized = (most: number): void => {
    node.run("ipset", "create", "resized", "hash:net", "maxelem", String(most));
    for (const member of members()) node.run("ipset", "add", "resized", member);
    node.run("ipset", "swap", "resized", name);
    node.run("ipset", "destroy", "resized");
  };
  const before = members();
  resized(before.length);
  const wanted = plan((view) => view.replace("<publicIp>0.0.0.0<", `<publicIp>${more}<`));
  const why = /^the set sg-e33c6cf3 lacks members: .*full/i;
  const isShort = (): void => {
    assert.match(service.state.failed.securityGroup ?? "", why);
    assert.deepEqual([...(service.state.partly?.securityGroup?.keys() ?? [])], [name]);
    assert.deepEqual(members(), before);
    assert.ok(members(other).includes(more), "the other group has it");
    assert.ok(opens(outside, elastic, 22) && opens(guests[1], first.address, 80), "what was reached is");
    assert.ok(!opens(outside, more, 22), "and nothing else");
  };
  await service.offer({ mode: "EDGE", global: wanted });
  isShort();
  await service.look();
  isShort();
  // One for another has room.
  await offered(plan((view) => view.replace(`<publicIp>${elastic}<`, "<publicIp>10.111.101.63<")));
  assert.deepEqual(members(), before.map((each) => (each === elastic ? "10.111.101.63" : each)).sort());
  await offered(plan());
  await service.offer({ mode: "EDGE", global: wanted });
  isShort();
  resized(before.length + 1);
  await service.look();
  assert.deepEqual([service.state.failed, members()], [{}, [...before, more].sort()]);
  await offered(plan());
});

test("what somebody takes away by hand comes back", async () => {
  node.run("iptables", "-F", "sg-e33c6cf3");
  node.run("ip", "address", "del", `${elastic}/32`, "dev", "em1");
  node.run("ip", "link", "set", second.tap, "nomaster");
  node.run("sysctl", "-q", "-w", "net.ipv4.ip_forward=0");
  assert.ok(!opens(outside, elastic, 22));
  // Without its translation the address is the node's own, and nobody reaches the node under it.
  node.run("iptables", "-t", "nat", "-F", "EUCA_NAT_PRE");
  node.run("ip", "address", "add", `${elastic}/32`, "dev", "em1");
  assert.ok(opens(outside, "10.111.5.43", 9999) && !opens(outside, elastic, 9999));
  await service.look();
  assert.deepEqual(service.state.failed, {});
  assert.ok(opens(outside, elastic, 22));
  assert.ok(opens(guests[1], elastic, 22));
});

test("a flush lets nothing through meanwhile: neither what no rule opens nor a forged frame", async () => {
  const [agent] = agents;
  const [open, victim] = [
    await world.watch(guests[0], "eth0", "inbound"),
    await world.watch(guests[1], "eth0", "inbound"),
  ];
  const sender =
    'const s=require("node:dgram").createSocket("udp4");const send=()=>s.send("x",PORT,"1.119.128.35",()=>setTimeout(send,1));send()';
  const spawned = (port: number) => world.spawn(outside, process.execPath, "-e", sender.replace("PORT", String(port)));
  spawned(7777);
  const frame = (port: number, source: string): string =>
    ethernet(second.mac, first.mac, 0x0800, ip(source, second.address, 17, udp(5000, port, Buffer.from("x"))));
  const opening = (view: string): string =>
    view.replace("<fromPort>22</fromPort>", "<fromPort>7777</fromPort>").replace("<protocol>6<", "<protocol>17<");
  await offered(plan((view) => opening(view.replace("<toPort>22<", "<toPort>7777<"))));
  assert.ok(await soon(() => open.text.includes(".7777: ")), "where a rule opens the port, it arrives");
  await offered(plan());
  await new Promise((resolve) => setTimeout(resolve, 100));
  let isFlushing = true;
  const [from, of] = [open.text.length, victim.text.length];
  const both = [frame(6666, first.address), frame(6667, gateway)];
  const forging = (async () => {
    while (isFlushing) await agent.call("inject", "eth0", both);
  })();
  for (const _ of [1, 2]) await service.flush();
  isFlushing = false;
  await forging;
  await agent.call("inject", "eth0", [frame(6668, first.address)]);
  assert.ok(await soon(() => victim.text.includes(".6668: ")));
  assert.deepEqual(service.state.failed, {});
  assert.ok(victim.text.slice(of).includes(".6666: "), "honest frames have passed meanwhile");
  assert.ok(!victim.text.slice(of).includes(".6667: "), "a forged frame passed");
  assert.ok(!open.text.slice(from).includes(".7777: "), "what no rule opens passed");
});

test("a machine that is in no cluster any more has no elastic address, no gateway and no instance's tap", async () => {
  await offered(plan((view) => view.replace('<node name="10.111.5.43">', '<node name="10.111.5.99">')));
  const addresses = (): string => node.run("ip", "-4", "-o", "address", "show");
  assert.ok(!addresses().includes(elastic) && !addresses().includes(`${gateway}/`), addresses());
  assert.ok(!opens(outside, elastic, 22));
  await offered(plan());
  assert.ok(addresses().includes(elastic) && addresses().includes(`${gateway}/`), addresses());
  assert.ok(await soon(() => opens(outside, elastic, 22)));
});

test("a service that ends in the middle of an apply converges when it starts anew, and a connection lives on", async () => {
  const [guest, client] = agents;
  await guest.call("listen", 23);
  const opened = (view: string): string => view.replace("<toPort>22</toPort>", "<toPort>23</toPort>");
  await offered(plan(opened));
  assert.equal(await client.call("open", elastic, 23), "open");
  assert.ok(await client.call("echo", 10, 2000));
  const state = (): string =>
    [
      node.run("iptables-save").replace(/^#.*$|\[\d+:\d+\]/gm, ""),
      node.run("ebtables-nft-save").replace(/^#.*$/gm, ""),
      node.run("ipset", "save").split("\n").sort().join("\n"),
      node.run("ip", "-4", "-o", "address", "show"),
    ].join("\n");
  const whole = state();
  await service.stop();
  const readers = new Set(["iptables-save", "ebtables-nft-save", "ip -j", "sh -c", "conntrack -L"]);
  let most = 0;
  for (let ends = 0; ends <= most; ends += 1) {
    // Much is to be done: another view's rules, no address, no guard.
    node.run("ipset", "del", "sg-e33c6cf3", `${second.address}/32`);
    node.run("iptables", "-F", "EUCA_FILTER_FWD");
    node.run("ip", "address", "del", `${elastic}/32`, "dev", "em1");
    node.run("ebtables-nft", "-t", "nat", "-F", "EUCA_EBT_NAT_POST");
    let done = 0;
    const there = world.run(node);
    const ending = world.service(node, "node", (program, args, input) => {
      const isReader = readers.has(program) || readers.has(`${program} ${args[0]}`);
      if (!isReader && args[0] !== "--version" && args[0] !== "-V") done += 1;
      if (done > ends) return Promise.reject(new Error("the process has ended"));
      return there(program, args, input);
    });
    await ending.offer({ mode: "EDGE", global: plan(opened) });
    if (ends === 0) most = 4;
    await ending.stop();
    const anew = world.service(node, "node");
    await anew.offer({ mode: "EDGE", global: plan(opened) });
    await anew.stop();
    assert.deepEqual([anew.state.failed, state()], [{}, whole], `ended at step ${ends}`);
    assert.ok(await client.call("echo", 10, 2000), `the connection lives on after an end at step ${ends}`);
  }
});

test("a machine that leaves keeps nothing", async () => {
  await offered(plan());
  await service.leave();
  const left = [node.run("iptables-save"), node.run("ebtables-nft-save"), node.run("ipset", "save")].join("\n");
  assert.ok(!/sg-|EUCA_ALL|CELLS_|vn_i/.test(left), left);
  assert.ok(!node.run("ip", "address").includes(elastic));
  assert.ok(!world.lease(guests[1], 1), "no DHCP server");
});
