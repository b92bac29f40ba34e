import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ipv4, mac } from "../../../../model/cell/identifiers.ts";
import type { PacketCheck, PacketQuestion } from "../driver.ts";
import {
  addressKey,
  identities,
  identityKey,
  interfaceState,
  location,
  type MapName,
  policyEntry,
  policyKey,
  sourceRange,
  word,
} from "./program/layout.ts";
import { tapName } from "./taps/devices.ts";
import {
  controllerAddress,
  controllerIdentity,
  type GuestPlan,
  type HostKey,
  hosts,
  Installation,
  policy,
  rule,
  uidOf,
} from "./testing/installation.testing.ts";
import { canRun } from "./testing/namespaces.testing.ts";

/** One entry at a time is changed in the maps in force, past the driver: packets and `examine` must both notice. */
const web: GuestPlan = { name: "web", host: "a", address: "10.64.0.51", number: 1, cell: 1, identities: [1, 101, 10] };
const near: GuestPlan = {
  name: "near",
  host: "a",
  address: "10.64.0.52",
  number: 2,
  cell: 1,
  identities: [2, 102, 11],
};
const far: GuestPlan = { name: "far", host: "b", address: "10.64.0.53", number: 3, cell: 1, identities: [3, 103, 11] };
const plans = [web, near, far];
const port = 8080;
const shop = policy(1, 1, [rule(1, 10, 11, "tcp", port), rule(2, 10, controllerIdentity, "udp", 53)]);
const elsewhere = mac("02:00:00:00:0e:0e");

describe("examine and entries that were changed", { skip: !canRun() }, () => {
  const installation = new Installation();
  before(async () => {
    await installation.start();
    for (const plan of plans) await installation.addGuest(plan);
    await installation.apply(plans, [shop]);
    for (const { name } of [near, far]) await installation.guests[name]!.agent.call("listen", port);
  });
  after(() => installation.stop());

  const bytes = (buffer: Buffer): readonly string[] => [...buffer].map(String);
  const pin = (host: HostKey, map: MapName): string => `${installation.directory}/${host}/run/bpf/diverter/maps/${map}`;
  const put = (host: HostKey, map: MapName, key: Buffer, value: Buffer): void => {
    const where = ["pinned", pin(host, map), "key", ...bytes(key), "value", ...bytes(value)];
    installation.hostMachines[host].run("bpftool", "map", "update", ...where);
  };
  const read = (host: HostKey, map: MapName, key: Buffer): Buffer => {
    const where = ["-j", "map", "lookup", "pinned", pin(host, map), "key", ...bytes(key)];
    const { value } = JSON.parse(installation.hostMachines[host].run("bpftool", ...where)) as { value: string[] };
    return Buffer.from(value.map(Number));
  };
  const device = (host: HostKey, plan: GuestPlan): Buffer => {
    const links = installation.hostMachines[host].run("ip", "-j", "link", "show", "dev", tapName(uidOf(plan)));
    return word.encode({ value: (JSON.parse(links) as readonly { readonly ifindex: number }[])[0]!.ifindex });
  };
  /** The cell's rules at a host, changed with bpftool by the id of the inner map. */
  const changeRules = (host: HostKey, action: "update" | "delete", key: Buffer, value?: Buffer): void => {
    const id = read(host, "rules", word.encode({ value: 1 })).readUInt32LE();
    const more = value === undefined ? [] : ["value", ...bytes(value)];
    installation.hostMachines[host].run("bpftool", "map", action, "id", String(id), "key", ...bytes(key), ...more);
  };
  const ruleKey = (from: number, to: number, at: number): Buffer =>
    policyKey.encode({ prefix_length: 112, kind: 2, protocol: 6, from, to, port: at });
  const ruleEntry = (number: number): Buffer =>
    policyEntry.encode({ count: 1, ranges: sourceRange.encode({ rule: number, first: 0, last: 65535 }) });

  interface Answer {
    readonly allowed: boolean;
    readonly entries: readonly string[];
    readonly checks: readonly PacketCheck[];
  }
  const why = async (to: GuestPlan, at = port): Promise<Answer> => {
    const question = { source: ipv4(web.address), destination: ipv4(to.address), protocol: "tcp", port: at } as const;
    const ask = (host: HostKey, side: PacketQuestion["side"]) =>
      installation.drivers[host].call<readonly PacketCheck[]>("examine", { ...question, side });
    const checks = [...(await ask("a", "sender")), ...(await ask(to.host, "receiver"))];
    const entries = checks.filter(({ check }) => check === "entry").map(({ detail }) => detail);
    return { allowed: checks.every(({ passes }) => passes), entries, checks };
  };
  const opens = async (to: GuestPlan, at = port): Promise<boolean> =>
    (await installation.guests.web!.agent.call<string>("open", to.address, at)) === "open";

  /** Before: all as told. Then the entry is changed: `why` names it, and says of packets what packets do. */
  const noticed = async (
    to: GuestPlan,
    expected: boolean,
    names: RegExp,
    change: () => void,
    at = port,
  ): Promise<void> => {
    const sound = await why(to, at);
    assert.deepEqual(sound.entries, []);
    assert.equal(await opens(to, at), sound.allowed, "before the change");
    change();
    const answer = await why(to, at);
    assert.match(answer.entries.join("\n"), names);
    assert.equal(answer.allowed, expected, JSON.stringify(answer.checks));
    assert.equal(await opens(to, at), expected, "packets do what `why` says");
    const { a, b } = await installation.apply(plans, [shop]);
    assert.ok(
      [a, b].some(({ changes }) => changes.addressing || changes.securityGroup),
      "the repair was asked for",
    );
    assert.deepEqual((await why(to, at)).entries, []);
    assert.equal(await opens(to, at), sound.allowed, "after the repair");
  };
  const at = (plan: GuestPlan): Buffer => addressKey.encode({ address: ipv4(plan.address) });

  test("a location that points to another machine", async () => {
    const wrong = location.encode({ mac: elsewhere, cell: 1 });
    const says = new RegExp(`where ${far.address} is.*mac ${elsewhere} where this host was told ${hosts.b[1]}`);
    await noticed(far, false, says, () => put("a", "locations", at(far), wrong));
    const believes = new RegExp(`where ${web.address} is.*mac ${elsewhere} where this host was told ${hosts.a[1]}`);
    await noticed(far, false, believes, () => put("b", "locations", at(web), wrong));
  });

  test("an endpoint that leads to another device", async () => {
    await noticed(near, false, /the device of 10\.64\.0\.52.*value \d+ where this host was told \d+/, () =>
      put("a", "endpoints", at(near), device("a", web)),
    );
  });

  test("an interface with another MAC", async () => {
    const key = device("b", far);
    await noticed(far, false, new RegExp(`mac ${elsewhere} where this host was told 02:00:00:00:aa:03`), () =>
      put(
        "b",
        "interfaces",
        key,
        interfaceState.encode({ ...interfaceState.decode(read("b", "interfaces", key)), mac: elsewhere }),
      ),
    );
  });

  test("an identity that is another's", async () => {
    const key = identityKey.encode({ cell: 1, address: ipv4(web.address) });
    const someone = identities.encode({ identity: 9, vm_identity: 109, subnet_identity: 99 });
    await noticed(far, false, /who 10\.64\.0\.51 is.*subnet_identity 99 where this host was told 10/, () =>
      put("b", "identities", key, someone),
    );
    const itself = identities.encode({ identity: 9, vm_identity: 109, subnet_identity: 10 });
    await noticed(far, true, /who 10\.64\.0\.51 is.*identity 9 where this host was told 1/, () =>
      put("b", "identities", key, itself),
    );
  });

  test("a rule that is gone, one that says something else, and one that nobody sent", async () => {
    await noticed(far, false, /told of rule 1 \(shop\/rules\/r1\), which would let it pass/, () =>
      changeRules("b", "delete", ruleKey(10, 11, port)),
    );
    await noticed(far, true, /told of rule 1 \(shop\/rules\/r1\) in this place/, () =>
      changeRules("b", "update", ruleKey(10, 11, port), ruleEntry(7)),
    );
    await installation.guests.near!.agent.call("closeServer");
    await installation.guests.near!.agent.call("listen", 22);
    const room = ruleKey(10, 11, port);
    await noticed(
      near,
      true,
      /the rules in force were changed: this host was told of no rule in this place/,
      () => {
        changeRules("a", "delete", room);
        changeRules("a", "update", ruleKey(10, 11, 22), ruleEntry(8));
      },
      22,
    );
  });

  test("a controller that is somewhere else", async () => {
    const question = {
      side: "sender",
      source: ipv4(web.address),
      destination: ipv4(controllerAddress),
      protocol: "udp",
      port: 53,
    } as const;
    const ask = () => installation.drivers.a.call<readonly PacketCheck[]>("examine", question);
    assert.ok((await ask()).every(({ check, passes }) => passes && check !== "entry"));
    const key = word.encode({ value: 1 });
    const changed = read("a", "controllers", key);
    Buffer.from("020000000e0e", "hex").copy(changed, 8);
    put("a", "controllers", key, changed);
    const failed = (await ask()).find(({ passes }) => !passes);
    assert.match(
      failed?.detail ?? "",
      /where the controller 10\.0\.3\.1 is.*mac 02:00:00:00:0e:0e where this host was told/,
    );
    const { a } = await installation.apply(plans, [shop]);
    assert.equal(a.changes.securityGroup, true);
    assert.ok((await ask()).every(({ check, passes }) => passes && check !== "entry"));
  });
});
