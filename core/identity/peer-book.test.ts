import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import { AuthorityWorld, dawn, enrolment, hex, root } from "./authority/authority.testing.ts";
import type { AuthorityAnswer } from "./authority/requests.ts";

const later = dawn + 3_600_000;
const [token, other] = [hex("a"), hex("b")];
const [key, stranger] = [hex("1"), hex("2")];
type Ports = { readonly distribution: number; readonly http: number };
const at = (name: string, role: string, address: string, hash: string, ports: Ports | null = null) => {
  const desire = enrolment(hash, "root", [[name, role]], later);
  const grants = desire.grants.map((grant) => ({
    ...grant,
    addresses: [address],
    ...(ports === null ? {} : { ports }),
  }));
  return { ...desire, grants };
};
const placer = (address: string, hash = token) => at("placer", "placer", address, hash);
const bookIn = (answer: AuthorityAnswer | null) => {
  assert.ok(answer?.kind === "peers", JSON.stringify(answer));
  return answer;
};
const book = (world: AuthorityWorld, known = -1) => bookIn(world.ask({ kind: "peers", known }));

test("the book has whom an enrolment names, at its first address and its ports, and whoever is fixed", () => {
  const world = new AuthorityWorld({ fixedPeers: { authority: "10.0.0.31:7124:7125", "host.h1": "10.0.1.9" } });
  assert.deepEqual(book(world).peers, { authority: "10.0.0.31:7124:7125", "host.h1": "10.0.1.9" });
  const ports = { distribution: 7116, http: 7117 };
  world.desireEnrolment(root, "vm-1", at("placer", "placer", "10.0.0.32", token, ports));
  world.ask({ kind: "enrolment", id: "h1", enrolment: at("host.h1", "host", "10.0.1.1", other) });
  world.desireEnrolment(root, "bad", at("placer.2", "storage-manager", "10.0.0.33", hex("c")));
  world.desireEnrolment(root, "vm-2", enrolment(hex("d"), "web.shop", [["controller.web.shop", "controller"]], later));
  world.desireEnrolment(root, "vm-3", {
    ...placer("10.0.0.1", hex("e")),
    grants: [{ name: "ha-manager", role: "ha-manager", addresses: [] }],
  });
  assert.deepEqual(book(world).peers, {
    authority: "10.0.0.31:7124:7125",
    "controller.web.shop": "10.0.0.13",
    "host.h1": "10.0.1.1",
    placer: "10.0.0.32:7116:7117",
  });
  world.desireEnrolment(root, "vm-1", null);
  world.ask({ kind: "enrolment", id: "h1", enrolment: null });
  const { peers } = book(world);
  assert.deepEqual([peers.placer, peers["host.h1"]], [undefined, "10.0.1.9"]);
});

test("who knows the present version is answered when there is another, everybody else at once", () => {
  const world = new AuthorityWorld();
  world.desireEnrolment(root, "p", placer("10.0.0.13"));
  const { version } = book(world);
  const [one, two] = [
    world.askLater({ kind: "peers", known: version }),
    world.askLater({ kind: "peers", known: version }),
  ];
  world.ask({ kind: "enrol", hash: token, key });
  world.ask({ kind: "renew", name: "placer", key });
  world.desireEnrolment(root, "p", { ...placer("10.0.0.13"), endsAtMs: later + 1 });
  assert.deepEqual([one(), two()], [null, null], "nobody has moved");
  world.desireEnrolment(root, "p", placer("10.0.0.14"));
  assert.equal(bookIn(one()).peers.placer, "10.0.0.14");
  assert.deepEqual(one(), two());
  assert.equal(bookIn(one()).version, version + 1);
  for (const known of [version, version + 5, "x", undefined, null])
    assert.deepEqual(world.askLater({ kind: "peers", known })(), one(), `known ${known}`);
});

test("of a controller the book says whose it is, and a later cell of its name is news", () => {
  const world = new AuthorityWorld();
  const web = (address: string, hash: string, cellUid?: string) => {
    const desire = at("controller.web", "controller", address, hash);
    const grants = desire.grants.map((grant) => ({ ...grant, ...(cellUid === undefined ? {} : { cellUid }) }));
    return { ...desire, cell: "web", grants };
  };
  world.desireEnrolment(root, "vm-1", web("10.0.0.13", token));
  assert.deepEqual(book(world).cells, {}, "an earlier root controller says nothing");
  world.desireEnrolment(root, "vm-1", web("10.0.0.13", token, "c-8"));
  const { version, cells } = book(world);
  assert.deepEqual(cells, { "controller.web": "c-8" });
  const next = world.askLater({ kind: "peers", known: version });
  world.desireEnrolment(root, "vm-2", web("10.0.0.13", other, "c-9"));
  assert.equal(next(), null, "as long as the former one has its name");
  world.desireEnrolment(root, "vm-1", null);
  const told = bookIn(next());
  assert.deepEqual([told.version, told.cells], [version + 1, { "controller.web": "c-9" }]);
});

test("a restart keeps the version of a book that is the same, and no version ever names two books", () => {
  const fixedPeers = { "host.h1": "10.0.1.1" };
  const world = new AuthorityWorld({ fixedPeers });
  world.desireEnrolment(root, "p", placer("10.0.0.13"));
  const before = book(world);
  world.restart();
  const held = world.askLater({ kind: "peers", known: before.version });
  assert.equal(held(), null);
  world.desireEnrolment(root, "p", placer("10.0.0.14"));
  const moved = bookIn(held());
  world.desireEnrolment(root, "p", placer("10.0.0.13"));
  const back = book(world);
  assert.deepEqual(back.peers, before.peers);
  assert.deepEqual([moved.version, back.version], [before.version + 1, before.version + 2]);
  const changed = new AuthorityWorld({ fixedPeers: { "host.h1": "10.0.1.2" } });
  changed.records = world.records;
  for (const [desire, value] of world.desires) changed.desires.set(desire, value);
  changed.restart();
  assert.deepEqual(book(changed), {
    ...back,
    version: back.version + 1,
    peers: { ...back.peers, "host.h1": "10.0.1.2" },
  });
});

test("while two enrolments grant a name it is where its key is, and before that where it was", () => {
  const world = new AuthorityWorld();
  const where = () => book(world).peers.placer;
  world.desireEnrolment(root, "b", placer("10.0.0.14", other));
  world.desireEnrolment(root, "a", placer("10.0.0.13"));
  assert.equal(where(), "10.0.0.13", "the first one's, as long as nobody has it");
  world.ask({ kind: "enrol", hash: other, key });
  assert.equal(where(), "10.0.0.14");
  world.desireEnrolment(root, "b", placer("10.0.0.14", hex("c")));
  assert.equal(where(), "10.0.0.14", "a new token for the same place");
  world.ask({ kind: "enrol", hash: token, key: stranger });
  assert.equal(where(), "10.0.0.13");
  world.restart();
  assert.equal(where(), "10.0.0.13");
  world.desireEnrolment(root, "a", null);
  assert.equal(where(), "10.0.0.14");
  world.desireEnrolment(root, "b", placer("10.0.0.15", hex("d")));
  assert.equal(where(), "10.0.0.15", "a VM that was given another address, and keeps its key");
});

test("a service VM's UID with a number behind it is an enrolment's id", () => {
  const world = new AuthorityWorld();
  for (const id of ["c0ffee12-17-3", "c0ffee12-17-2-10"]) {
    assert.ok(world.accepts(root, `enrolment/${id}`));
    world.desireEnrolment(
      root,
      id,
      at("presence.1", "presence", "10.0.0.31", hex("f"), { distribution: 7118, http: 7119 }),
    );
    assert.equal(book(world).peers["presence.1"], "10.0.0.31:7118:7119");
    world.desireEnrolment(root, id, null);
  }
  assert.ok(!world.accepts(peerName("host.h1"), "enrolment/c0ffee12-17-3"));
});
