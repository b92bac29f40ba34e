import assert from "node:assert/strict";
import { test } from "node:test";
import { kindsOf } from "../../../model/cause/cause.ts";
import { type Cidr, cidr, hostName, hostPeer, peerName, uid } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { ActualWant } from "../../documents/cells.ts";
import type { ActualPolicy } from "../../documents/network/network.ts";
import { updateStates } from "../explain/element-state.ts";
import { shop, World } from "../world.testing.ts";

const rule = (port: number): JsonObject => ({
  "x.type": "NetworkRule",
  "x.address1": "<ref:/shop/web>",
  "x.address2": "<ref:/shop/dbCard>",
  "x.protocol": "tcp",
  "x.port2": port,
});
const longTexts = Array.from({ length: 30 }, (_, at): [string, string] => [`t${at}`, "x".repeat(80_000)]);
const h1 = hostName("h1");
const older = (version: number): ActualPolicy => ({ version, phase: "working", reason: null });
const why = (world: World, path: string): string =>
  String((world.ask({ method: "WHY-ELEMENT", path }).body as JsonObject).verdict);

test("a rule is ready when each host on which a VM of the cell runs has confirmed its version", () => {
  const world = new World();
  world.put(shop());
  assert.equal(world.phase("shop/toDb"), "ready");
  const before = world.policy("host.h1")?.version ?? 0;
  world.policiesAt.set(h1, () => older(before));
  world.put(shop({ second: rule(80) }));
  assert.equal(world.standing("shop/second"), "working: rules-older h1");
  assert.match(why(world, "shop/second"), /"in force at host h1"/);
  assert.equal(world.phase("shop/toDb"), "ready", "what has not changed is in force as before");
  world.policiesAt.delete(h1);
  world.settle();
  assert.equal(world.phase("shop/second"), "ready");
});

test("a host that cannot put a rule in force, or is silent, is named", () => {
  const world = new World();
  world.put(shop());
  const before = world.policy("host.h1")?.version ?? 0;
  const reason = "too many ranges of source ports";
  world.policiesAt.set(h1, () => ({ version: before, phase: "failed", reason }));
  world.put(shop({ second: rule(80) }));
  assert.equal(world.standing("shop/second"), "failed: rules-refused h1 (said host.h1)");
  assert.deepEqual(world.cause("shop/second", "rules-refused").because, [
    { kind: "said", by: "host.h1", sentence: reason },
  ]);
  world.policiesAt.set(h1, () => older(before));
  world.silent.add(peerName("host.h1"));
  world.put(shop({ second: rule(81) }));
  assert.equal(world.standing("shop/second"), "waiting: rules-unconfirmed h1");
  assert.equal(world.phase("shop/toDb"), "ready", "what it had confirmed stays in force there while it is silent");
  world.silent.clear();
  world.policiesAt.clear();
  world.settle();
  assert.equal(world.phase("shop/second"), "ready");
});

test("a rule that was taken away is there until no host has it any more", () => {
  const world = new World();
  world.put(shop({ second: rule(80) }));
  const before = world.policy("host.h1")?.version ?? 0;
  world.policiesAt.set(h1, () => older(before));
  world.put(shop());
  const [leaving] = [...world.state.elements.values()].filter(({ path }) => path === "shop/second");
  assert.equal(leaving?.phase, "deleting");
  assert.equal(kindsOf(leaving.causes), "removal-not-in-force(rules-older)");
  world.policiesAt.clear();
  world.settle();
  assert.ok(![...world.state.elements.values()].some(({ path }) => path === "shop/second"));
});

test("a host that runs VMs of the cell and says nothing of its rules, as without its store, has not confirmed them", () => {
  const world = new World();
  world.put(shop());
  world.policiesAt.set(h1, () => null);
  world.put(shop({ second: rule(80) }));
  assert.equal(world.standing("shop/second"), "working: rules-older h1");
  world.policiesAt.clear();
  world.settle();
  assert.equal(world.phase("shop/second"), "ready");
});

test("a host without a VM of the cell keeps no rule from being ready", () => {
  const world = new World();
  world.put(shop());
  const off = { ...(shop() as { shop: JsonObject }).shop };
  world.policiesAt.set(h1, () => older(0));
  for (const vm of ["web", "db"]) off[vm] = { ...(off[vm] as JsonObject), "x.desiredState": "off" };
  world.put({ shop: { ...off, second: rule(82) } });
  assert.equal(world.phase("shop/second"), "ready");
});

test("what a cell of the same name had before is no confirmation, and neither is another thing than a version", () => {
  const world = new World();
  world.put(shop());
  for (const version of [99, -1, "9", null, {}]) {
    world.policiesAt.set(h1, () => ({ version, phase: "ready", reason: null }) as unknown as ActualPolicy);
    world.settle();
    assert.equal(world.standing("shop/toDb"), "working: rules-older h1", `${version}`);
    assert.equal(world.cause("shop/toDb", "rules-older").version, 0, "none of the cell's rules");
  }
});

test("rules that come to too much are refused with the number, and what was in force stays", () => {
  const world = new World();
  world.put(shop());
  const { version } = world.state.policy;
  const rules = Array.from({ length: 600 }, (_, at): [string, JsonObject][] => [
    [`n${at}`, { ...rule(80), "x.address1": `10.9.${at % 256}.${Math.trunc(at / 256)}` }],
    [`w${at}`, { ...rule(80), "x.address1": "10.0.0.0/8" }],
  ]);
  const json = shop(Object.fromEntries(rules.flat()));
  const { status, body } = world.ask({ method: "PUT", path: "", json });
  assert.equal(status, 400);
  const [fault] = (body as { error: { diagnostics: { code: string; message: string }[] } }).error.diagnostics;
  assert.equal(fault?.code, "limit/rules");
  assert.match(
    fault.message,
    /come to 36\d{4} between .* characters, and a host takes 250000 rules of \d+ characters$/,
  );
  assert.equal(world.state.policy.version, version);
});

test("rules that grow with networks of other cells fail with the number at a host that takes no slices, and pass at others", () => {
  const world = new World({ directory: true });
  const networks = (count: number): readonly Cidr[] =>
    Array.from({ length: count }, (_, at) => cidr(`10.${100 + (at >>> 16)}.${(at >>> 8) & 255}.${at & 255}/32`));
  const shown = (count: number): ActualWant => ({
    uid: uid("b1"),
    shows: { kind: "addresses", type: "Subnet", networks: networks(count) },
  });
  world.agreed = true;
  world.shown.set("bank.cells.internal/bank/net", shown(1));
  const toBank: JsonObject = { ...rule(80), "x.address2": "<ref://bank.cells.internal/bank/net>" };
  world.put(shop({ toBank }));
  const before = world.policy("host.h1")?.version;
  world.shown.set("bank.cells.internal/bank/net", shown(20_000));
  world.settle();
  assert.equal(world.policy("host.h1")?.version, before, "nothing was said that cannot be sent");
  assert.equal(world.standing("shop/toBank"), "failed: document-too-long host.h1 most=2097152");
  assert.equal(world.phase("shop/toDb"), "ready", "what has not changed is in force as before");
  world.slices = true;
  world.settle();
  assert.equal(world.phase("shop/toBank"), "ready");
  assert.equal(world.policy("host.h1")?.rules.length, 0, "they are in slices");
  world.put(shop());
  assert.ok(Object.values(world.phases()).every((phase) => phase === "ready"));
});

test("a VM and a child cell whose document is too long to be sent are not said to be on their way", () => {
  const world = new World({ cellManager: true });
  const cell = { child: { "x.type": "Cell", ...Object.fromEntries(longTexts) } };
  world.put(shop({ team: { "x.type": "CellController", "x.cell": cell } }));
  assert.equal(world.standing("shop/team"), "failed: document-too-long cell-manager most=2097152");
  const { host = "" } = world.vm("shop/web") ?? {};
  const uidOfWeb = world.uidOf("shop/web");
  // No specification comes to this by itself; hosts that may know its address, by their thousands, would.
  world.state.outbox.tooLong.set(peerName(host), new Map([[`vm/${uidOfWeb}`, 3_000_000]]));
  updateStates(world.state);
  assert.equal(world.standing("shop/web"), "failed: document-too-long host.h1 most=2097152");
  assert.equal(world.cause("shop/web", "document-too-long").characters, 3_000_000);
});

test("in slices a host is told what changes for its own machines alone, and the rest is in force there as it was", () => {
  const world = new World({ policyEntriesInDocument: 0 });
  world.slices = true;
  world.hosts.set(h1, 1024);
  world.put(shop());
  const hosts = ["h1", "h2"] as const;
  const [web, db] = ["shop/web", "shop/db"].map((path) => world.vm(path)?.host ?? "");
  assert.notEqual(web, db, "one machine at each host");
  const told = (): readonly string[] =>
    hosts.map((host) =>
      JSON.stringify(
        [...(world.desired.get(hostPeer(hostName(host))) ?? [])].filter(([key]) => /^(policy|slice)/.test(key)),
      ),
    );
  const before = told();
  const version = world.policy(`${db}`)?.version;
  // Between web and somebody who is at no host of the cell.
  const outside: JsonObject = { ...rule(80), "x.address2": "10.99.0.0/16" };
  world.put(shop({ second: outside }));
  const after = told();
  const changed = hosts.filter((_host, at) => before[at] !== after[at]).map((host) => `host.${host}`);
  assert.deepEqual(changed, [web]);
  assert.equal(world.policy(`${db}`)?.version, version);
  assert.equal(world.phase("shop/second"), "ready");
  // What is taken away has to be confirmed where it was, and nowhere else.
  world.silent.add(peerName(`${db}`));
  world.put(shop());
  assert.equal(world.standing("shop/toDb"), "ready");
  assert.equal(world.state.uids.has("shop/second" as never), false);
});

test("a host that says it takes no slices any more has the rules as one document again", () => {
  const world = new World({ policyEntriesInDocument: 0 });
  world.slices = true;
  world.put(shop());
  assert.equal(world.policy("host.h1")?.rules.length, 0);
  const slices = (): number =>
    [...(world.desired.get(peerName("host.h1"))?.keys() ?? [])].filter((key) => key.startsWith("slice/")).length;
  assert.ok(slices() > 0);
  world.slices = false;
  world.put(shop({ second: rule(80) }));
  assert.ok((world.policy("host.h1")?.rules.length ?? 0) > 2);
  assert.equal(slices(), 0);
  assert.equal(world.phase("shop/second"), "ready");
});

test("rules that have always been this store's own say nothing of a version from which on they are", () => {
  const world = new World();
  world.put(shop());
  world.put(shop({ second: rule(80) }));
  assert.ok(!("base" in world.state.policy));
});
