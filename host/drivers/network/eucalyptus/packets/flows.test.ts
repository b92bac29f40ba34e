import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Machine } from "../../diverter/testing/namespaces.testing.ts";
import type { NetworkService } from "../../service/network-service.ts";
import type { LocalNetwork } from "../driver.ts";
import type { LocalPlan } from "../plan/plan.ts";
import { planOf, World } from "./world.testing.ts";

/*
 * What the kernel keeps of a connection outlives the rules by which it began. A node in EDGE with two instances, and whoever asks from outside, by
 * echoes of one identifier: each of them is of one connection.
 */

const text = readFileSync(join(import.meta.dirname, "..", "cases", "edge-03-two-nodes-n1", "gni.xml"), "utf8");
const [elastic, site] = ["10.111.101.60", "10.111.0.1"];
const [first, second] = [
  { tap: "vn_i-a7f05959", mac: "d0:0d:a7:f0:59:59", address: "1.119.128.35" },
  { tap: "vn_i-c1c2c3c4", mac: "d0:0d:c1:c2:c3:c4", address: "1.119.128.37" },
] as const;
const world = new World();
let node: Machine;
let outside: Machine;
let guests: readonly [Machine, Machine];
let service: NetworkService<LocalPlan, LocalNetwork, unknown>;
/** Its runs fail. */
let failing = "";
const plan = (change = (view: string) => view): LocalPlan =>
  planOf(change(text), "10.111.5.43", { bridgeMac: "02:00:00:00:00:FE" });
const holds = (address: string, tap: string, view: string): string =>
  view.replace(new RegExp(`(<instance name="${tap.slice(3)}">[^]*?<publicIp>)[^<]*`), `$1${address}`);
const nobodys = (view: string): string => holds("0.0.0.0", first.tap, view);
const anothers = (view: string): string => holds(elastic, second.tap, nobodys(view));
const offer = (wanted: LocalPlan, by = service): Promise<unknown> => by.offer({ mode: "EDGE", global: wanted });
const offered = async (wanted: LocalPlan): Promise<void> => {
  await offer(wanted);
  assert.deepEqual(service.state.failed, {});
};
const answers = (to: string, identifier: number, from = outside): boolean =>
  from.succeeds("ping", "-e", String(identifier), "-c", "1", "-W", "1", to);
const start = (): NetworkService<LocalPlan, LocalNetwork, unknown> => {
  const there = world.run(node);
  return world.service(node, "node", (program, args, input) =>
    program === failing && !String(args[0]).startsWith("--")
      ? Promise.reject(new Error("out of memory"))
      : there(program, args, input),
  );
};
/** From now on one of both answers no echo. */
const onlyAnswers = (index: 0 | 1): void => {
  for (const [at, guest] of guests.entries())
    guest.run("sysctl", "-q", "-w", `net.ipv4.icmp_echo_ignore_all=${at === index ? 0 : 1}`);
};

before(async () => {
  [node, outside] = [await world.machine(), await world.machine()];
  guests = [await world.machine(), await world.machine()];
  node.cable("em1", outside, "net");
  node.run("ip", "address", "add", "10.111.5.43/16", "dev", "em1");
  node.run("ip", "route", "add", "default", "via", site);
  outside.run("ip", "address", "add", `${site}/16`, "dev", "net");
  outside.run("ip", "route", "add", "1.119.128.0/24", "via", "10.111.5.43");
  node.run("ip", "link", "add", "br0", "type", "bridge");
  for (const [index, { tap, mac }] of [first, second].entries()) node.cable(tap, guests[index as 0 | 1], "eth0", mac);
  // A router that goes on to send to the machine where it was.
  const [, mac = ""] = /ether (\S+)/.exec(node.run("ip", "link", "show", "dev", "em1")) ?? [];
  outside.run("ip", "neighbour", "replace", elastic, "lladdr", mac, "dev", "net");
  service = start();
  await offered(plan());
  for (const guest of guests) assert.ok(world.lease(guest), "a lease");
});
after(() => world.end());

test("who asks an elastic address while it is nobody's reaches whose it becomes, by the same connection", async () => {
  await offered(plan(nobodys));
  assert.ok(!answers(elastic, 101));
  await offered(plan());
  assert.ok(answers(elastic, 101));
});

test("an elastic address that is another's, or nobody's, by now reaches no one who had it, and other connections live on", async () => {
  assert.ok(answers(elastic, 102) && answers(first.address, 103));
  await offered(plan(anothers));
  onlyAnswers(0);
  assert.ok(!answers(elastic, 102), "who had it");
  onlyAnswers(1);
  assert.ok(answers(elastic, 102), "who has it");
  const kept = node.run("conntrack", "-L");
  assert.match(kept, new RegExp(`dst=${first.address} type=8 code=0 id=103 `));
  await offered(plan(nobodys));
  assert.ok(!answers(elastic, 102), "nobody");
  onlyAnswers(0);
  await offered(plan());
});

test("what is kept of an instance's address goes with it", async () => {
  assert.ok(answers(site, 104, guests[0]) && answers(site, 105, guests[1]));
  // Another instance has its address.
  const next = "i-0badcafe";
  for (const words of [["down"], ["name", `vn_${next}`], ["up"]])
    node.run("ip", "link", "set", "dev", words[0] === "up" ? `vn_${next}` : first.tap, ...words);
  await offered(plan((view) => view.replaceAll(first.tap.slice(3), next)));
  const kept = node.run("conntrack", "-L");
  assert.ok(!kept.includes("id=104 "), kept);
  assert.match(kept, /id=105 /);
  for (const words of [["down"], ["name", first.tap], ["up"]])
    node.run("ip", "link", "set", "dev", words[0] === "up" ? first.tap : `vn_${next}`, ...words);
  await offered(plan());
});

test("what could not be forgotten is named and tried again, also by a process that begins then", async () => {
  assert.ok(answers(elastic, 106));
  failing = "conntrack";
  await offer(plan(anothers));
  assert.match(JSON.stringify(service.state.failed), /out of memory/);
  await service.stop();
  failing = "";
  service = start();
  await offered(plan(anothers));
  onlyAnswers(1);
  assert.ok(answers(elastic, 106), "who has it");
});
