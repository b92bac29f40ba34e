import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type PeerName, peerName, uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { toJson } from "../outbox.ts";
import { createDirectory } from "./directory.ts";

const service = createDirectory({ self: peerName("directory") });
const bank = peerName("controller.bank");
const shop = peerName("controller.shop");
const spy = peerName("controller.spy");

/** A directory with clients' durable documents, which it is given again when it starts again. */
class World {
  readonly refused: { readonly key: Json | undefined; readonly why: Json | undefined }[] = [];
  state = service.restore({ records: new Map(), desiredAt: new Map() });
  readonly published = new Map<string, Json>();
  readonly documents = new Map<string, { from: PeerName; key: string; value: Json }>();
  #step(input: Parameters<typeof service.step>[1]): void {
    const { state, effects } = service.step(this.state, input, { ms: 0, wallMs: 0 });
    this.state = state;
    for (const effect of effects) {
      if (effect.kind === "log" && effect.event === "document/refused")
        this.refused.push({ key: effect.fields.key, why: effect.fields.why });
      if (effect.kind !== "publish") continue;
      if (effect.value === null) this.published.delete(effect.key);
      else this.published.set(effect.key, effect.value);
    }
  }
  start(): this {
    this.#step({ kind: "start" });
    return this;
  }
  say(from: PeerName, key: string, value: object | null): this {
    assert.ok(service.accepts(from, key), key);
    const json = value === null ? null : toJson(value);
    if (json === null) this.documents.delete(`${from}/${key}`);
    else this.documents.set(`${from}/${key}`, { from, key, value: json });
    this.#step({ kind: "desired", from, key, value: json });
    return this;
  }
  restart(): this {
    this.state = service.restore({ records: new Map(), desiredAt: new Map() });
    this.published.clear();
    for (const { from, key, value } of this.documents.values()) this.#step({ kind: "desired", from, key, value });
    return this.start();
  }
  answer(client: PeerName, key: string): Json | undefined {
    return this.published.get(`${client}/${key}`);
  }
}
const network = (id: string, path: string, ...networks: string[]) => ({
  uid: uid(id),
  path,
  shows: { kind: "addresses", type: "VM", networks },
});
const want = (domain: string, path: string) => ({ domain, path });
const anyPort = { from: 0, to: 65_535 };
const opening = (direction: "in" | "out", port = 5432) => ({
  direction,
  protocol: "tcp",
  sourcePorts: anyPort,
  ports: { from: port, to: port },
});
const reach = (
  id: string,
  other: object,
  address: string,
  host: string | null,
  direction: "in" | "out",
  port = 5432,
) => ({
  uid: uid(id),
  other,
  networks: [`${address}/32`],
  placed: host === null ? [] : [{ address, host }],
  openings: [opening(direction, port)],
});
const key = "want/bank.cells.internal/bank/db";
const bankDb = want("bank.cells.internal", "bank/db");
const shopWeb = want("shop.cells.internal", "shop/web");

test("a reference waits until what it names is public, in either order, and no longer than it is", () => {
  const element = network("b-1", "bank/db", "10.64.0.2/32");
  const first = new World().start().say(shop, key, bankDb);
  assert.equal(first.answer(shop, key), undefined);
  first.say(bank, "public/b-1", element);
  const second = new World().start().say(bank, "public/b-1", element).say(shop, key, bankDb);
  for (const world of [first, second]) {
    assert.deepEqual(world.answer(shop, key), { uid: "b-1", shows: element.shows });
    world.restart();
    assert.deepEqual(world.answer(shop, key), { uid: "b-1", shows: element.shows });
    world.say(bank, "public/b-1", null);
    assert.equal(world.answer(shop, key), undefined);
  }
});

test("a path may leave out the cell's own component; the whole path comes first", () => {
  const short = "want/bank.cells.internal/db";
  const world = new World().start().say(shop, short, want("bank.cells.internal", "db"));
  world.say(bank, "public/b-1", network("b-1", "bank/db", "10.64.0.2/32"));
  assert.equal((world.answer(shop, short) as { uid: string }).uid, "b-1");
});

test("what is private and what does not exist cannot be told apart, and nothing can be listed", () => {
  const world = new World().start();
  world.say(bank, "public/b-1", network("b-1", "bank/db", "10.64.0.2/32"));
  world.say(spy, "want/bank.cells.internal/bank", want("bank.cells.internal", "bank"));
  world.say(spy, "want/bank.cells.internal/bank/secret", want("bank.cells.internal", "bank/secret"));
  world.say(spy, "want/none.cells.internal/none/db", want("none.cells.internal", "none/db"));
  // Not said either: that somebody else's desire has been answered.
  world.say(shop, key, bankDb);
  assert.deepEqual([...world.published.keys()], [`${shop}/${key}`]);
  assert.ok(!service.entitled(world.state, spy, `${shop}/${key}`));
  assert.ok(service.entitled(world.state, shop, `${shop}/${key}`));
  assert.ok(!service.accepts(peerName("host.h1"), "public/b-1"));
  assert.ok(!service.accepts(spy, "want/bank.cells.internal"));
});

test("places are told where both cells' rules open the same, and to these two alone", () => {
  const world = new World().start();
  world.say(bank, "public/b-1", network("b-1", "bank/db", "10.64.0.2/32"));
  world.say(shop, "public/s-1", network("s-1", "shop/web", "10.64.1.2/32"));
  world.say(shop, "reach/s-9", reach("s-9", bankDb, "10.64.1.2", "h1", "out"));
  assert.deepEqual(world.answer(shop, "reach/s-9"), { agreed: false, hosts: [] });
  for (const unlike of [
    reach("b-9", shopWeb, "10.64.0.2", "h2", "out"),
    reach("b-9", shopWeb, "10.64.0.2", "h2", "in", 80),
    reach("b-9", want("shop.cells.internal", "shop/other"), "10.64.0.2", "h2", "in"),
    reach("b-9", shopWeb, "10.64.0.7", "h2", "in"),
  ]) {
    world.say(bank, "reach/b-9", unlike);
    assert.deepEqual(world.answer(shop, "reach/s-9"), { agreed: false, hosts: [] });
  }
  world.say(bank, "reach/b-9", reach("b-9", shopWeb, "10.64.0.2", "h2", "in"));
  world.say(spy, "reach/x-9", reach("x-9", bankDb, "10.64.2.2", "h3", "out"));
  const agreed = (address: string, other: string, host: string) => ({
    agreed: true,
    hosts: [{ address, hosts: [host] }],
    there: [{ address: other, host }],
  });
  assert.deepEqual(world.answer(shop, "reach/s-9"), agreed("10.64.1.2", "10.64.0.2", "h2"));
  assert.deepEqual(world.answer(bank, "reach/b-9"), agreed("10.64.0.2", "10.64.1.2", "h1"));
  assert.deepEqual(world.answer(spy, "reach/x-9"), { agreed: false, hosts: [] });
  world.restart();
  assert.deepEqual(world.answer(shop, "reach/s-9"), agreed("10.64.1.2", "10.64.0.2", "h2"));
  // A machine that goes elsewhere, and one that is nowhere: agreed all the same.
  world.say(bank, "reach/b-9", reach("b-9", shopWeb, "10.64.0.2", null, "in"));
  assert.deepEqual(world.answer(shop, "reach/s-9"), { agreed: true, hosts: [] });
  // What is no longer public is agreed to by nobody.
  world.say(shop, "public/s-1", null);
  assert.deepEqual(world.answer(shop, "reach/s-9"), { agreed: false, hosts: [] });
  assert.equal(world.answer(bank, "reach/b-9"), undefined);
  world.say(bank, "reach/b-9", null);
  assert.equal(world.answer(bank, "reach/b-9"), undefined);
});

test("malformed documents change nothing but their own key", () => {
  const world = new World().start();
  world.say(bank, "public/b-1", network("b-1", "bank/db", "10.64.0.2/32")).say(shop, key, bankDb);
  world.say(spy, "public/b-1", { uid: "b-1" }).say(spy, "reach/b-1", { uid: "b-1", other: 3 });
  world.say(spy, "want/a/b", { domain: "bank.cells.internal", path: "bank/db" });
  assert.deepEqual([...world.published.keys()], [`${shop}/${key}`]);
  world.say(bank, "public/b-1", { uid: "b-1", path: "bank/db", shows: { kind: "addresses", networks: ["all"] } });
  assert.deepEqual([...world.published.keys()], []);
});

test("what is malformed is refused with the reason, and what is taken back or taken is not", () => {
  const world = new World().start();
  world.say(bank, "public/b-1", network("b-1", "bank/db", "10.64.0.2/32")).say(bank, "public/b-1", null);
  assert.deepEqual(world.refused, []);
  world.say(spy, "public/b-1", { uid: "b-1" });
  assert.deepEqual(world.refused, [
    { key: "public/b-1", why: "the document is malformed; see core/documents/vocabulary.ts for its fields" },
  ]);
});

test("a path that another element took over is the first one's again, and of no third", () => {
  const world = new World().start().say(shop, key, bankDb);
  const told = (): string => (world.answer(shop, key) as { uid: string }).uid;
  world.say(bank, "public/b-3", network("b-3", "bank/other", "10.64.0.4/32"));
  world.say(bank, "public/b-1", network("b-1", "bank/db", "10.64.0.2/32"));
  world.say(bank, "public/b-2", network("b-2", "bank/db", "10.64.0.3/32"));
  assert.equal(told(), "b-2");
  world.say(bank, "public/b-1", network("b-1", "bank/db", "10.64.0.2/32"));
  assert.equal(told(), "b-1");
  // Whoever does not stand in front leaves nothing to put back.
  world.say(bank, "public/b-2", null);
  assert.equal(told(), "b-1");
  world.say(bank, "public/b-2", network("b-2", "bank/db", "10.64.0.3/32"));
  world.say(bank, "public/b-2", null);
  assert.equal(told(), "b-1");
});

test("a rule that names another cell instead is agreed to there, and by its former partner no more", () => {
  const world = new World().start();
  world.say(bank, "public/b-1", network("b-1", "bank/db", "10.64.0.2/32"));
  world.say(spy, "public/x-1", network("x-1", "spy/db", "10.64.2.2/32"));
  world.say(shop, "public/s-1", network("s-1", "shop/web", "10.64.1.2/32"));
  world.say(bank, "reach/b-9", reach("b-9", shopWeb, "10.64.0.2", "h2", "in"));
  world.say(spy, "reach/x-9", reach("x-9", shopWeb, "10.64.2.2", "h3", "in"));
  const agreed = (): readonly unknown[] =>
    [world.answer(bank, "reach/b-9"), world.answer(spy, "reach/x-9")].map(
      (each) => (each as { agreed: boolean }).agreed,
    );
  world.say(shop, "reach/s-9", reach("s-9", bankDb, "10.64.1.2", "h1", "out"));
  assert.deepEqual(agreed(), [true, false]);
  world.say(shop, "reach/s-9", reach("s-9", want("spy.cells.internal", "spy/db"), "10.64.1.2", "h1", "out"));
  assert.deepEqual(agreed(), [false, true]);
  world.say(shop, "reach/s-9", null);
  assert.deepEqual(agreed(), [false, false]);
});

test("nothing is kept of cells that have taken back all", () => {
  const world = new World().start();
  world.say(bank, "public/b-1", network("b-1", "bank/db", "10.64.0.2/32"));
  world.say(shop, key, bankDb).say(shop, "reach/s-9", reach("s-9", bankDb, "10.64.1.2", "h1", "out"));
  assert.deepEqual([...world.state.asks.keys()], ["bank.cells.internal"]);
  world.say(shop, key, null).say(shop, "reach/s-9", null).say(bank, "public/b-1", null);
  assert.deepEqual([world.state.asks.size, world.state.cells.size], [0, 0]);
});

test("a cell that has all the documents it may have puts others in their place, and no more; others have room", () => {
  const world = new World();
  const names = (number: number) => want("bank.cells.internal", `bank/vm${number}`);
  const rule = (id: string, host: string) => reach(id, bankDb, "10.64.1.2", host, "out");
  for (let number = 0; number < 9_999; number += 1) {
    world.say(shop, `want/bank.cells.internal/bank/vm${number}`, names(number));
    world.say(shop, `reach/s-${number}`, rule(`s-${number}`, "h1"));
  }
  world.say(shop, key, bankDb).say(shop, "public/s-1", network("s-1", "shop/web", "10.64.1.2/32"));
  assert.deepEqual(world.refused, []);
  for (const [more, document] of [
    ["public/s-2", network("s-2", "shop/other", "10.64.1.3/32")],
    ["want/bank.cells.internal/bank/more", want("bank.cells.internal", "bank/more")],
    ["reach/s-more", rule("s-more", "h1")],
  ] as const) {
    world.refused.length = 0;
    world.say(shop, more, document);
    const why = "this cell has 20000 documents here already, and no more are taken";
    assert.deepEqual(world.refused, [{ key: more, why }]);
  }
  world.refused.length = 0;
  world.say(shop, "public/s-1", network("s-1", "shop/new", "10.64.1.2/32"));
  world.say(shop, key, bankDb).say(shop, "reach/s-1", reach("s-1", bankDb, "10.64.1.2", "h5", "out"));
  world.say(bank, "public/b-1", network("b-1", "bank/db", "10.64.0.2/32"));
  world.say(bank, "reach/b-9", reach("b-9", want("shop.cells.internal", "new"), "10.64.0.2", "h2", "in"));
  assert.deepEqual(world.refused, []);
  const places = (): readonly unknown[] =>
    (world.answer(bank, "reach/b-9") as { there: readonly { host: string }[] }).there;
  world.start();
  assert.deepEqual(
    places().map((place) => (place as { host: string }).host),
    ["h1", "h5"],
  );
  assert.equal((world.answer(shop, key) as { uid: string }).uid, "b-1");
  // One less, and there is room for another.
  world.say(shop, "reach/s-0", null).say(shop, "public/s-2", network("s-2", "shop/other", "10.64.1.3/32"));
  assert.deepEqual(world.refused, []);
});

test("what rules between two cells cost grows with the rules, and not with all pairs of them", () => {
  /** So many rules of either cell, each agreed on with one of the other. `ends`: of the shop, each with its share of the rules. */
  const compared = (rules: number, ends: number): number => {
    const world = new World().start();
    const address = (cell: number, at: number): string => `10.${cell}.${at >> 8}.${at & 255}`;
    for (let at = 0; at < ends; at += 1)
      world.say(shop, `public/s-${at}`, network(`s-${at}`, `shop/web${at}`, `${address(65, at)}/32`));
    for (let at = 0; at < rules; at += 1) {
      const web = at % ends;
      const db = want("bank.cells.internal", `bank/db${at}`);
      world.say(bank, `public/b-${at}`, network(`b-${at}`, `bank/db${at}`, `${address(64, at)}/32`));
      world.say(shop, `reach/s-${at}`, reach(`s-${at}`, db, address(65, web), "h1", "out"));
      const named = want("shop.cells.internal", `shop/web${web}`);
      world.say(bank, `reach/b-${at}`, reach(`b-${at}`, named, address(64, at), "h2", "in"));
    }
    for (let at = 0; at < rules; at += 1)
      for (const [cell, id] of [
        [shop, `s-${at}`],
        [bank, `b-${at}`],
      ] as const)
        assert.equal((world.answer(cell, `reach/${id}`) as { agreed: boolean }).agreed, true, id);
    return world.state.compared;
  };
  for (const ends of [() => 1, (rules: number) => rules]) {
    const [few, many] = [50, 200].map((rules) => compared(rules, ends(rules)) / rules) as [number, number];
    assert.ok(few < 20 && many < few * 1.05, `looks a rule: ${few} of 50, ${many} of 200`);
  }
});

test("what it counts is what cells have said", () => {
  const world = new World().start();
  for (const [cell, name] of [
    [bank, "bank"],
    [shop, "shop"],
  ] as const) {
    for (const id of ["1", "2"])
      world.say(cell, `public/${name}-${id}`, network(`${name}-${id}`, `${name}/${id}`, "10.64.0.2/32"));
    world.say(cell, key, bankDb);
  }
  const counts = service.measure?.(world.state).map(({ samples }) => samples.map(({ value }) => value));
  assert.deepEqual(counts, [[4], [2], [0]]);
});

test("property: what it says follows from the documents alone, whatever their order and however often it starts again", () => {
  const cells = [bank, shop, spy];
  const name = (cell: number): string => ["bank", "shop", "spy"][cell] ?? "";
  const step = fc.record({
    cell: fc.nat(2),
    other: fc.nat(2),
    what: fc.constantFrom("public", "want", "reach", "restart"),
    there: fc.nat(3).map((number) => number > 0),
    port: fc.constantFrom(80, 80, 80, 443),
  });
  const play = (
    world: World,
    { cell, other, what, there, port }: { cell: number; other: number; what: string; there: boolean; port: number },
  ): void => {
    const client = cells[cell] ?? bank;
    const named = want(`${name(other)}.cells.internal`, `${name(other)}/vm`);
    const address = `10.64.${cell}.2`;
    if (what === "restart") world.restart();
    else if (what === "public")
      world.say(client, `public/${cell}-1`, there ? network(`${cell}-1`, `${name(cell)}/vm`, `${address}/32`) : null);
    else if (what === "want") world.say(client, `want/${named.domain}/${named.path}`, there ? named : null);
    else {
      const direction = cell < other ? "out" : "in";
      world.say(
        client,
        `reach/${cell}-${other}9`,
        there ? reach(`${cell}-${other}9`, named, address, `h${cell}`, direction, port) : null,
      );
    }
  };
  let agreed = 0;
  fc.assert(
    fc.property(fc.array(step, { minLength: 5, maxLength: 60, size: "max" }), (steps) => {
      const world = new World().start();
      for (const each of steps) play(world, each);
      const fresh = new World();
      for (const { from, key: name, value } of [...world.documents.values()].reverse())
        fresh.say(from, name, value as object);
      fresh.start();
      assert.deepEqual(new Map([...world.published].sort()), new Map([...fresh.published].sort()));
      for (const [full, value] of world.published) {
        if (!full.includes("/reach/") || (value as { agreed: boolean }).agreed !== true) continue;
        agreed += 1;
        // Both have said it, and both show it.
        const [, , own = "", other = ""] = /(reach\/)(\d)-(\d)9$/.exec(full) ?? [];
        for (const said of [
          `${cells[Number(own)]}/reach/${own}-${other}9`,
          `${cells[Number(other)]}/reach/${other}-${own}9`,
        ])
          assert.ok(world.documents.has(said), `${full} without ${said}`);
        for (const cell of [own, other]) assert.ok(world.documents.has(`${cells[Number(cell)]}/public/${cell}-1`));
      }
    }),
    { numRuns: 300 },
  );
  assert.ok(agreed > 0, "some rules met");
});

test("what is held is found by the elements for which it is, and another volume under its path by everybody", () => {
  const volume = (id: string, copies: readonly string[]) => ({
    uid: uid(id),
    path: "bank/db",
    shows: { kind: "volume", type: "Volume", sizeMiB: 64, server: "s1" },
    ...(copies.length === 0 ? {} : { heldFor: copies.map((path) => ({ domain: "shop.cells.internal", path })) }),
  });
  const { shows } = volume("b-1", []);
  const key = "want/bank.cells.internal/bank/db";
  const world = new World().start();
  for (const client of [shop, spy]) world.say(client, key, want("bank.cells.internal", "bank/db"));
  world.say(bank, "public/b-1", volume("b-1", ["shop/a", "shop/b"]));
  const held = (id: string, path: string) => ({ path, uid: id, shows });
  const of = [held("b-1", "shop/a"), held("b-1", "shop/b")];
  assert.deepEqual(world.answer(shop, key), { uid: "b-1", shows, heldFor: of, onlyHeld: true });
  assert.equal(world.answer(spy, key), undefined, "it is held for nobody else");
  // The same path, applied again; before and after what is held, in whatever order they came.
  for (const order of [
    ["b-1", "b-2"],
    ["b-2", "b-1"],
  ]) {
    for (const id of ["b-1", "b-2"]) world.say(bank, `public/${id}`, null);
    for (const id of order) world.say(bank, `public/${id}`, volume(id, id === "b-1" ? ["shop/a"] : []));
    world.restart();
    assert.deepEqual(world.answer(shop, key), { uid: "b-2", shows, heldFor: [held("b-1", "shop/a")] });
    assert.deepEqual(world.answer(spy, key), { uid: "b-2", shows });
  }
  world.say(bank, "public/b-2", volume("b-2", ["shop/c"]));
  assert.deepEqual(
    (world.answer(shop, key) as { heldFor: readonly { uid: string; path: string }[] }).heldFor
      .map((each) => [each.path, each.uid])
      .sort(),
    [
      ["shop/a", "b-1"],
      ["shop/c", "b-2"],
    ],
  );
});
