import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { DesiredPlaces } from "../../documents/network/network.ts";
import type { DesiredVm } from "../../documents/vocabulary.ts";
import { directory } from "../state.ts";
import { World } from "../world.testing.ts";

/** Machines of one subnet, in which everybody may talk to everybody. */
const cellOf = (names: readonly string[], more: JsonObject = {}): JsonObject => ({
  shop: {
    "x.type": "Cell",
    "x.name": "shop",
    net: { "x.type": "Subnet", "x.size": 16, "x.addressRange": "internal" },
    all: { "x.type": "NetworkRule", "x.address1": "<ref:/shop/net>", "x.address2": "<ref:/shop/net>" },
    ...Object.fromEntries(
      names.flatMap((name) => [
        [name, { "x.type": "VM", "x.memory": 64 }],
        [`${name}Card`, { "x.type": "VirtualInterface", "x.vm": `<ref:/shop/${name}>`, "x.subnet": "<ref:/shop/net>" }],
      ]),
    ),
    ...more,
  },
});

/** A cell whose next machines start at the host that is said, as its model has them one after the other. */
class Cell {
  readonly world = new World({ directory: true });
  readonly more: JsonObject;
  readonly #names: string[] = [];
  constructor(more: JsonObject = {}) {
    this.more = more;
  }
  start(name: string, at: string): void {
    for (const host of ["h1", "h2", "h3", "h4"]) this.world.hosts.set(hostName(host), host === at ? 4096 : 0);
    this.#names.push(name);
    this.world.put(cellOf(this.#names, this.more));
    assert.equal(this.world.vm(`shop/${name}`)?.host, `host.${at}`);
  }
  end(name: string): void {
    this.#names.splice(this.#names.indexOf(name), 1);
    this.world.put(cellOf(this.#names, this.more));
  }
  /** At which other hosts this one knows machines of the cell to be. */
  known(host: string): readonly string[] {
    const [places] = this.world.documents<DesiredPlaces>(`host.${host}`, "places");
    return (places?.own ?? []).map((place) => place.host).sort();
  }
}

test("who knows where a machine is keeps knowing it, in whatever order of their names hosts come and go", () => {
  for (const order of [
    ["h3", "h2", "h1", "h4"],
    ["h1", "h2", "h3", "h4"],
    ["h2", "h4", "h1", "h3"],
    ["h4", "h1", "h3", "h2"],
  ]) {
    const cell = new Cell();
    const others = (host: string, of: readonly string[]): readonly string[] =>
      of.filter((each) => each !== host).sort();
    for (const [index, host] of order.entries()) {
      cell.start(`at${host}`, host);
      const now = order.slice(0, index + 1);
      for (const each of now) assert.deepEqual(cell.known(each), others(each, now), `${each} after ${now.join(", ")}`);
    }
    for (const [index, host] of order.entries()) {
      cell.end(`at${host}`);
      const now = order.slice(index + 1);
      for (const each of now) assert.deepEqual(cell.known(each), others(each, now), `${each} without ${host}`);
    }
  }
});

const bank = "bank.cells.internal/bank/db";
const toBank = { "x.type": "NetworkRule", "x.address1": "<ref:/shop/one>", "x.address2": `<ref://${bank}>` };

test("a host that only another cell's end kept informed hears it again when it has a machine of this one", () => {
  const cell = new Cell({ toBank });
  const { world } = cell;
  world.shown.set(bank, { uid: "b-1", shows: { kind: "addresses", type: "VM", networks: ["10.64.9.2/32"] } } as never);
  world.agreed = true;
  cell.start("one", "h1");
  const [one] = world.documents<DesiredVm>("host.h1", "vm");
  const address = one?.interfaces[0]?.address ?? assert.fail("it has no address");
  // The other cell's end is at h2, whoever of this one is there.
  const key = `controller.shop/reach/${world.uidOf("shop/toBank")}`;
  world.step({
    kind: "actual",
    from: directory,
    key,
    value: { agreed: true, hosts: [{ address, hosts: ["h2"] }] },
  });
  for (const turn of [1, 2]) {
    cell.start("two", "h2");
    assert.deepEqual(cell.known("h2"), ["h1"], `${turn}`);
    cell.end("two");
    assert.deepEqual(cell.known("h2"), []);
  }
});

test("a machine in two subnets is known in each of them to whoever is there, and by nothing of the other", () => {
  const world = new World({ directory: true });
  const net = { "x.type": "Subnet", "x.size": 16, "x.addressRange": "internal" };
  const within = (name: string): JsonObject => ({
    "x.type": "NetworkRule",
    "x.address1": `<ref:/shop/${name}>`,
    "x.address2": `<ref:/shop/${name}>`,
  });
  const card = (vm: string, subnet: string): JsonObject => ({
    "x.type": "VirtualInterface",
    "x.vm": `<ref:/shop/${vm}>`,
    "x.subnet": `<ref:/shop/${subnet}>`,
  });
  const vm = { "x.type": "VM", "x.memory": 64 };
  let made: JsonObject = { left: net, right: net, inLeft: within("left"), inRight: within("right") };
  const start = (at: string, more: JsonObject): void => {
    for (const host of ["h1", "h2", "h3"]) world.hosts.set(hostName(host), host === at ? 4096 : 0);
    made = { ...made, ...more };
    world.put({ shop: { "x.type": "Cell", "x.name": "shop", ...made } });
  };
  const known = (host: string): number => {
    const [places] = world.documents<DesiredPlaces>(`host.${host}`, "places");
    return (places?.own ?? []).filter((place) => place.host === "h1").length;
  };
  start("h1", { both: vm, leftCard: card("both", "left"), rightCard: card("both", "right") });
  start("h3", { one: vm, oneCard: card("one", "right") });
  assert.deepEqual([known("h2"), known("h3")], [0, 1]);
  start("h3", { two: vm, twoCard: card("two", "left") });
  assert.deepEqual([known("h2"), known("h3")], [0, 2]);
});

test("the directory is asked for whatever has a key of the longest length, and for nothing longer", () => {
  const world = new World({ directory: true });
  const head = "want/bank.cells.internal/";
  const pathOf = (length: number): string => `bank/${"n".repeat(50)}`.repeat(40).slice(0, length).replace(/\/$/, "n");
  const rule = (length: number): JsonObject => ({
    "x.type": "NetworkRule",
    "x.address1": "<ref:/shop/one>",
    "x.address2": `<ref://bank.cells.internal/${pathOf(length - head.length)}>`,
  });
  world.put(cellOf(["one"], { longest: rule(900), longer: rule(901) }));
  const asked = [...(world.desired.get(directory)?.keys() ?? [])].filter((key) => key.startsWith("want/"));
  assert.deepEqual(
    asked.map((key) => key.length),
    [900],
  );
});
