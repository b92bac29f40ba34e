import assert from "node:assert/strict";
import { test } from "node:test";
import type { Changed, Refusal } from "../../../model/api.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { inOneGo } from "../../../model/slices.ts";
import { shop, World, written } from "../world.testing.ts";
import { acceptModel, planFor } from "./model-change.ts";

const running = (): World => {
  const world = new World();
  world.put(shop());
  return world;
};
const errorOf = (body: Json): Refusal["error"] => (body as unknown as Refusal).error;
const inside = (changes: JsonObject): JsonObject => ({ ...(shop().shop as JsonObject), ...changes });

test("a whole cell goes only if every volume that VMs wrote is named", () => {
  const world = running();
  const refused = world.ask({ method: "DELETE", path: "" });
  assert.deepEqual([refused.status, refused.version], [409, 1]);
  const { code, message, diagnostics } = errorOf(refused.body);
  assert.equal(code, "change/destroys-data");
  assert.match(
    message,
    /shop\/webDisk \(VolumeCopy\) is deleted: up to 64 MiB that were written since it was copied from shop\/golden/,
  );
  assert.match(message, /\n *If that is meant, add --allow-destroy shop\/dbDisk,shop\/webDisk\n/);
  assert.deepEqual(
    diagnostics?.map(({ path }) => path).sort(),
    [...written].sort(),
    "not the golden image: nobody wrote it",
  );
  assert.equal(world.state.elements.size, 12, "nothing was touched");
  const part = world.ask({ method: "DELETE", path: "", allowDestroy: ["shop/webDisk", "shop"] });
  assert.deepEqual(
    errorOf(part.body).diagnostics?.map(({ path }) => path),
    ["shop/dbDisk"],
    "a cell names no volume",
  );
  assert.equal(world.ask({ method: "DELETE", path: "", dryRun: true }).status, 200, "a question destroys nothing");
  assert.equal(world.ask({ method: "DELETE", path: "", allowDestroy: ["/shop/webDisk, shop/dbDisk"] }).status, 200);
});

test("the same for a part that is put or deleted, and for what a change replaces", () => {
  const world = running();
  const image = { "x.type": "Volume", "x.size": 64, "x.import": "other" };
  const replaced = world.ask({ method: "PUT", path: "shop/golden", json: image });
  assert.equal(replaced.status, 409);
  assert.match(errorOf(replaced.body).message, /shop\/webDisk \(VolumeCopy\) is replaced/);
  const { dbDisk: _disk, dbBoot: _boot, db: _db, dbCard: _card, toDb: _rule, ...rest } = inside({});
  assert.equal(world.ask({ method: "PUT", path: "shop", json: rest }).status, 409);
  const named = world.ask({ method: "PUT", path: "shop", json: rest, allowDestroy: ["shop/dbDisk"] });
  assert.equal(named.status, 200);
  assert.equal(world.put({ shop: rest }, ["shop/dbDisk"]).version, 2, "what is named and not there harms nothing");
});

test("a volume that no VM was ever given goes without being named, also after a restart", () => {
  const world = running();
  const spare: JsonObject = { spare: { "x.type": "Volume", "x.size": 8 } };
  world.put(shop(spare));
  world.crash();
  world.settle();
  assert.equal(world.put(shop()).version, 3);
  const used: JsonObject = {
    ...spare,
    spareDisk: { "x.type": "VolumeConnection", "x.vm": "<ref:/shop/web>", "x.volume": "<ref:/shop/spare>" },
  };
  world.put(shop(used));
  world.put(shop(spare));
  world.crash();
  world.settle();
  const refused = world.ask({ method: "PUT", path: "", json: shop() });
  assert.equal(refused.status, 409, "it was a VM's once");
  assert.match(errorOf(refused.body).message, /shop\/spare \(Volume\) is deleted: up to 8 MiB that were written to it/);
});

test("a grant to connect a volume lets others write it", () => {
  const world = running();
  const granted = (grant: string): JsonObject => ({
    spare: { "x.type": "Volume", "x.size": 8 },
    grant: { "x.type": "VolumeGrant", "x.volume": "<ref:/shop/spare>", "x.vm": "<ref:/shop/web>", "x.grant": grant },
  });
  world.put(shop(granted("copy")));
  world.put(shop());
  world.put(shop(granted("connect")));
  assert.equal(world.ask({ method: "PUT", path: "", json: shop() }).status, 409);
});

test("a plan that is not right is not executed", () => {
  const world = running();
  const { state } = world;
  const before = structuredClone(world.records);
  const plan = inOneGo(planFor(state, null));
  const wrong = { steps: plan.steps.map(({ loss: _loss, ...step }) => ({ ...step, losesData: false })) };
  assert.deepEqual(
    acceptModel(state, null, wrong)
      .filter((fault) => /: loses data$/.test(fault))
      .sort(),
    ["shop/dbDisk: loses data", "shop/webDisk: loses data"],
  );
  assert.ok(state.cell !== null && state.model.version === 1);
  const logged = state.outbox.effects.flatMap((effect) => (effect.kind === "log" ? [effect.event] : []));
  assert.deepEqual(logged, ["model/plan-refused"]);
  assert.deepEqual(world.records, before);
});

test("a change is made to the version it was planned against, or not at all", () => {
  const world = running();
  const web = { ...(inside({}).web as JsonObject), "x.memory": 768 };
  for (const method of ["PUT", "DELETE"]) {
    const late = world.ask({ method, path: "shop/toDb", json: web, ifMatch: 0, dryRun: true });
    assert.equal(late.status, 412);
    assert.match(errorOf(late.body).message, /version 1, not 0/);
  }
  assert.equal(world.ask({ method: "PUT", path: "shop/web", json: web, ifMatch: 1 }).version, 2);
  assert.equal(world.ask({ method: "DELETE", path: "shop/toDb", ifMatch: 1 }).status, 412);
});

test("any part can be put and deleted, a single attribute too, and is checked with the whole", () => {
  const world = running();
  assert.equal(world.ask({ method: "PUT", path: "shop/web/x.memory", json: 768 }).status, 200);
  assert.equal(world.ask({ method: "PUT", path: "shop/web/x.memory", json: "much" }).status, 400);
  assert.equal(world.ask({ method: "PUT", path: "shop/nothing/x.memory", json: 1 }).status, 404);
  const group = { inner: { "x.type": "Subnet", "x.size": 8 } };
  assert.equal(world.ask({ method: "PUT", path: "shop/group", json: group }).status, 200);
  assert.equal(world.ask({ method: "DELETE", path: "shop/web" }).status, 400, "its disk and its interface refer to it");
  const { plan } = world.ask({ method: "DELETE", path: "shop/group", dryRun: true }).body as unknown as Changed;
  assert.deepEqual(
    plan.steps.filter(({ action }) => action !== "none").map(({ path, action }) => `${action} ${path}`),
    ["delete shop/group/inner"],
  );
  assert.equal(world.ask({ method: "DELETE", path: "shop/group" }).status, 200);
  assert.equal(world.ask({ method: "DELETE", path: "shop/web/x.restartOnFailure" }).status, 200);
  assert.equal(world.state.model.version, 5);
});

test("an answer to a change names what has failed and is left so, and says nothing of it where nothing has", () => {
  const world = new World();
  const cell = (more: JsonObject): JsonObject => ({
    "x.type": "Cell",
    vm: { "x.type": "VM", "x.memory": 64, ...more },
  });
  const failed = (more: JsonObject): Changed["failed"] =>
    (world.ask({ method: "PUT", path: "", json: { shop: cell(more) }, dryRun: true }).body as unknown as Changed)
      .failed;
  world.put({ shop: cell({}) });
  assert.equal(failed({}), undefined);
  world.ended.set(`${world.uidOf("shop/vm")}@1`, { phase: "failed", power: "off", ended: "exited" });
  world.settle();
  assert.deepEqual(
    failed({})?.map(({ path }) => path),
    ["shop/vm"],
  );
  assert.equal(failed({ "x.memory": 128 }), undefined, "that starts it again");
});
