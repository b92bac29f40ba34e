import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { DesiredPublic } from "../../documents/cells.ts";
import { actualKey, type DesiredGrant, type DesiredVolume } from "../../documents/vocabulary.ts";
import { toJson } from "../../outbox.ts";
import { shopOptions } from "../shop.testing.ts";
import { World } from "../world.testing.ts";

const manager = peerName("storage-manager");
const copyAt = "primary/volumes/a1";
const hold: JsonObject = {
  "x.type": "VolumeGrant",
  "x.volume": "<ref:/shop/disk>",
  "x.cell": "<ref://primary.cells.internal/>",
  "x.grant": "copy",
  "x.hold": copyAt,
};
const disk: JsonObject = { "x.type": "Volume", "x.size": 64 };
const cell = (elements: JsonObject): JsonObject => ({ shop: { "x.type": "Cell", ...elements } });

const held = (): World => {
  const world = new World();
  const { "x.hold": _hold, ...open } = hold;
  // Somebody may have written it.
  world.put(cell({ disk, hold, other: disk, use: { ...open, "x.grant": "connect" } }));
  world.put(cell({ disk, hold, other: disk }));
  return world;
};
const volumesOf = (world: World): readonly string[] =>
  world.documents<DesiredVolume>("storage-manager", "volume").map(({ path }) => path);
const grantsOf = (world: World): readonly DesiredGrant[] => world.documents<DesiredGrant>("storage-manager", "grant");
const sayCopied = (world: World, grant: DesiredGrant): void => {
  const { uid, ...grants } = grant;
  const value = toJson({ phase: "ready", reason: null, grants, copied: true });
  world.step({ kind: "actual", from: manager, key: actualKey(shopOptions.self, `grant/${uid}`), value });
  world.settle();
};
const grantOf = (world: World): DesiredGrant => {
  const [grant] = grantsOf(world);
  assert.ok(grant !== undefined, "the grant is desired");
  return grant;
};

test("what is held is shown to other cells until its copy is made, though it has left the model", () => {
  const world = new World({ directory: true });
  const shown = (): readonly string[] =>
    world.documents<{ path: string }>("directory", "public").map(({ path }) => path);
  world.put(cell({ disk, other: disk }));
  assert.deepEqual(shown(), []);
  world.put(cell({ disk, hold, other: disk }));
  assert.deepEqual(shown(), ["shop/disk"]);
  const [document] = world.documents<DesiredPublic>("directory", "public");
  assert.deepEqual(document?.heldFor, [{ domain: "primary.cells.internal", path: copyAt }], "to that copy alone");
  world.put(cell({ disk: { ...disk, "x.public": true }, hold, other: disk }));
  assert.equal(world.documents<DesiredPublic>("directory", "public")[0]?.heldFor, undefined, "or to everybody");
  world.put(cell({ other: disk }));
  world.crash();
  world.settle();
  assert.deepEqual(shown(), ["shop/disk"]);
  sayCopied(world, grantOf(world));
  assert.deepEqual(shown(), []);
});

for (const crashes of [false, true])
  test(`a volume that is held stays, with its grant, until its copy is made${crashes ? ", over crashes" : ""}`, () => {
    const world = held();
    world.put(cell({ other: disk }), []);
    if (crashes) world.crash();
    world.settle();
    assert.deepEqual(volumesOf(world), ["shop/disk", "shop/other"]);
    const grant = grantOf(world);
    assert.equal(grant.hold, copyAt);
    const record = [...world.state.elements.values()].find(({ path }) => path === "shop/disk");
    assert.deepEqual(record?.causes, [
      { kind: "held-for-copy", domain: "primary.cells.internal", path: copyAt, target: "shop/disk" },
    ]);
    sayCopied(world, { ...grant, hold: "primary/volumes/other" as never });
    assert.equal(grantsOf(world).length, 1, "another copy is not what it waits for");
    sayCopied(world, grant);
    if (crashes) world.crash();
    world.settle();
    assert.deepEqual(volumesOf(world), ["shop/other"]);
    assert.deepEqual(grantsOf(world), []);
    assert.ok(![...world.state.elements.values()].some(({ path }) => path === "shop/disk"));
  });

test("a whole cell is deleted, and what is held of it stays without a word of what is lost", () => {
  const world = held();
  world.put(cell({ disk, hold }), ["shop/other"]);
  const { status } = world.ask({ method: "DELETE", path: "" });
  assert.equal(status, 200);
  world.settle();
  assert.deepEqual(volumesOf(world), ["shop/disk"]);
  sayCopied(world, grantOf(world));
  assert.deepEqual(volumesOf(world), []);
  assert.equal(world.state.elements.size, 0);
});

test("that the copy was made is remembered, whatever becomes of it", () => {
  const world = held();
  sayCopied(world, grantOf(world));
  assert.equal(world.recordOf("shop/hold").copied, copyAt);
  world.crash();
  world.settle();
  // It is gone by now, so this is data that is lost.
  assert.throws(() => world.put(cell({ other: disk })), /shop\/disk/);
  world.put(cell({ other: disk }), ["shop/disk"]);
  assert.deepEqual(volumesOf(world), ["shop/other"]);
});

test("what is held is not made anew, nor left without its grant; the hold is taken back first", () => {
  const world = held();
  const refused = (elements: JsonObject, what: RegExp): void => {
    const { status, body } = world.ask({ method: "PUT", path: "", json: cell(elements), allowDestroy: ["shop/disk"] });
    assert.equal(status, 400);
    assert.match(JSON.stringify(body), what);
  };
  refused({ disk: { ...disk, "x.import": "tiny" }, hold, other: disk }, /"cell\/held".*would be made anew/);
  refused(
    { hold: { ...hold, "x.volume": "<ref:/shop/other>" }, other: disk },
    /"cell\/held".*would be left without it/,
  );
  const { "x.hold": _hold, ...plain } = hold;
  world.put(cell({ disk, hold: plain, other: disk }));
  world.put(cell({ other: disk }), ["shop/disk"]);
  assert.deepEqual(volumesOf(world), ["shop/other"]);
});

test("what is held for a copy that never comes says so, and is given up by name", () => {
  for (const crashes of [false, true]) {
    const world = held();
    world.put(cell({ disk, hold }), ["shop/other"]);
    const drop = (path: string, more: object = {}) =>
      world.ask({ method: "DELETE", path, dropHeld: true, allowDestroy: [], ...more });
    const early = drop("shop/disk", { allowDestroy: ["shop/disk"] });
    assert.equal(early.status, 404, "the model holds it, and a change takes that back");
    assert.match(JSON.stringify(early.body), /remove the grant or its `x.hold`/);
    assert.equal(world.ask({ method: "DELETE", path: "" }).status, 200);
    if (crashes) world.crash();
    world.settle();
    const why = world.ask({ method: "WHY-ELEMENT", path: "shop/disk" }).body as JsonObject;
    assert.match(String(why.verdict), /has made its copy.*To lift that: .*`cells delete shop\/disk --drop-held`$/);
    const planned = drop("shop", { dryRun: true });
    assert.equal(planned.status, 200);
    assert.match(
      JSON.stringify(planned.body),
      /"path":"shop\/disk","type":"Volume","action":"delete".*"losesData":true/,
    );
    for (const each of [drop("shop/disk"), drop("", { allowDestroy: ["shop/other"] })]) {
      assert.equal(each.status, 409);
      assert.match(JSON.stringify(each.body), /change\/destroys-data.*--allow-destroy shop\/disk/);
    }
    assert.equal(drop("shop/dis", { allowDestroy: ["shop/disk"] }).status, 404);
    world.settle();
    assert.deepEqual(volumesOf(world), ["shop/disk"], "nothing has changed by then");
    assert.equal(drop("shop", { allowDestroy: ["shop/disk"] }).status, 200);
    if (crashes) world.crash();
    world.settle();
    assert.deepEqual([volumesOf(world), grantsOf(world)], [[], []]);
    assert.equal(world.state.elements.size, 0, "and the cell can end");
  }
});

test("what a volume is held for is said with the desire for it, and given up where the Storage Manager still keeps it", () => {
  const world = held();
  const volume = (): DesiredVolume | undefined =>
    world.documents<DesiredVolume>("storage-manager", "volume").find(({ path }) => path === "shop/disk");
  const letGo = () => world.documents<{ uid: string }>("storage-manager", "let-go").map(({ uid }) => uid);
  assert.deepEqual(volume()?.heldFor, [{ domain: "primary.cells.internal", path: copyAt }]);
  const uid = world.uidOf("shop/disk");
  world.volumesAre.set(uid, { held: true });
  world.put(cell({ disk, hold }), ["shop/other"]);
  world.ask({ method: "DELETE", path: "" });
  world.settle();
  assert.deepEqual([volume()?.uid, letGo()], [uid, []], "it is held");
  // A controller of the version before, which an upgrade went back to, took both back; the Storage Manager keeps the volume.
  for (const key of [...(world.desired.get(manager)?.keys() ?? [])]) world.desired.get(manager)?.delete(key);
  world.crash();
  const said = { phase: "deleting", reason: "it is held", server: "s1", sizeMiB: 64, held: true } as const;
  const say = (value: object | null) =>
    world.step({
      kind: "actual",
      from: manager,
      key: actualKey(shopOptions.self, `volume/${uid}`),
      value: value as never,
    });
  say(said);
  world.settle();
  assert.equal(grantsOf(world).length, 1, "it goes on waiting for the copy");
  assert.deepEqual(letGo(), []);
  const drop = world.ask({ method: "DELETE", path: "", dropHeld: true, allowDestroy: ["shop/disk"] });
  assert.equal(drop.status, 200);
  say(said);
  assert.deepEqual(letGo(), [uid]);
  say(null);
  world.settle();
  assert.deepEqual([letGo(), world.state.elements.size], [[], 0]);
});

test("a volume that a controller which knows of no holds had leave the model is given up by an order alone", () => {
  for (const says of [{ heldFor: [{ domain: "primary.cells.internal", path: copyAt }] }, {}]) {
    const world = new World({ directory: true });
    world.put(cell({ disk, hold, other: disk }));
    world.volumesAre.set(world.uidOf("shop/disk"), { held: true });
    const uid = world.uidOf("shop/disk");
    world.put(cell({ other: disk }));
    // As that one left its record, and took back what it desired.
    const { held: _held, ...record } = toJson(world.state.elements.get(uid) ?? {}) as JsonObject;
    world.records.set(`element/${uid}`, record);
    for (const key of [...(world.desired.get(manager)?.keys() ?? [])]) world.desired.get(manager)?.delete(key);
    world.crash();
    const letGo = () => world.documents<{ uid: string }>("storage-manager", "let-go").map((each) => each.uid);
    const common = { phase: "deleting", reason: "it is held", server: "s1", sizeMiB: 64, held: true };
    const key = actualKey(shopOptions.self, `volume/${uid}`);
    const say = (value: object | null) => {
      world.step({ kind: "actual", from: manager, key, value: value && toJson(value) });
      world.settle();
    };
    say({ ...common, ...says });
    assert.deepEqual(letGo(), []);
    world.crash();
    say({ ...common, ...says });
    assert.deepEqual(letGo(), []);
    const shown = world.documents<DesiredPublic>("directory", "public").map(({ heldFor }) => heldFor);
    assert.deepEqual(shown, says.heldFor === undefined ? [] : [says.heldFor], "the copy finds it");
    const order = { method: "DELETE", path: "shop/disk", dropHeld: true, allowDestroy: ["shop/disk"] } as const;
    assert.equal(world.ask(order).status, 200);
    world.crash();
    say({ ...common, ...says });
    assert.deepEqual(letGo(), [uid]);
    say(null);
    assert.equal(world.state.elements.has(uid as never), false);
  }
});

test("a hold for a copy that can never be is refused, with what would be right", () => {
  const refusal = (world: World, elements: JsonObject): string => {
    const { status, body } = world.ask({ method: "PUT", path: "", json: cell(elements), dryRun: true });
    return status === 200 ? "" : JSON.stringify(body);
  };
  const world = new World();
  const to = (path: string, domain = "primary.cells.internal"): JsonObject => ({
    disk,
    hold: { ...hold, "x.hold": path, "x.cell": `<ref://${domain}/>` },
  });
  for (const path of ["primary", "primary//a", "primary/a/", "primary/x.hold", "//primary.cells.internal/a"])
    assert.match(refusal(world, to(path)), /"cell\/grant".*no element's path.*x\.hold/, path);
  for (const domain of ["primary.example.org", "cells.internal", "evilcells.internal"])
    assert.match(refusal(world, to(copyAt, domain)), /below `cells\.internal`.*such as `x\.cell/, domain);
  assert.match(refusal(world, to("shop/copy", "shop.cells.internal")), /in this cell itself/);
  assert.equal(refusal(world, to(copyAt)), "");
  const second = { ...hold, "x.volume": "<ref:/shop/other>" };
  assert.match(refusal(world, { disk, hold, other: disk, second }), /a copy has one origin/);
  assert.equal(refusal(world, { disk, hold, again: hold }), "", "twice the same is one");
});

test("one copy is waited for by one volume: a new one under the path of what is held is held for another copy", () => {
  for (const crashes of [false, true]) {
    const world = held();
    world.put(cell({ disk, hold }), ["shop/other"]);
    world.ask({ method: "DELETE", path: "" });
    if (crashes) world.crash();
    world.settle();
    const first = grantOf(world);
    const again = world.ask({ method: "PUT", path: "", json: cell({ disk, hold }) });
    assert.equal(again.status, 400);
    assert.match(JSON.stringify(again.body), /a former `shop\/disk` is held.*cells delete shop\/disk --drop-held/);
    world.put(cell({ disk, hold: { ...hold, "x.hold": "primary/volumes/a2" } }));
    if (crashes) world.crash();
    world.settle();
    assert.deepEqual(volumesOf(world), ["shop/disk", "shop/disk"]);
    assert.notEqual(world.uidOf("shop/disk"), first.volume);
    world.ask({ method: "DELETE", path: "" });
    if (crashes) world.crash();
    world.settle();
    sayCopied(world, first);
    assert.deepEqual(
      grantsOf(world).map((grant) => grant.hold),
      ["primary/volumes/a2"],
    );
    sayCopied(world, grantOf(world));
    assert.equal(world.state.elements.size, 0);
  }
});

test("property: what is known of what is held is what looking at all elements finds", () => {
  const changes = ["put", "again", "leave", "delete", "copied", "drop", "crash"] as const;
  const steps = fc.array(fc.record({ what: fc.constantFrom(...changes), at: fc.nat(3) }), { maxLength: 12 });
  fc.assert(
    fc.property(steps, (all) => {
      const world = new World();
      for (const { what, at } of all) {
        const of = { disk, hold: { ...hold, "x.hold": `primary/a${at}` }, other: disk };
        const json =
          what === "again" ? cell({ ...of, second: disk }) : what === "leave" ? cell({ other: disk }) : cell(of);
        const allowDestroy = ["shop/other", "shop/second"];
        if (what === "crash") world.crash();
        else if (what === "delete") world.ask({ method: "DELETE", path: "", allowDestroy });
        else if (what === "drop")
          world.ask({ method: "DELETE", path: "shop", dropHeld: true, allowDestroy: ["shop/disk"] });
        else if (what !== "copied") world.ask({ method: "PUT", path: "", json, allowDestroy });
        world.settle();
        const grant = what === "copied" ? grantsOf(world)[at % 2] : undefined;
        if (grant !== undefined) sayCopied(world, grant);
        const whole = [...world.state.elements.values()].filter((each) => each.deleting && each.held !== undefined);
        assert.deepEqual([...world.state.indexes.held.keys()].sort(), whole.map(({ uid }) => uid).sort());
      }
    }),
    { numRuns: 30 },
  );
});
