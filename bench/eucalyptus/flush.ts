import { setTimeout as sleep } from "node:timers/promises";
import { Agent, type Machine } from "../../host/drivers/network/diverter/testing/namespaces.testing.ts";
import { World } from "../../host/drivers/network/eucalyptus/packets/world.testing.ts";
import { formatIpv4 } from "../../model/addresses/addresses.ts";
import type { Instance, NetworkView } from "../../model/eucalyptus/view/network-view.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { quiet } from "../dataplane/dataplane.ts";
import { median, rangeOf } from "../measure.ts";
import type { Counts } from "./stream-process.ts";
import { id, planOfFirst, tcpRule, thousandRules, viewOf } from "./views.ts";

/*
 * All that a node has is put in place anew while datagrams pass: to an instance of another group, where nobody answers, so that each one meets
 * the rules; to and fro, as a connection; and from outside to an elastic address.
 */

const ports = { unanswered: 7000, answered: 7001, outside: 7002 } as const;
type Stream = keyof typeof ports;
const streams = Object.keys(ports) as Stream[];
const names: Readonly<Record<Stream, string>> = {
  unanswered: "from instance to instance, each meets the rules",
  answered: "to and fro on a connection between instances",
  outside: "from outside to an elastic address",
};
const elastic = 0xc6120001;
const group = id("sg", thousandRules.nodes);
/** Two instances of the first node. The other one has an elastic address, and its group a rule by which it is reached. */
function viewWith(isOpen: boolean): NetworkView {
  const view = viewOf(thousandRules, 22);
  const { unanswered, outside } = ports;
  const open = { ...tcpRule(unanswered, "0.0.0.0/0"), protocol: 17, toPort: outside };
  return {
    ...view,
    instances: view.instances.map((each) =>
      each.securityGroups[0] === group && each.id === id("i", thousandRules.nodes)
        ? { ...each, publicIp: elastic }
        : each,
    ),
    securityGroups: view.securityGroups.map((each) =>
      each.id === group && isOpen ? { ...each, ingress: [open, ...each.ingress.slice(1)] } : each,
    ),
  };
}

interface Ends {
  readonly from: Agent;
  readonly to: Agent;
  readonly address: string;
}
/** Of one stream, between two looks. */
interface Passed {
  readonly sent: number;
  readonly lost: number;
}

class Node {
  readonly #world: World;
  readonly #agents: Agent[] = [];
  readonly streams = new Map<Stream, Ends>();
  #service: ReturnType<World["service"]> | null = null;

  constructor(world: World) {
    this.#world = world;
  }
  async #guest(node: Machine, { id: name, mac = "", privateIp = 0 }: Instance): Promise<Machine> {
    const guest = await this.#world.machine();
    node.cable(`vn_${name}`, guest, "eth0", mac.toLowerCase());
    guest.run("sh", "-c", quiet);
    guest.run("ip", "address", "add", `${formatIpv4(privateIp)}/16`, "dev", "eth0");
    guest.run("ip", "route", "add", "default", "via", "10.0.0.1");
    return guest;
  }
  #end(machine: Machine): Agent {
    const agent = new Agent(machine, "../../../../../bench/eucalyptus/stream-process.ts");
    this.#agents.push(agent);
    return agent;
  }
  async start(): Promise<void> {
    const [node, outside] = [await this.#world.machine(), await this.#world.machine()];
    for (const machine of [node, outside]) machine.run("sh", "-c", quiet);
    node.cable("em1", outside, "net");
    node.run("ip", "address", "add", "10.111.5.43/16", "dev", "em1");
    outside.run("ip", "address", "add", "10.111.0.1/16", "dev", "net");
    outside.run("ip", "route", "add", "198.18.0.0/16", "dev", "net");
    node.run("ip", "route", "add", "default", "via", "10.111.0.1");
    node.run("ip", "link", "add", "br0", "type", "bridge");
    const { instances } = viewWith(true);
    const [first, second] = [0, thousandRules.nodes].map((number) =>
      instances.find((each) => each.id === id("i", number)),
    );
    if (first === undefined || second === undefined) throw new Error("the view has not the two instances");
    const [one, other] = [await this.#guest(node, first), await this.#guest(node, second)];
    this.#service = this.#world.service(node, "node");
    await this.offer(true);
    for (const stream of streams) {
      const isOutside = stream === "outside";
      const [from, to] = [this.#end(isOutside ? outside : one), this.#end(other)];
      await from.call("listen", 0, false);
      await to.call("listen", ports[stream], stream === "answered");
      this.streams.set(stream, { from, to, address: formatIpv4((isOutside ? elastic : second.privateIp) ?? 0) });
    }
  }
  async offer(isOpen: boolean): Promise<void> {
    await this.#service?.offer({ mode: "EDGE", global: planOfFirst(viewWith(isOpen)) });
    this.#check();
  }
  #check(): void {
    const { missing = [], failed = {} } = this.#service?.state ?? {};
    const [why] = [...missing, ...Object.values(failed)];
    if (why !== undefined) throw new Error(why);
  }
  /** @returns how long it took */
  async flush(): Promise<number> {
    const began = performance.now();
    await this.#service?.flush();
    this.#check();
    return performance.now() - began;
  }
  async #counts(): Promise<ReadonlyMap<Stream, Passed>> {
    const all = await Promise.all(
      [...this.streams].map(async ([stream, { from, to }]) => {
        const [near, far] = await Promise.all([from.call<Counts>("counts"), to.call<Counts>("counts")]);
        const arrived = stream === "answered" ? near.received : far.received;
        return [stream, { sent: near.sent, lost: near.sent - arrived - near.overflown - far.overflown }] as const;
      }),
    );
    return new Map(all);
  }
  /** What passed while something was done, with a moment before and after. */
  async during(work: () => Promise<void>): Promise<ReadonlyMap<Stream, Passed>> {
    const before = await this.#counts();
    const all = [...this.streams];
    await Promise.all(all.map(([stream, { from, address }]) => from.call("begin", address, ports[stream])));
    await sleep(50);
    await work();
    await sleep(50);
    await Promise.all(all.map(([, { from }]) => from.call("rest")));
    // What is on its way arrives.
    await sleep(200);
    const after = await this.#counts();
    return new Map(
      all.map(([stream]) => {
        const [then, now] = [before.get(stream), after.get(stream)];
        return [stream, { sent: (now?.sent ?? 0) - (then?.sent ?? 0), lost: (now?.lost ?? 0) - (then?.lost ?? 0) }];
      }),
    );
  }
  async stop(): Promise<void> {
    await Promise.all(this.#agents.map((agent) => agent.stop()));
  }
}

/** While nothing is done nothing is lost, and without its rule what meets the rules is: so is what a flush would lose seen. */
async function control(node: Node): Promise<void> {
  // Whoever has to ask where the other one is has done so.
  await node.during(async () => sleep(200));
  for (const [stream, { sent, lost }] of await node.during(async () => sleep(300)))
    if (lost !== 0 || sent < 50) throw new Error(`without a flush ${lost} of ${sent} are lost ${names[stream]}`);
  await node.offer(false);
  const closed = await node.during(async () => sleep(100));
  await node.offer(true);
  for (const stream of ["unanswered", "outside"] as const) {
    const { sent = 0, lost = 0 } = closed.get(stream) ?? {};
    if (sent === 0 || lost !== sent)
      throw new Error(`without a rule only ${lost} of ${sent} are lost ${names[stream]}`);
  }
}

async function measure(node: Node, { quick, say }: BenchOptions): Promise<readonly Figure[]> {
  await node.start();
  say("a node has 100 groups with 1,000 rules");
  await control(node);
  const [times, passed] = [[] as number[], new Map<Stream, Passed[]>(streams.map((stream) => [stream, []]))];
  for (let round = 0; round < (quick ? 3 : 30); round += 1) {
    const meanwhile = await node.during(async () => void times.push(await node.flush()));
    for (const [stream, each] of meanwhile) passed.get(stream)?.push(each);
  }
  const quietTimes: number[] = [];
  for (let round = 0; round < (quick ? 3 : 20); round += 1) quietTimes.push(await node.flush());
  const time = { unit: "ms", atMost: 300 } as const;
  return [
    { ...time, what: "flush and rebuild of 1,000 rules", value: median(quietTimes), range: rangeOf(quietTimes) },
    { ...time, what: "the same while datagrams pass", value: median(times), range: rangeOf(times), atMost: null },
    ...[...passed].map(([stream, all]): Figure => {
      const lost = all.map((each) => each.lost);
      const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
      const sent = sum(all.map((each) => each.sent));
      const note = `of ${sent.toLocaleString("en")} in ${all.length} flushes`;
      return {
        what: `lost, ${names[stream]}`,
        unit: "frames",
        value: sum(lost),
        range: rangeOf(lost),
        atMost: null,
        note,
      };
    }),
  ];
}

export const flush: Bench = {
  title: "A node that puts all of its network in place anew (EDGE)",
  method:
    "One node is a network namespace with Debian's tools; 100 groups with 1,000 rules, two guests and a machine outside. The service is " +
    "asked to flush, as by SIGUSR1, and has put in place sets, rules, guard and addresses when its pass is over. Meanwhile each of three " +
    "senders sends a datagram in a millisecond; what is lost is what was sent and never came, summed over all flushes, with the range of " +
    "one. Before, none may be lost without a flush, and all of those that meet the rules without their rule.",
  run: async (options) => {
    const world = new World();
    const node = new Node(world);
    try {
      return await measure(node, options);
    } finally {
      await node.stop();
      await world.end();
    }
  },
};
