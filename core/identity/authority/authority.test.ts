import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import { AuthorityWorld, dawn, enrolment, hex, root, self, told } from "./authority.testing.ts";
import { equalHashes } from "./grants.ts";

const hour = 3_600_000;
const [token, other] = [hex("a"), hex("b")];
const [key, stranger] = [hex("1"), hex("2")];
const later = dawn + hour;
const placer = enrolment(token, "root", [["placer", "placer"]], later);
const enrol = (hash = token, by = key) => ({ kind: "enrol", hash, key: by });
const renew = (name = "placer", by = key) => ({ kind: "renew", name, key: by });

test("a token gives its first key certificates of its names, for a day, and is then spent", () => {
  const world = new AuthorityWorld();
  const names: [string, string][] = [
    ["host.h1", "host"],
    ["agent.s1", "agent"],
  ];
  world.desireEnrolment(root, "h1", enrolment(token, "root", names, later));
  assert.deepEqual(world.published.get("controller.root/enrolment/h1"), {
    phase: "waiting",
    reason: "nobody has shown the token yet",
    key: null,
  });
  const answer = world.ask(enrol());
  assert.ok(answer.kind === "issue");
  const fields = { cell: "root", addresses: ["10.0.0.13"], validFromMs: dawn - hour, validToMs: dawn + 24 * hour };
  assert.deepEqual(answer.certificates, [
    { name: "host.h1", role: "host", ...fields },
    { name: "agent.s1", role: "agent", ...fields },
  ]);
  assert.deepEqual(world.published.get("controller.root/enrolment/h1"), { phase: "ready", reason: null, key });
  assert.equal(told(world.ask(enrol(token, stranger))), "spent");
  assert.equal(told(world.ask(enrol())), "host.h1 agent.s1", "its own key, after a lost answer");
  assert.equal(told(world.ask(renew("host.h1"))), "host.h1 agent.s1", "one machine, one key");
});

test("whoever desires an enrolment hears that its token was refused, until its key is served again", () => {
  const world = new AuthorityWorld();
  world.desireEnrolment(root, "p", placer);
  const said = () => world.published.get("controller.root/enrolment/p");
  world.ask(enrol(other));
  assert.deepEqual(said(), { phase: "waiting", reason: "nobody has shown the token yet", key: null }, "not this one");
  world.ask(enrol());
  world.ask(enrol(token, stranger));
  assert.deepEqual(said(), { phase: "failed", reason: "the token was spent by another key", key });
  world.ask(renew());
  assert.deepEqual(said(), { phase: "ready", reason: null, key });
  world.wallMs = later + 1;
  world.ask(enrol());
  assert.deepEqual(said(), { phase: "failed", reason: "the token's time is over", key });
  world.desireEnrolment(root, "p", { ...placer, hash: other });
  assert.deepEqual(said(), { phase: "waiting", reason: "nobody has shown the token yet", key: null });
});

test("unknown, expired and malformed tokens get nothing", () => {
  const world = new AuthorityWorld();
  world.desireEnrolment(root, "p", placer);
  assert.equal(told(world.ask(enrol(other))), "unknown");
  for (const bad of [{ ...enrol(), key: "x" }, { ...enrol(), hash: "" }, { kind: "enrol" }, { kind: "renew" }, {}])
    assert.equal(told(world.ask(bad)), "malformed");
  world.wallMs = later;
  assert.equal(told(world.ask(enrol())), "placer", "the end itself belongs to its time");
  world.wallMs = later + 1;
  assert.equal(told(world.ask(enrol())), "expired", "also for the key that spent it");
  assert.equal(told(world.ask(renew())), "placer", "what it granted goes on");
});

test("a certificate is renewed for its key as long as an enrolment grants the name", () => {
  const world = new AuthorityWorld();
  world.desireEnrolment(root, "p", placer);
  assert.equal(told(world.ask(renew())), "no-identity");
  world.ask(enrol());
  world.wallMs += 400 * 24 * hour;
  assert.equal(told(world.ask(renew())), "placer");
  assert.equal(told(world.ask(renew("placer", stranger))), "another-key");
  world.desireEnrolment(root, "p2", { ...placer, hash: other });
  world.desireEnrolment(root, "p", null);
  assert.equal(told(world.ask(renew())), "placer", "another one grants it");
  world.desireEnrolment(root, "p2", null);
  assert.equal(told(world.ask(renew())), "no-identity");
  assert.equal(told(world.ask(enrol())), "unknown");
  assert.ok(world.logs.some(({ event, fields }) => event === "identity/ended" && fields.peer === "placer"));
});

test("a newer token brings a newer key, and the older one is out", () => {
  const world = new AuthorityWorld();
  world.desireEnrolment(root, "p", placer);
  world.ask(enrol());
  world.desireEnrolment(root, "p2", { ...placer, hash: other });
  assert.equal(told(world.ask(enrol(other, stranger))), "placer");
  assert.equal(told(world.ask(renew("placer", key))), "another-key");
  assert.equal(told(world.ask(enrol(token, key))), "superseded");
  assert.equal(told(world.ask(renew("placer", stranger))), "placer");
});

test("a document that changes: a new token is unspent, a new address goes into the next certificate", () => {
  const world = new AuthorityWorld();
  world.desireEnrolment(root, "p", placer);
  world.ask(enrol());
  const moved = { ...placer, grants: placer.grants.map((grant) => ({ ...grant, addresses: ["10.0.0.99"] })) };
  world.desireEnrolment(root, "p", moved);
  const answer = world.ask(renew());
  assert.ok(answer.kind === "issue");
  assert.deepEqual(answer.certificates[0]?.addresses, ["10.0.0.99"]);
  world.desireEnrolment(root, "p", { ...placer, hash: other });
  assert.equal(told(world.ask(enrol())), "unknown");
  assert.equal(told(world.ask(enrol(other, stranger))), "placer");
});

test("who may have whom enrolled", () => {
  const parents: Readonly<Record<string, string>> = { child: "shop", grandchild: "child", shop: "root" };
  const world = new AuthorityWorld({ parentOf: (cell) => parents[cell] ?? null });
  const shop = peerName("controller.shop");
  let number = 0;
  const may = (from: typeof shop, cell: string, name: string, role: string): boolean => {
    number += 1;
    const hash = number.toString(16).padStart(64, "0");
    world.desireEnrolment(from, `e${number}`, enrolment(hash, cell, [[name, role]], later, `10.0.1.${number}`));
    const actual = world.published.get(`${from}/enrolment/e${number}`) as { phase: string; reason: string };
    assert.equal(told(world.ask(enrol(hash))), actual.phase === "failed" ? "unknown" : name);
    if (actual.phase === "failed") assert.match(actual.reason, /^.{20,200}$/);
    return actual.phase !== "failed";
  };
  const rootNames: [string, string][] = [
    ["placer", "placer"],
    ["placer.2", "placer"],
    ["storage-manager", "storage-manager"],
    ["presence.1", "presence"],
    ["host.h1", "host"],
    ["agent.s1", "agent"],
    ["gateway", "gateway"],
    ["directory", "directory"],
    ["cell-manager", "cell-manager"],
    ["tenancy", "tenancy"],
    ["address-manager", "address-manager"],
    ["dns-manager", "dns-manager"],
    ["controller.root", "controller"],
  ];
  for (const [name, role] of rootNames) {
    assert.ok(may(root, "root", name, role), name);
    assert.ok(!may(shop, "root", name, role), `${name} for shop`);
    assert.ok(!may(shop, "shop", name, role), `${name} in shop`);
    assert.ok(!may(root, "shop", name, role), `${name} in shop, by root`);
  }
  assert.ok(may(root, "shop", "controller.shop", "controller"));
  assert.ok(may(root, "web.shop", "controller.web.shop", "controller"));
  assert.ok(!may(root, "web.shop", "controller.shop", "controller"));
  assert.ok(may(shop, "child", "controller.child", "controller"));
  assert.ok(may(shop, "child", "gateway.child", "gateway"));
  assert.ok(may(shop, "shop", "gateway.shop", "gateway"));
  for (const [cell, name, role] of [
    ["shop", "controller.shop", "controller"],
    ["grandchild", "controller.grandchild", "controller"],
    ["child", "controller.shop", "controller"],
    ["shop", "gateway.child", "gateway"],
    ["nobody", "controller.nobody", "controller"],
  ] as const)
    assert.ok(!may(shop, cell, name, role), name);
  for (const [name, role] of [
    ["authority", "authority"],
    ["authority", "placer"],
    ["placer.0", "placer"],
    ["placerx", "placer"],
    ["host.h1.x", "host"],
    ["host.", "host"],
    ["controller.shop", "constructor"],
    ["storage-manager", "placer"],
  ] as const)
    assert.ok(!may(root, "root", name, role), name);
});

test("an address that another has is no cell's to give, whoever was first; what is given back may be had", () => {
  const parents: Readonly<Record<string, string>> = { a: "shop", b: "other", c: "shop" };
  const world = new AuthorityWorld({
    parentOf: (cell) => parents[cell] ?? null,
    fixedPeers: { authority: "10.0.0.31:7100:7101" },
  });
  const [shop, other] = [peerName("controller.shop"), peerName("controller.other")];
  const want = (from: typeof shop, id: string, cell: string, address: string): void =>
    world.desireEnrolment(from, id, enrolment(hex(id), cell, [[`controller.${cell}`, "controller"]], later, address));
  const said = (from: typeof shop, id: string): string => {
    const actual = world.published.get(`${from}/enrolment/${id}`) as {
      readonly phase: string;
      readonly reason: string;
    };
    return `${actual?.phase}: ${actual?.reason}`;
  };
  want(root, "1", "shop", "10.0.3.1");
  want(other, "2", "b", "10.0.3.2");
  for (const [address, holder] of [
    ["10.0.3.1", "controller.shop"],
    ["10.0.3.2", "controller.b"],
    ["10.0.0.31", "authority"],
  ] as const) {
    want(shop, "3", "a", address);
    assert.equal(
      said(shop, "3"),
      `failed: ${address} is the address of "${holder}": "controller.a" cannot be enrolled there`,
    );
    assert.equal(told(world.ask(enrol(hex("3")))), "unknown");
  }
  want(shop, "3", "a", "10.0.3.3");
  assert.match(said(shop, "3"), /^waiting/);
  // Of one client's own names several may be in one place. Whoever was first there gives way to the cloud's own.
  want(shop, "4", "c", "10.0.3.3");
  assert.match(said(shop, "4"), /^waiting/);
  want(root, "5", "other", "10.0.3.3");
  assert.match(said(shop, "3"), /^failed: 10.0.3.3 is the address of "controller.other"/);
  world.restart();
  assert.match(said(shop, "3"), /^failed/);
  world.desireEnrolment(root, "5", null);
  assert.match(said(shop, "3"), /^waiting/);
  assert.equal(told(world.ask(enrol(hex("3")))), "controller.a");
});

test("malformed enrolments grant nothing and say so", () => {
  const world = new AuthorityWorld();
  const [grant] = placer.grants;
  for (const bad of [
    {},
    7,
    { ...placer, hash: "short" },
    { ...placer, cell: "Root" },
    { ...placer, grants: [] },
    { ...placer, grants: [grant, grant] },
    { ...placer, cell: "web..shop" },
    { ...placer, cell: `${"a".repeat(40)}.${"b".repeat(40)}` },
    { ...placer, grants: [{ ...grant, addresses: ["localhost"] }] },
    { ...placer, grants: [{ ...grant, ports: { distribution: 7116 } }] },
    { ...placer, grants: [{ ...grant, ports: { distribution: 7116, http: 70_000 } }] },
    { ...placer, endsAtMs: "soon" },
    { ...placer, grants: Array.from({ length: 17 }, (_, at) => ({ ...grant, name: `placer.${at + 1}` })) },
  ]) {
    world.desireEnrolment(root, "bad", bad);
    const actual = world.published.get("controller.root/enrolment/bad") as { phase: string; reason: string };
    assert.deepEqual([actual.phase, actual.reason.slice(0, 27)], ["failed", "the enrolment is malformed;"]);
  }
  world.desireEnrolment(root, "bad", null);
  assert.equal(world.published.size, 0);
});

test("the operator's enrolments are the authority's own, and outlive it", () => {
  const world = new AuthorityWorld();
  const join = { kind: "enrolment", id: "h1", enrolment: enrolment(token, "root", [["host.h1", "host"]], later) };
  assert.equal(told(world.ask(join)), "taken");
  world.restart();
  assert.equal(told(world.ask(enrol())), "host.h1");
  assert.equal(told(world.ask({ ...join, enrolment: { ...join.enrolment, cell: "shop" } })), "not-granted");
  assert.equal(told(world.ask({ ...join, id: "../x" })), "not-granted");
  world.restart();
  assert.equal(told(world.ask(renew("host.h1"))), "host.h1", "what was refused changed nothing");
  assert.equal(told(world.ask({ ...join, enrolment: null })), "taken");
  assert.equal(told(world.ask(renew("host.h1"))), "no-identity");
  assert.deepEqual([...world.records.keys()], ["book", "key/host.h1", "gossip"]);
});

test("keys of machines and of the root controller are published to exactly these", () => {
  const world = new AuthorityWorld();
  world.desireEnrolment(
    root,
    "h",
    enrolment(
      token,
      "root",
      [
        ["host.h1", "host"],
        ["agent.s1", "agent"],
      ],
      later,
    ),
  );
  world.desireEnrolment(root, "p", { ...placer, hash: other });
  assert.equal(told(world.ask({ kind: "self", key: hex("9") })), "taken");
  world.ask(enrol());
  world.ask(enrol(other, stranger));
  const pins = () => [...world.published].filter(([name]) => name.startsWith("pin/"));
  assert.deepEqual(pins(), [
    ["pin/authority", { key: hex("9") }],
    ["pin/host.h1", { key }],
    ["pin/agent.s1", { key }],
  ]);
  const all = { authority: hex("9"), "host.h1": key, "agent.s1": key };
  assert.deepEqual(world.ask({ kind: "pins" }), { kind: "pins", pins: all });
  for (const peer of ["host.h2", "controller.root", "authority"])
    assert.ok(world.entitled(peerName(peer), "pin/host.h1"), peer);
  for (const peer of ["controller.shop", "agent.s1", "placer", "gateway", "host.h2.x"])
    assert.ok(!world.entitled(peerName(peer), "pin/host.h1"), peer);
  assert.ok(world.entitled(root, "controller.root/enrolment/h"));
  assert.ok(!world.entitled(peerName("controller.shop"), "controller.root/enrolment/h"));
  world.restart();
  const own = ["pin/authority", { key: hex("9") }];
  assert.deepEqual(pins(), [["pin/host.h1", { key }], ["pin/agent.s1", { key }], own]);
  world.desireEnrolment(root, "h", null);
  assert.deepEqual(pins(), [own]);
});

test("of which cell a controller is, its enrolment says, for the key that has the name", () => {
  const world = new AuthorityWorld();
  const shop = (cellUid?: string) => ({
    ...enrolment(token, "shop", [["controller.shop", "controller"]], later),
    ...(cellUid === undefined
      ? {}
      : { grants: [{ name: "controller.shop", role: "controller", addresses: ["10.0.0.13"], cellUid }] }),
  });
  const cellUid = (by: string) => world.ask({ kind: "cell-uid", name: peerName("controller.shop"), key: by });
  const of = (uid: string | null) => ({ kind: "cell-uid", cellUid: uid });
  world.desireEnrolment(root, "vm-1", shop());
  assert.deepEqual(cellUid(key), of(null), "nobody");
  world.ask(enrol());
  assert.deepEqual(cellUid(key), of(null), "an earlier root controller says nothing");
  world.desireEnrolment(root, "vm-1", shop("c-8"));
  assert.deepEqual(cellUid(key), of("c-8"));
  world.restart();
  assert.deepEqual(cellUid(key), of("c-8"));
  assert.deepEqual(cellUid(stranger), of(null));
  // Another cell under the name: until it enrols, the name is the former one's.
  world.desireEnrolment(root, "vm-1", null);
  assert.deepEqual(cellUid(key), of(null));
  world.desireEnrolment(root, "vm-2", { ...shop("c-9"), hash: other });
  world.ask(enrol(other, stranger));
  assert.deepEqual(cellUid(stranger), of("c-9"));
  assert.deepEqual(cellUid(key), of(null));
});

test("only controllers have anything enrolled, under keys that are ids", () => {
  const world = new AuthorityWorld();
  assert.ok(world.accepts(root, "enrolment/vm-1"));
  for (const peer of ["host.h1", "placer", "gateway", "authority", "controller."])
    assert.ok(!world.accepts(peerName(peer), "enrolment/vm-1"), peer);
  for (const id of ["enrolment/", "enrolment/a/b", "identity/x", `enrolment/${"x".repeat(65)}`])
    assert.ok(!world.accepts(root, id), id);
  world.desireEnrolment(self, "x", null);
});

test("refusals are counted, and logged once a minute for each reason", () => {
  const world = new AuthorityWorld();
  for (let count = 0; count < 100; count += 1) world.ask(enrol());
  world.ask(renew());
  world.ms += 59_999;
  world.ask(enrol());
  world.ms += 1;
  world.ask(enrol());
  const lines = world.logs.filter(({ event }) => event === "identity/refused").map(({ fields }) => fields);
  assert.deepEqual(
    lines.map(({ reason, count }) => [reason, count]),
    [
      ["unknown", 1],
      ["no-identity", 1],
      ["unknown", 102],
    ],
  );
  const counts = world.measured("cells_identity_refused_total").filter(({ value }) => value > 0);
  assert.deepEqual(counts, [
    { value: 102, labels: { reason: "unknown" } },
    { value: 1, labels: { reason: "no-identity" } },
  ]);
  assert.ok(!JSON.stringify(world.logs).includes(token), "no line holds what a token could be recognized by");
});

test("two enrolments with one token are good for nothing", () => {
  const world = new AuthorityWorld();
  world.desireEnrolment(root, "p", placer);
  world.desireEnrolment(root, "q", enrolment(token, "root", [["placer.2", "placer"]], later));
  assert.equal(told(world.ask(enrol())), "not-granted");
  world.desireEnrolment(root, "q", null);
  assert.equal(told(world.ask(enrol())), "placer");
});

test("a client's enrolments are bounded, and room comes back", () => {
  const world = new AuthorityWorld();
  const desire = (at: number) => enrolment(at.toString(16).padStart(64, "0"), "root", [["placer", "placer"]], later);
  for (let at = 0; at < 2049; at += 1) world.desireEnrolment(root, `e${at}`, desire(at));
  const actual = world.published.get("controller.root/enrolment/e2048") as { phase: string; reason: string };
  assert.match(actual.reason, /has 2048 enrolments already/);
  world.desireEnrolment(root, "e0", null);
  world.desireEnrolment(root, "e2048", desire(2048));
  assert.equal(told(world.ask(enrol(desire(2048).hash))), "placer");
});

test("hashes are compared as a whole", () => {
  assert.ok(equalHashes(token, token));
  for (const at of [0, 31, 63]) assert.ok(!equalHashes(token, `${token.slice(0, at)}b${token.slice(at + 1)}`));
  assert.ok(!equalHashes(token, token.slice(1)));
});

test("what stands at the way in has its name for the outside in its next certificate, as long as the root cell hands names", () => {
  const primary = peerName("controller.primary");
  const caas = "personality.caas";
  const { grants, ...rest } = enrolment(token, "primary", [[caas, caas]], later);
  const world = new AuthorityWorld();
  const found = (asked: object): readonly string[] => {
    const answer = world.ask(asked);
    return answer.kind === "issue" ? (answer.certificates[0]?.addresses ?? []) : assert.fail(told(answer));
  };
  world.desire(root, "entrance/primary", { address: "10.0.0.40" });
  const own = grants.map((grant) => ({ ...grant, addresses: ["10.0.0.40"] }));
  world.desireEnrolment(primary, "g", { ...rest, grants: own });
  assert.deepEqual(found(enrol()), ["10.0.0.40"]);
  world.desire(root, "entrance/primary", { address: "10.0.0.40", zone: "cloud.example.org" });
  assert.deepEqual(world.published.get("entrance/primary"), { address: "10.0.0.40" }, "hosts need no more");
  assert.deepEqual(found(renew(caas)), ["10.0.0.40", "caas.cloud.example.org"]);
  // An operator's own certificate for the page may be of the gateway's name, and the installation's own names come before that.
  const gateway = enrolment(hex("7"), "primary", [["gateway", "gateway"]], later);
  const its = gateway.grants.map((grant) => ({ ...grant, addresses: ["10.0.0.40"] }));
  world.desireEnrolment(primary, "w", { ...gateway, grants: its });
  assert.deepEqual(found(enrol(hex("7"), hex("6"))), ["10.0.0.40"]);
  // Nobody else's certificate has a name there, wherever he is.
  const theirs = enrolment(other, "shop", [["controller.shop", "controller"]], later);
  world.desireEnrolment(root, "s", theirs);
  world.desire(root, "entrance/shop", { address: "10.0.0.13", zone: "cloud.example.org" });
  assert.deepEqual(found(enrol(other, stranger)), ["10.0.0.13"]);
  world.desire(root, "entrance/primary", { address: "10.0.0.40" });
  assert.deepEqual(found(renew(caas)), ["10.0.0.40"]);
});

test("the operator's gateway is enrolled by the child that the root controller lets have it, at that address", () => {
  const [primary, shop] = [peerName("controller.primary"), peerName("controller.shop")];
  const at = (address: string, role = "gateway", name = "gateway", cell = "primary") => {
    const { grants, ...rest } = enrolment(token, cell, [[name, role]], later);
    return { ...rest, grants: grants.map((grant) => ({ ...grant, addresses: [address] })) };
  };
  const world = new AuthorityWorld();
  const phase = (from = primary) =>
    (world.published.get(`${from}/enrolment/g`) as { readonly phase: string } | undefined)?.phase;
  // Whichever is heard first.
  world.desireEnrolment(primary, "g", at("10.0.0.40"));
  assert.equal(phase(), "failed");
  assert.equal(told(world.ask(enrol())), "unknown");
  for (const from of [primary, shop]) world.desire(from, "entrance/primary", { address: "10.0.0.40" });
  assert.equal(phase(), "failed", "nobody lets himself in");
  world.desire(root, "entrance/primary", { address: "10.0.0.40" });
  assert.deepEqual(world.published.get("entrance/primary"), { address: "10.0.0.40" });
  assert.equal(phase(), "waiting");
  assert.equal(told(world.ask(enrol())), "gateway");
  for (const wrong of [
    at("10.0.0.31"),
    at("10.0.0.40", "placer", "placer"),
    at("10.0.0.40", "gateway", "controller.root"),
    at("10.0.0.40", "gateway", "gateway", "root"),
  ]) {
    world.desireEnrolment(primary, "g", wrong);
    assert.equal(phase(), "failed", JSON.stringify(wrong));
  }
  // A door beside it, under its own name, at the same address alone.
  const caas = "personality.caas";
  world.desireEnrolment(primary, "g", at("10.0.0.40", caas, caas));
  assert.equal(phase(), "waiting");
  for (const wrong of [
    at("10.0.0.41", caas, caas),
    at("10.0.0.40", caas, "gateway"),
    at("10.0.0.40", "gateway", caas),
    at("10.0.0.40", caas, "personality.primary"),
    at("10.0.0.40", "personality.other", "personality.other"),
    at("10.0.0.40", caas, caas, "shop"),
  ]) {
    world.desireEnrolment(primary, "g", wrong);
    assert.equal(phase(), "failed", JSON.stringify(wrong));
  }
  world.desireEnrolment(shop, "g", at("10.0.0.40", caas, caas, "shop"));
  assert.equal(phase(shop), "failed");
  world.desireEnrolment(shop, "g", at("10.0.0.40", "gateway", "gateway", "shop"));
  world.desireEnrolment(shop, "g", at("10.0.0.40"));
  assert.equal(phase(shop), "failed");
  world.desireEnrolment(primary, "g", at("10.0.0.40"));
  assert.equal(told(world.ask(enrol())), "gateway");
  world.restart();
  assert.deepEqual(world.published.get("entrance/primary"), { address: "10.0.0.40" });
  assert.equal(phase(), "ready");
  assert.equal(told(world.ask(renew("gateway"))), "gateway");
  world.desire(root, "entrance/primary", null);
  assert.equal(world.published.has("entrance/primary"), false);
  assert.equal(phase(), "failed");
  assert.equal(told(world.ask(renew("gateway"))), "no-identity", "what was granted ends with the right to it");
});
