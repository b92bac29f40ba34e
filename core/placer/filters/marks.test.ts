import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { host, world } from "../placer.testing.ts";

const root = peerName("controller.root");
/** Hosts of which the operator says something, and a cell of an account. */
function cloud(marks: { readonly [host: string]: JsonObject }) {
  const placer = world(Object.keys(marks));
  const say = (key: string, value: JsonObject | null) => placer.input({ kind: "desired", from: root, key, value });
  for (const [name, said] of Object.entries(marks)) {
    placer.say(name, host(name));
    say(`marks/${name}`, { host: name, ...said });
  }
  say("owner/shop", { cell: "shop", account: "ROOT/d1/a1" });
  const place = (vm: string, placement: JsonObject) => {
    placer.want(vm, 100, 1, { placement });
    const { host: at, refusals } = placer.get(vm) ?? assert.fail();
    return at ?? refusals.map(({ host: by, why, kind }) => `${by} ${kind} ${why}`);
  };
  return { ...placer, say, place };
}

test("a VM stands where the place, the tags and the properties are that it asks for; whoever asks for nothing, anywhere", () => {
  const { place, say, get } = cloud({
    h1: { cluster: "z1/p1/c1", tags: ["ssd"] },
    h2: { cluster: "z1/p2/c1", properties: { gpu: "a100", sriov: 8 } },
    h3: {},
  });
  assert.equal(place("a", { tags: ["ssd"] }), "h1");
  assert.equal(place("b", { properties: { sriov: 4 } }), "h2");
  assert.equal(place("c", { zone: "z1", pod: "p2" }), "h2");
  assert.equal(place("d", {}), "h3");
  assert.deepEqual(place("e", { tags: ["ssd"], zone: "z2" }), [
    "h1 pinned x.placement.zone asks for a host of the zone z2, and it is none",
    "h2 pinned x.placement.zone asks for a host of the zone z2, and it is none",
    "h3 pinned x.placement.zone asks for a host of the zone z2, and it is none",
  ]);
  say("marks/h3", { host: "h3", cluster: "z2/p1/c1", tags: ["ssd"] });
  assert.equal(get("e")?.host, "h3", "it waited for that");
  say("marks/h3", null);
  assert.equal(get("e")?.host, "h3", "and what runs stays");
});

test("tags with dedication: implicit at its own or an empty host, explicit at a dedicated one, none at what is neither", () => {
  const ssd = { tags: ["ssd"] };
  const { place, say } = cloud({ h1: ssd, h2: ssd, h3: ssd, h4: {} });
  const a1 = { kind: "account", path: "ROOT/d1/a1" };
  say("dedicated/h3", { host: "h3", of: "h3", level: "host", to: a1 });
  assert.equal(place("strict", { ...ssd, dedication: "strict" }), "h1");
  assert.equal(place("plain", ssd), "h2", "not beside the strict VM of its own account, which without tags it might");
  assert.equal(place("explicit", { ...ssd, groups: ["DedicatedGrp-a1"] }), "h3");
  assert.equal(place("second", { ...ssd, dedication: "preferred" }), "h1", "what is its own");
  say("marks/h1", { host: "h1" });
  const refused = place("third", { ...ssd, dedication: "preferred" });
  assert.ok(Array.isArray(refused), "without tags it would stand beside others");
  assert.match(
    String(refused),
    /h2 dedicated x.placement.tags and x.placement.dedication ask for a host that is empty/,
  );
  assert.equal(place("fourth", { dedication: "preferred" }), "h1", "which it does");
});

test("which places, tags and properties there are is said anew when the operator says something else", () => {
  const { say, published } = cloud({ h1: { tags: ["ssd"] }, h2: {} });
  const said = () => (published as unknown as Map<string, { readonly marks?: unknown }>).get("hosts")?.marks;
  say("marks/h2", { host: "h2", cluster: "z1/p1/c1", properties: { sriov: 8 } });
  assert.deepEqual(said(), { places: ["z1/p1/c1"], tags: ["ssd"], properties: ["sriov"] });
  say("marks/h2", null);
  assert.deepEqual(said(), { places: [], tags: ["ssd"], properties: [] });
});
