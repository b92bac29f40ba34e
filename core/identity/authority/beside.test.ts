import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import { AuthorityWorld, dawn, enrolment, hex, root, told } from "./authority.testing.ts";

/** The authority's store is lost, and its key is not: what an operator had enrolled is known to nobody else. */
const hour = 3_600_000;
const [joined, unspent, ofPlacer] = [hex("a"), hex("b"), hex("c")];
const [h1, h2, service] = [hex("1"), hex("2"), hex("3")];
const later = dawn + hour;
const operated = (id: string, desire: object | null) => ({ kind: "enrolment", id, enrolment: desire });
const renew = (name: string, by: string) => ({ kind: "renew", name, key: by });
const host = (name: string, hash: string, at: string) => enrolment(hash, "root", [[`host.${name}`, "host"]], later, at);
const placer = enrolment(ofPlacer, "root", [["placer", "placer"]], later, "10.0.0.20");

/** Two machines that joined, one whose token is unspent, and a service of the root controller's. */
const inUse = (): AuthorityWorld => {
  const world = new AuthorityWorld();
  world.ask({ kind: "self", key: hex("9"), told: {} });
  world.ask(operated("joined-host-h1", host("h1", joined, "10.0.0.11")));
  world.ask(operated("joined-host-h2", host("h2", hex("d"), "10.0.0.12")));
  world.ask(operated("joined-host-h3", host("h3", unspent, "10.0.0.13")));
  world.ask({ kind: "enrol", hash: joined, key: h1 });
  world.ask({ kind: "enrol", hash: hex("d"), key: h2 });
  world.desireEnrolment(root, "p", placer);
  world.ask({ kind: "enrol", hash: ofPlacer, key: service });
  return world;
};
const book = (world: AuthorityWorld) => {
  const answer = world.ask({ kind: "peers", known: -1 });
  return answer.kind === "peers" ? answer : assert.fail();
};
const everybody = { "host.h1": "10.0.0.11", "host.h2": "10.0.0.12", "host.h3": "10.0.0.13", placer: "10.0.0.20" };

test("with a store that was lost nobody is forgotten whom an operator had enrolled, and the book is as it was", () => {
  const world = inUse();
  const before = book(world);
  assert.deepEqual(before.peers, everybody);
  const pins = new Map([...world.published].filter(([key]) => key.startsWith("pin/host.")));
  world.loseStore();
  for (let starts = 0; starts < 2; starts += 1) {
    assert.ok(world.isLost, "it is said, also after a restart");
    const after = book(world);
    assert.deepEqual([after.peers, after.version], [everybody, before.version]);
    for (const [key, pin] of pins) assert.deepEqual(world.published.get(key), pin);
    world.ask({ kind: "self", key: hex("9"), told: {} });
    world.restart();
  }
  assert.equal(told(world.ask(renew("host.h1", h1))), "host.h1");
  assert.equal(told(world.ask(renew("host.h1", h2))), "another-key");
  assert.equal(told(world.ask({ kind: "enrol", hash: joined, key: h2 })), "spent", "a token stays spent");
  assert.equal(told(world.ask({ kind: "enrol", hash: unspent, key: hex("4") })), "host.h3");
  assert.deepEqual(world.logs.filter(({ event }) => event === "store/lost").length, 1);
});

test("until an operator has looked nobody is taken out of the book whom a controller has yet to grant again", () => {
  const world = inUse();
  world.loseStore();
  world.ask({ kind: "self", key: hex("9"), told: {} });
  assert.equal(told(world.ask(renew("placer", service))), "no-identity");
  world.desireEnrolment(root, "p", {
    ...placer,
    grants: [{ name: "placer", role: "placer", addresses: ["10.0.0.21"] }],
  });
  assert.equal(told(world.ask({ kind: "enrol", hash: ofPlacer, key: service })), "placer", "it shows its token again");
  assert.equal(book(world).peers.placer, "10.0.0.21", "and what is said anew counts");
  world.desireEnrolment(root, "p", null);
  assert.equal(book(world).peers.placer, "10.0.0.20");
  world.release(peerName("controller.root"));
  assert.ok(world.isLost, "it is the authority that is to be released");
  world.release();
  assert.ok(!world.isLost);
  assert.deepEqual(Object.keys(book(world).peers), ["host.h1", "host.h2", "host.h3"]);
  world.restart();
  assert.ok(!world.isLost);
});

test("where nothing can be read of what lay beside nobody is told a book until an operator has looked", () => {
  const world = inUse();
  world.loseStore({ records: {}, peers: {} });
  world.ask({ kind: "self", key: hex("9"), told: {} });
  const said = world.askLater({ kind: "peers", known: 7 });
  world.desireEnrolment(root, "p", placer);
  assert.equal(said(), null);
  world.release();
  assert.ok(said() !== null);
});

test("a machine that an operator takes out while the store is lost is out", () => {
  const world = inUse();
  world.loseStore();
  world.ask({ kind: "self", key: hex("9"), told: {} });
  world.ask(operated("joined-host-h2", null));
  assert.deepEqual(Object.keys(book(world).peers), ["host.h1", "host.h3", "placer"]);
  assert.equal(told(world.ask(renew("host.h2", h2))), "no-identity");
  world.loseStore();
  assert.deepEqual(Object.keys(book(world).peers), ["host.h1", "host.h3", "placer"], "also when it is lost again");
});

test("with an older store beside a newer file it is the file that counts: who joined since is known, and who was taken out is out", () => {
  const world = inUse();
  const stored = new Map(world.records);
  world.ask(operated("joined-host-h2", null));
  world.ask(operated("joined-host-h4", host("h4", hex("e"), "10.0.0.14")));
  world.ask({ kind: "enrol", hash: hex("e"), key: hex("5") });
  const { peers, version } = book(world);
  const beside = world.beside();
  world.records = stored;
  world.startWith(beside);
  assert.ok(world.isLost);
  assert.deepEqual([book(world).peers, book(world).version], [peers, version]);
  assert.equal(told(world.ask(renew("host.h4", hex("5")))), "host.h4");
  assert.equal(told(world.ask(renew("host.h2", h2))), "no-identity");
  assert.equal(
    told(world.ask(renew("placer", service))),
    "placer",
    "what a controller had enrolled is as the store has it",
  );
  world.release();
  world.startWith(world.beside());
  assert.ok(!world.isLost);
  assert.ok(!world.records.has("enrolment/joined-host-h2"));
});

test("a first start, and a store that is whole or was put back, are no loss", () => {
  const world = new AuthorityWorld();
  assert.ok(!world.isLost);
  const used = inUse();
  const stored = new Map(used.records);
  const beside = used.beside();
  used.ask(operated("joined-host-h4", host("h4", hex("e"), "10.0.0.14")));
  used.loseStore(beside);
  used.records = stored;
  used.restart();
  assert.ok(!used.isLost);
  used.loseStore(null);
  assert.ok(!used.isLost, "nothing says that there was one");
});
