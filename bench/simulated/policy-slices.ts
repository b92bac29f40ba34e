import { createController } from "../../core/controller/controller.ts";
import { policyAt, sliceKey, slicePolicy } from "../../core/controller/rules/policy-slices.ts";
import { shopOptions } from "../../core/controller/shop.testing.ts";
import type { ControllerState } from "../../core/controller/state.ts";
import type { CellPolicy, CompiledRule } from "../../core/documents/vocabulary.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { Peers } from "./cell-size-peers.ts";

const machines = 40;
const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index);

const rule = (from: string, to: string, port: number): JsonObject => ({
  "x.type": "NetworkRule",
  "x.address1": from,
  "x.address2": to,
  "x.protocol": "tcp",
  "x.port2": port,
  "x.direction": "1to2",
});
/** Each wide rule is repeated for each of the narrower networks, so it comes to one more rules between single ends than there are. */
function cellOf(wide: number, networks: number, changes: JsonObject): JsonObject {
  const elements: [string, JsonObject][] = [
    ["net", { "x.type": "Subnet", "x.size": 64, "x.addressRange": "internal" }],
    ...numbers(machines).flatMap((at): [string, JsonObject][] => [
      [`vm${at}`, { "x.type": "VM", "x.memory": 64 }],
      [`card${at}`, { "x.type": "VirtualInterface", "x.vm": `<ref:/shop/vm${at}>`, "x.subnet": "<ref:/shop/net>" }],
    ]),
    ...numbers(networks).map((at): [string, JsonObject] => [
      `narrow${at}`,
      rule(`<ref:/shop/vm${at % machines}>`, `172.${16 + (at >> 8)}.${at & 255}.0/24`, 22),
    ]),
    ...numbers(wide).map((at): [string, JsonObject] => [
      `wide${at}`,
      rule(`<ref:/shop/vm${at % machines}>`, "172.16.0.0/12", 1000 + Math.floor(at / machines)),
    ]),
  ];
  return { shop: { "x.type": "Cell", "x.name": "shop", ...Object.fromEntries(elements), ...changes } };
}

async function run({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const [wide, networks] = quick ? [100, 20] : [480, 400];
  const service = createController({ ...shopOptions, startsPerMinute: 1_000_000 });
  const peers = new Peers<ControllerState>(service, shopOptions.self);
  const characters = new Map<string, number>();
  peers.told = (to, key, value) => {
    const { length } = JSON.stringify({ frame: "desire", key, seq: 123_456_789, value });
    characters.set(to, (characters.get(to) ?? 0) + length);
  };
  let written = 0;
  const settle = (): void => {
    for (let isThere = true; isThere; ) {
      isThere = peers.move();
      for (const value of peers.takeWrites().values()) written += JSON.stringify(value).length;
    }
  };
  while (peers.state.reachable.size < 4) if (!peers.move()) break;
  let seconds = 0;
  const put = (changes: JsonObject): ReadonlyMap<string, number> => {
    characters.clear();
    written = 0;
    const before = process.cpuUsage();
    const request = peers.request({
      method: "PUT",
      path: "",
      json: cellOf(wide, networks, changes) as unknown as Json,
    });
    settle();
    const { user, system } = process.cpuUsage(before);
    seconds = (user + system) / 1_000_000;
    const answer = peers.answerOf(request) as { readonly status: number } | undefined;
    if (answer?.status !== 200) throw new Error(`the cell was not accepted: ${JSON.stringify(answer).slice(0, 400)}`);
    return new Map([...characters].filter(([to]) => to.startsWith("host.")));
  };
  const single = (port: number): JsonObject => ({ one: rule("<ref:/shop/vm0>", "<ref:/shop/vm1>", port) });
  say(`${wide} rules with networks`);
  put(single(80));
  const first = { seconds, written };
  const policy = peers.state.derived.policy.get("");
  const count = policy?.rules.length ?? 0;
  say(`${count} rules between single ends`);
  const hostOf = (vm: string): string => {
    const uid = peers.state.uids.get(`shop/${vm}` as never);
    return `host.${uid === undefined ? "" : peers.state.vms.get(uid)?.run?.host}`;
  };
  const concerned = [hostOf("vm0"), hostOf("vm1")];
  const told = [put(single(81)), put(single(82)), put(single(83))];
  const last = { seconds, written };
  const most = Math.max(...told.flatMap((each) => concerned.map((host) => each.get(host) ?? 0)));
  const others = told.flatMap((each) => [...each].filter(([host]) => !concerned.includes(host)));
  const of = `of ${count.toLocaleString("en")} rules at ${machines} hosts`;
  const plain = { range: null, atMost: null };
  return [
    { what: `deployed for the first time, ${of}: processor time`, unit: "s", value: first.seconds, ...plain },
    { what: "written to the store for it", unit: "MiB", value: first.written / 1_048_576, ...plain },
    { what: `one rule changed, ${of}: processor time`, unit: "s", value: last.seconds, ...plain },
    { what: "written to the store for it", unit: "KB", value: last.written / 1000, ...plain },
    { what: "the same against the first deployment", unit: "×", value: last.seconds / first.seconds, ...plain },
    {
      what: `one rule changed, ${of}: to a host of one of its ends`,
      unit: "KB",
      value: most / 1000,
      range: null,
      atMost: 20,
    },
    {
      what: "the same to all other hosts together",
      unit: "KB",
      value: others.reduce((sum, [, length]) => sum + length, 0) / 1000,
      range: null,
      atMost: 0,
    },
    ...(policy === undefined ? [] : cutOf(policy, quick ? 20_000 : 200_000)),
  ];
}

/** The same where the controller's other work, which nothing of this is about, is left out. */
function cutOf(like: CellPolicy, count: number): readonly Figure[] {
  const first = 1000;
  const make = (version: number, port: number): CellPolicy => {
    const rules = numbers(count).map((at): CompiledRule => {
      const from = first + (at % machines);
      const to = at === 77 ? first + (78 % machines) : first + machines + (at % 500);
      const ports = at === 77 ? { from: port, to: port } : { from: at % 60_000, to: at % 60_000 };
      const sourcePorts = { from: 0, to: 65535 };
      return { id: at + 1, path: `shop/rules/rule${at % 9000}`, from, to, protocol: "tcp", sourcePorts, ports };
    });
    return { ...like, version, rules };
  };
  const [before, after] = [make(1, 80), make(2, 81)];
  const one = slicePolicy(before, () => [], 0, null);
  const two = slicePolicy(after, () => [], 0, one);
  const charactersTo = (machine: number): number => {
    const identities = new Set([first + machine]);
    const [was, is] = [policyAt(one, identities), policyAt(two, identities)];
    const frame = (key: string, value: object): number =>
      JSON.stringify({ frame: "desire", key, seq: 123_456_789, value }).length;
    let length = 0;
    for (const [name, slice] of is.slices)
      if (was.slices.get(name) !== slice) length += frame(sliceKey("shop", name), slice);
    const isNews = JSON.stringify({ ...was.manifest, version: 2 }) !== JSON.stringify(is.manifest);
    return isNews ? length + frame("policy/shop", is.manifest) : length;
  };
  const told = numbers(machines).map(charactersTo);
  const ends = [77 % machines, 78 % machines];
  const figure = (what: string, value: number, atMost: number | null): Figure => ({
    what: `${count.toLocaleString("en")} rules: ${what}`,
    unit: "KB",
    value: value / 1000,
    range: null,
    atMost,
  });
  return [
    figure("a changed one, to a host of one of its ends", Math.max(...ends.map((end) => told[end] ?? 0)), 20),
    figure(
      "to all other hosts together",
      told.reduce((sum, length, at) => (ends.includes(at) ? sum : sum + length), 0),
      0,
    ),
    figure("all of them as one document, as it was before", JSON.stringify(before).length, null),
  ];
}

export const policySlices: Bench = {
  title: "Rules of a large cell, in slices",
  method:
    "A Cell Controller as a function, with hosts that confirm at once what they are told. Counted are the characters of all frames " +
    "to each host for a change of one rule between two machines at two hosts, three times.",
  run,
};
