import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cell } from "../../../../model/cell/cell.ts";
import { peerName } from "../../../../model/cell/identifiers.ts";
import { noUsage, type Usage } from "../../../../model/check/check-limits.ts";
import { acceptedBefore } from "../../../../model/check/check-supply.ts";
import type { JsonObject } from "../../../../model/json/json.ts";
import { checkDocument } from "../../../../model/specification/specification.ts";
import { toJson } from "../../../outbox.ts";
import { World } from "../../world.testing.ts";
import { poolRefusals } from "./refusals.ts";

const room = Object.fromEntries(Object.keys(noUsage).map((key) => [key, 1_000_000])) as unknown as Usage;
const host: JsonObject = { "x.type": "PoolHost", "x.pool": "<ref:..>", "x.flavor": "large" };
const withHosts = (count: number): JsonObject => {
  const hosts = Array.from({ length: count }, (_, at) => [`rack${at}`, host] as const);
  return { shop: { "x.type": "Cell", racks: { "x.type": "Pool", ...Object.fromEntries(hosts) } } };
};

test("a cell has so many pools and hosts of them, and one of before that has more may have no more", () => {
  const world = new World({ child: true });
  const grant = { amount: room, serial: 1, answered: 0, refusal: null };
  const life = { uid: "root-1", model: withHosts(0), grant, ending: false };
  world.step({ kind: "desired", from: peerName("cell-manager"), key: "life", value: toJson(life) });
  world.settle();
  const put = (count: number) => world.ask({ method: "PUT", path: "", json: withHosts(count) });
  assert.equal(put(255).status, 200);
  world.settle();
  const refused = put(256);
  assert.equal(refused.status, 400);
  assert.match(JSON.stringify(refused.body), /has 257 Pools and PoolHosts, and may have 256 of them together/);
  const waits = world.state.cell ?? assert.fail();
  const more = (count: number): Cell => {
    const elements = new Map(waits.elements);
    const [one] = [...elements.values()].filter(({ type }) => type === "PoolHost");
    for (let at = 0; at < count && one !== undefined; at += 1) {
      const path = `shop/racks/more${at}` as typeof one.path;
      elements.set(path, { ...one, path });
    }
    return { ...waits, elements };
  };
  const codes = (cell: Cell, before: Cell) =>
    poolRefusals({ ...world.state, cell: before }, cell).map(({ code }) => code);
  assert.deepEqual(codes(more(5), more(5)), []);
  assert.deepEqual(codes(more(4), more(5)), []);
  assert.deepEqual(codes(more(6), more(5)), ["cell/pool"]);
});

test("offerings stand as root/offerings/<name> in the root cell, and nowhere else", () => {
  const offering: JsonObject = { "x.type": "Offering", "x.memory": 512 };
  const { state } = new World();
  const refused = (cell: "root" | "shop", inside: JsonObject): readonly string[] => {
    const checked = checkDocument({ [cell]: { "x.type": "Cell", ...inside } }, acceptedBefore);
    assert.ok(checked.ok, JSON.stringify(checked));
    const options = { ...state.options, cell: cell as typeof state.options.cell };
    return poolRefusals({ ...state, options, cell: null }, checked.value).map(({ path }) => `${path}`);
  };
  assert.deepEqual(refused("root", { offerings: { small: offering } }), []);
  assert.deepEqual(refused("root", { offerings: { more: { small: offering } } }), ["root/offerings/more/small"]);
  assert.deepEqual(refused("root", { small: offering }), ["root/small"]);
  assert.deepEqual(refused("shop", { offerings: { small: offering } }), ["shop/offerings/small"]);
});

test("a pool names so many offerings and images, and a cloud has so many offerings", () => {
  const offering: JsonObject = { "x.type": "Offering", "x.memory": 512 };
  const { state } = new World({ child: true });
  const refused = (cell: "root" | "shop", inside: JsonObject): string => {
    const checked = checkDocument({ [cell]: { "x.type": "Cell", ...inside } }, acceptedBefore);
    assert.ok(checked.ok, JSON.stringify(checked));
    const options = { ...state.options, cell: cell as typeof state.options.cell };
    return poolRefusals({ ...state, options, cell: null }, checked.value)
      .map(({ message }) => message)
      .join();
  };
  const words = (count: number): string[] => Array.from({ length: count }, (_, at) => `word${at}`);
  const pool = (more: JsonObject): JsonObject => ({ racks: { "x.type": "Pool", ...more } });
  assert.equal(refused("shop", pool({ "x.offerings": words(64), "x.images": words(64) })), "");
  assert.match(refused("shop", pool({ "x.offerings": words(65) })), /`x\.offerings` has 65 words, and may have 64/);
  assert.match(refused("shop", pool({ "x.images": words(65) })), /`x\.images` has 65 words/);
  const offerings = (count: number): JsonObject => ({
    offerings: Object.fromEntries(words(count).map((name) => [name, offering])),
  });
  assert.equal(refused("root", offerings(256)), "");
  assert.match(refused("root", offerings(257)), /has 257 Offerings, and may have 256/);
});
