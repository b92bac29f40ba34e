import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { CurrentKey } from "../current-keys.ts";
import { AuthorityWorld, dawn, enrolment, hex, root, told } from "./authority.testing.ts";
import { isOfLaterLife, type KeyRecord, nextKeyRecord, wasReplaced } from "./key-records.ts";

/** What the authority tells everybody of keys, as names come, go and get others. */
const hour = 3_600_000;
const [token, other, third] = [hex("a"), hex("b"), hex("c")];
const [key, stranger] = [hex("1"), hex("2")];
const later = dawn + 400 * 24 * hour;
const placer = enrolment(token, "root", [["placer", "placer"]], later);
const host = (hash: string) => enrolment(hash, "root", [["host.h1", "host"]], later);
const enrol = (hash: string, by: string) => ({ kind: "enrol", hash, key: by });

const keys = (world: AuthorityWorld): Readonly<Record<string, CurrentKey>> => {
  const answer = world.ask({ kind: "peers", known: -1 });
  assert.ok(answer.kind === "peers");
  return answer.keys;
};
const version = (world: AuthorityWorld): number => {
  const answer = world.ask({ kind: "peers", known: -1 });
  return answer.kind === "peers" ? answer.version : -1;
};
const beginOf = (world: AuthorityWorld, request: object): number => {
  const answer = world.ask(request);
  return answer.kind === "issue" ? (answer.certificates[0]?.validFromMs ?? -1) : assert.fail(told(answer));
};

test("a name's first key is no news; its next one is, from after everything that was issued before", () => {
  const world = new AuthorityWorld();
  world.desireEnrolment(root, "p", placer);
  world.ask(enrol(token, key));
  world.wallMs += hour;
  const last = beginOf(world, { kind: "renew", name: "placer", key });
  assert.deepEqual(keys(world), {});
  world.desireEnrolment(root, "p2", { ...placer, hash: other });
  const before = version(world);
  // The clock was set back meanwhile.
  world.wallMs -= 2 * hour;
  world.ask(enrol(other, stranger));
  assert.deepEqual(keys(world), { placer: { key: stranger, sinceMs: last } });
  assert.equal(version(world), before + 1, "everybody is told");
  world.restart();
  assert.deepEqual(keys(world), { placer: { key: stranger, sinceMs: last } });
  assert.equal(version(world), before + 1);
  // As long as one of before could be valid, and a while longer.
  world.wallMs += 60 * hour;
  world.desireEnrolment(root, "p", null);
  assert.deepEqual(keys(world), {});
});

test("a service that is taken out is shut out; granted anew it goes on with the key that it had, until another shows a token", () => {
  const world = new AuthorityWorld();
  world.desireEnrolment(root, "p", placer);
  world.ask(enrol(token, key));
  world.desireEnrolment(root, "p", null);
  const ended = keys(world).placer;
  assert.equal(ended?.key, null);
  world.desireEnrolment(root, "p", { ...placer, hash: other });
  const again = keys(world).placer;
  assert.equal(again?.key, key);
  assert.ok((again?.sinceMs ?? 0) > (ended?.sinceMs ?? 0), "the later word counts");
  world.ask(enrol(other, stranger));
  assert.equal(keys(world).placer?.key, stranger);
});

test("a host that was removed stays out until its name has shown a new token", () => {
  const world = new AuthorityWorld();
  world.ask({ kind: "enrolment", id: "joined-host-h1", enrolment: host(token) });
  world.ask(enrol(token, key));
  world.ask({ kind: "enrolment", id: "joined-host-h1", enrolment: null });
  assert.equal(keys(world)["host.h1"]?.key, null);
  world.ask({ kind: "enrolment", id: "joined-host-h1", enrolment: host(other) });
  assert.equal(keys(world)["host.h1"]?.key, null, "a token alone lets nobody in");
  world.wallMs += 1000 * 24 * hour;
  world.restart();
  assert.equal(keys(world)["host.h1"]?.key, null, "its key may be pinned by who was dark all the while");
  world.wallMs -= 999 * 24 * hour;
  world.ask({ kind: "enrolment", id: "joined-host-h1", enrolment: { ...host(third), endsAtMs: world.wallMs + hour } });
  world.ask(enrol(third, key));
  assert.equal(keys(world)["host.h1"]?.key, key, "the same machine again");
});

test("a token that replaces another changes nothing before it is shown", () => {
  const world = new AuthorityWorld();
  world.ask({ kind: "enrolment", id: "joined-host-h1", enrolment: host(token) });
  world.ask(enrol(token, key));
  world.ask({ kind: "enrolment", id: "joined-host-h1", enrolment: host(other) });
  assert.deepEqual(keys(world), {});
  world.ask(enrol(other, stranger));
  assert.equal(keys(world)["host.h1"]?.key, stranger);
});

test("identities of the previous version are taken over as they are", () => {
  const world = new AuthorityWorld();
  world.desireEnrolment(root, "p", placer);
  world.ask(enrol(token, key));
  for (const record of [...world.records.keys()]) if (record.startsWith("key/")) world.records.delete(record);
  world.wallMs += hour;
  world.restart();
  assert.deepEqual(keys(world), {});
  world.desireEnrolment(root, "p2", { ...placer, hash: other });
  world.ask(enrol(other, stranger));
  assert.equal(keys(world).placer?.key, stranger, "and the next key is news");
  // The previous version ran in between, and gave the name another key.
  world.records.set("identity/placer", { ...(world.records.get("identity/placer") as object), key: third } as never);
  world.restart();
  assert.equal(keys(world).placer?.key, third);
});

test("an authority that was set back adopts the key of a later certificate, and of no earlier one", () => {
  const world = new AuthorityWorld();
  world.ask({ kind: "enrolment", id: "joined-host-h1", enrolment: host(token) });
  const first = beginOf(world, enrol(token, key));
  const backup = new Map(world.records);
  world.wallMs += hour;
  world.ask({ kind: "enrolment", id: "joined-host-h1", enrolment: host(other) });
  const second = beginOf(world, enrol(other, stranger));
  world.records = backup;
  world.restart();
  world.wallMs += hour;
  const renew = (by: string, beganMs?: number | null) =>
    world.ask({ kind: "renew", name: "host.h1", key: by, beganMs });
  for (const began of [undefined, null, first, world.wallMs + hour])
    assert.equal(told(renew(stranger, began)), "another-key", `${began}`);
  assert.equal(told(renew(stranger, second)), "host.h1");
  assert.equal(told(renew(key, first)), "another-key", "the earlier one is out again");
  assert.deepEqual(keys(world)["host.h1"]?.key, stranger);
  assert.deepEqual(world.published.get("pin/host.h1"), { key: stranger });
  world.restart();
  assert.equal(told(renew(stranger)), "host.h1", "for good");
  assert.ok(world.logs.some(({ event, fields }) => event === "identity/adopted" && fields.peer === "host.h1"));
});

test("an authority that was set back gives no name back to a key of which everybody was told that it was replaced", () => {
  const world = new AuthorityWorld();
  const self = (said: object) => world.ask({ kind: "self", key: third, told: said });
  const grants = (hash: string) =>
    enrolment(
      hash,
      "root",
      [
        ["host.h1", "host"],
        ["agent.h1", "agent"],
        ["placer", "placer"],
      ],
      later,
    );
  self({});
  world.ask({ kind: "enrolment", id: "joined-host-h1", enrolment: grants(token) });
  world.ask(enrol(token, key));
  world.wallMs += 10 * hour;
  const began = beginOf(world, { kind: "renew", name: "host.h1", key });
  const backup = new Map(world.records);
  const setBack = (said: object): void => {
    world.records = new Map(backup);
    world.restart();
    self(said);
  };
  const renew = (name: string, by: string, beganMs: number | null) =>
    told(world.ask({ kind: "renew", name, key: by, beganMs }));
  world.wallMs += 2 * hour;
  world.ask({ kind: "enrolment", id: "joined-host-h1", enrolment: grants(other) });
  const second = beginOf(world, enrol(other, stranger));
  const replaced = keys(world);
  world.wallMs += hour;

  setBack(replaced);
  for (const name of ["host.h1", "agent.h1", "placer"])
    for (const date of [began, null]) assert.equal(renew(name, key, date), "superseded", name);
  assert.equal(told(world.ask(enrol(token, key))), "superseded", "nor by the token that it has spent");
  assert.equal(renew("host.h1", stranger, second), "host.h1", "whoever has the name goes on");
  assert.equal(renew("host.h1", key, began), "another-key");

  // Of one name of several alone.
  setBack({ "agent.h1": replaced["agent.h1"] });
  assert.equal(renew("host.h1", key, began), "host.h1 placer");
  // A new token is the operator's word, and a later one.
  setBack(replaced);
  world.ask({ kind: "enrolment", id: "joined-host-h1", enrolment: host(other) });
  assert.equal(told(world.ask(enrol(other, key))), "host.h1");
  assert.equal(renew("host.h1", key, null), "host.h1");
  assert.equal(told(world.ask(enrol(other, key))), "host.h1", "asked again");
  // What ended: a machine stays out, a service has its key again with its name.
  const ended = Object.fromEntries(Object.entries(replaced).map(([name, each]) => [name, { ...each, key: null }]));
  setBack(ended);
  assert.deepEqual([renew("host.h1", key, began), renew("placer", key, began)], ["superseded", "placer"]);
  // By this clock in the future.
  setBack({ "host.h1": { key: stranger, sinceMs: world.wallMs + 1 } });
  assert.equal(renew("host.h1", key, began).split(" ")[0], "host.h1");
});

test("a key that was replaced cannot take the name back by renewing", () => {
  const world = new AuthorityWorld();
  world.desireEnrolment(root, "p", placer);
  world.ask(enrol(token, key));
  world.wallMs += hour;
  const began = beginOf(world, { kind: "renew", name: "placer", key });
  world.desireEnrolment(root, "p2", { ...placer, hash: other });
  world.ask(enrol(other, stranger));
  assert.equal(told(world.ask({ kind: "renew", name: "placer", key, beganMs: began })), "another-key");
  world.wallMs += hour;
  world.ask({ kind: "renew", name: "placer", key: stranger });
  assert.equal(told(world.ask({ kind: "renew", name: "placer", key, beganMs: began })), "another-key");
});

test("to the millisecond: what is of a later life of this authority, and what everybody was told later than its store knows", () => {
  const record: KeyRecord = { key, last: key, sinceMs: 20, issuedMs: 30 };
  const later = (beganMs: number | null, more: Partial<KeyRecord> = {}, nowMs = 50): boolean =>
    isOfLaterLife({ ...record, ...more }, beganMs, nowMs);
  assert.deepEqual([later(30), later(31), later(50), later(51)], [false, true, true, false]);
  assert.deepEqual([later(40, { sinceMs: 40 }), later(41, { sinceMs: 40 })], [false, true]);
  assert.deepEqual([later(null), later(40, { key: null }), isOfLaterLife(undefined, 40, 50)], [false, false, false]);

  const placer = peerName("placer");
  const replaced = (sinceMs: number, more: Partial<KeyRecord> = {}, by: string | null = stranger): boolean =>
    wasReplaced(placer, key, { ...record, ...more }, new Map([[placer, { key: by, sinceMs }]]), 50);
  assert.deepEqual([replaced(29), replaced(30), replaced(50), replaced(51)], [false, true, true, false]);
  assert.deepEqual([replaced(40, { sinceMs: 40 }), replaced(41, { sinceMs: 40 })], [false, true]);
  assert.deepEqual([replaced(40, {}, key), replaced(40, {}, null)], [false, false]);
  assert.equal(wasReplaced(placer, key, undefined, new Map([[placer, { key: stranger, sinceMs: 1 }]]), 50), true);
});

test("of a name that is nobody's the record goes once nothing that was issued before can be good; of all others it stays", () => {
  const ended: KeyRecord = { key: null, last: key, sinceMs: 20, issuedMs: 10 };
  const facts = { key: null, isGranted: false, isMachine: false, lifetimeMs: 10 } as const;
  assert.equal(nextKeyRecord(ended, { ...facts, nowMs: 21 }), ended);
  assert.equal(nextKeyRecord(ended, { ...facts, nowMs: 40 }), ended);
  assert.equal(nextKeyRecord(ended, { ...facts, nowMs: 41 }), undefined);
  assert.equal(nextKeyRecord({ ...ended, issuedMs: 21 }, { ...facts, nowMs: 41 })?.last, key);
  assert.equal(nextKeyRecord(ended, { ...facts, isMachine: true, nowMs: 41 }), ended);
  const had: KeyRecord = { ...ended, key };
  assert.equal(nextKeyRecord(had, { ...facts, key, nowMs: 41 }), had);
});
