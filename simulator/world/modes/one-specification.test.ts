import assert from "node:assert/strict";
import { test } from "node:test";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { sendPacket } from "../dataplane.ts";
import { parseHistory } from "../history.ts";
import { Installation } from "../installation.ts";
import { keepNetworkConfiguration } from "../operators/operator.ts";

/*
 * One specification, to the byte, in clouds whose cell is on Diverter, on EDGE, on MANAGED-NOVLAN: the real services make rules of it, and
 * every packet that a machine may send another one passes in all or in none. With real guests and packets: `testbed/tenants/modes/modes.test.ts`.
 */

const machines = { web1: "front", web2: "front", app1: "back", app2: "back", store1: "store" } as const;
type Name = keyof typeof machines;
type Subnet = (typeof machines)[Name];
type Protocol = "tcp" | "udp";
interface Rule {
  readonly from: Subnet;
  readonly to: Subnet;
  readonly protocol: Protocol | "any";
  /** Absent: all. */
  readonly ports?: readonly [first: number, last: number];
}
/** Members of one group reach one another in EDGE whatever rules say, so the text says it of its subnets. */
const within: readonly Rule[] = (["front", "back", "store"] as const).map((each) => ({
  from: each,
  to: each,
  protocol: "any",
}));
const first: readonly Rule[] = [
  ...within,
  { from: "front", to: "back", protocol: "tcp", ports: [80, 81] },
  { from: "back", to: "store", protocol: "udp", ports: [53, 53] },
  { from: "store", to: "back", protocol: "udp", ports: [443, 443] },
];
/** One has gone, one is narrower, one has come. */
const second: readonly Rule[] = [
  ...within,
  { from: "front", to: "back", protocol: "tcp", ports: [81, 81] },
  { from: "store", to: "back", protocol: "udp", ports: [443, 443] },
  { from: "front", to: "store", protocol: "tcp", ports: [22, 22] },
];

const ref = (name: string): string => `<ref:../${name}>`;
function specification(rules: readonly Rule[]): JsonObject {
  const elements: Record<string, JsonObject> = {
    golden: { "x.type": "Volume", "x.size": 64, "x.import": "tiny", "x.access": "ro" },
  };
  for (const subnet of new Set(Object.values(machines))) elements[subnet] = { "x.type": "Subnet", "x.size": 16 };
  for (const [name, subnet] of Object.entries(machines)) {
    elements[name] = { "x.type": "VM", "x.memory": 64 };
    elements[`${name}Disk`] = { "x.type": "VolumeCopy", "x.image": ref("golden") };
    elements[`${name}Boot`] = { "x.type": "VolumeConnection", "x.vm": ref(name), "x.volume": ref(`${name}Disk`) };
    elements[`${name}Card`] = { "x.type": "VirtualInterface", "x.vm": ref(name), "x.subnet": ref(subnet) };
  }
  for (const [at, { from, to, protocol, ports }] of rules.entries())
    elements[`rule${at}`] = {
      "x.type": "NetworkRule",
      "x.address1": ref(from),
      "x.address2": ref(to),
      "x.protocol": protocol,
      "x.direction": "1to2",
      ...(ports === undefined ? {} : { "x.port2": ports.join("-") }),
    };
  return { c1: { "x.type": "Cell", "x.name": "c1", ...elements } };
}

const tried = { protocols: ["tcp", "udp"], ports: [22, 53, 80, 81, 443] } as const;
type Verdict = readonly [packet: string, passes: boolean];
const said = (from: string, to: string, protocol: Protocol, port: number): string =>
  `${from} > ${to} ${protocol} ${port}`;
/** By the text alone. */
function expected(rules: readonly Rule[]): readonly Verdict[] {
  const names = Object.keys(machines) as Name[];
  return eachPacket(names).map(([from, to, protocol, port]) => {
    const meets = (rule: Rule): boolean =>
      rule.from === machines[from] &&
      rule.to === machines[to] &&
      (rule.protocol === "any" || rule.protocol === protocol) &&
      (rule.ports === undefined || (rule.ports[0] <= port && port <= rule.ports[1]));
    return [said(from, to, protocol, port), rules.some(meets)];
  });
}
const eachPacket = <T>(all: readonly T[]): readonly (readonly [from: T, to: T, Protocol, port: number])[] =>
  all.flatMap((from) =>
    all.flatMap((to) =>
      from === to
        ? []
        : tried.protocols.flatMap((protocol) => tried.ports.map((port) => [from, to, protocol, port] as const)),
    ),
  );

const clouds = { Diverter: "edge 0", EDGE: "edge 1", "MANAGED-NOVLAN": "edge 1\ncarriers 1" } as const;
class Cloud {
  readonly #installation: Installation;
  #untilMs = 0;

  constructor(mode: keyof typeof clouds) {
    this.#installation = new Installation(parseHistory(`hosts 3\nservers 1\ncells 1\n${clouds[mode]}\nseed 7`), false);
    this.#installation.start();
    if (mode !== "Diverter") keepNetworkConfiguration(this.#installation);
  }
  async run(ms: number): Promise<void> {
    this.#untilMs += ms;
    await this.#installation.kernel.runUntil(this.#untilMs);
  }
  async apply(json: JsonObject): Promise<void> {
    const controller = this.#installation.controllers.get("c1") ?? assert.fail("there is no controller");
    const answered = controller.request({ method: "PUT", path: "", json, allowDestroy: [] } as unknown as Json);
    await this.run(60_000);
    const answer = (await answered) as unknown as { readonly status: number };
    assert.equal(answer.status, 200, JSON.stringify(answer));
  }
  /** Of the rules that are in force where its machines are. */
  get modes(): ReadonlySet<string> {
    const { truth } = this.#installation;
    return new Set(
      [...truth.machines].map(({ host, interfaces: [card] }) =>
        card?.instance === undefined ? "Diverter" : (truth.dataplane(host).mode.view?.mode ?? "none"),
      ),
    );
  }
  get hosts(): number {
    return new Set([...this.#installation.truth.machines].map(({ host }) => host)).size;
  }
  verdicts(): readonly Verdict[] {
    const { kernel, truth } = this.#installation;
    const all = [...truth.machines].sort((one, other) => names.indexOf(one.name) - names.indexOf(other.name));
    assert.deepEqual(
      all.map(({ name }) => name),
      names,
    );
    return eachPacket(all).map(([from, to, protocol, port]) => {
      const [[fromInterface], [toInterface]] = [from.interfaces, to.interfaces];
      assert.ok(fromInterface !== undefined && toInterface !== undefined);
      const passes = sendPacket(kernel, truth, { from, to, fromInterface, toInterface, protocol, port });
      return [said(from.name, to.name, protocol, port), passes];
    });
  }
}
const names: readonly string[] = Object.keys(machines);

test("one specification lets the same packets pass on Diverter, EDGE and MANAGED-NOVLAN, and as it is changed", async () => {
  for (const mode of Object.keys(clouds) as (keyof typeof clouds)[]) {
    const cloud = new Cloud(mode);
    await cloud.run(5000);
    for (const rules of [first, second, within]) {
      await cloud.apply(specification(rules));
      assert.deepEqual(cloud.verdicts(), expected(rules), mode);
      assert.deepEqual([...cloud.modes], [mode]);
    }
    assert.ok(cloud.hosts > 1, "some packets go from host to host");
  }
  const passing = [first, second, within].map((rules) => expected(rules).filter(([, passes]) => passes).length);
  assert.equal(new Set(passing).size, passing.length, "each text lets others pass");
});
