import assert from "node:assert/strict";
import { test } from "node:test";
import type { Ring } from "../gossip-ring.ts";
import { AuthorityWorld, dawn, enrolment, hex } from "./authority.testing.ts";

/** How the authority changes the key of hosts' datagrams. */
const later = dawn + 86_400_000;
const ring = (oldest: number, send: number, newest: number): Ring => ({ oldest, send, newest });
const join = (world: AuthorityWorld, name: string, digit: string, key = digit): void => {
  const desire = enrolment(hex(digit), "root", [[`host.${name}`, "host"]], later, `10.0.1.${Number(digit)}`);
  world.ask({ kind: "enrolment", id: `joined-host-${name}`, enrolment: desire });
  world.ask({ kind: "enrol", hash: hex(digit), key: hex(key) });
};
const leave = (world: AuthorityWorld, name: string): void =>
  void world.ask({ kind: "enrolment", id: `joined-host-${name}`, enrolment: null });
const says = (world: AuthorityWorld, name: string, has: Ring): Ring => {
  const answer = world.ask({ kind: "gossip", host: `host.${name}`, has });
  return answer.kind === "gossip" ? answer.gossip : assert.fail();
};
const turn = (world: AuthorityWorld, gone: readonly string[] = []): Ring => {
  const answer = world.ask({ kind: "gossip-turn", gone });
  return answer.kind === "gossip" ? answer.gossip : assert.fail();
};
const told = (world: AuthorityWorld): Ring => {
  const answer = world.ask({ kind: "peers", known: -1 });
  return answer.kind === "peers" ? answer.gossip : assert.fail();
};
const three = (): AuthorityWorld => {
  const world = new AuthorityWorld();
  for (const [at, name] of ["h1", "h2", "h3"].entries()) join(world, name, `${at + 1}`);
  return world;
};

test("a host that leaves, or is replaced, brings the next key; joining and renewing do not", () => {
  const world = three();
  world.ask({ kind: "renew", name: "host.h1", key: hex("1") });
  assert.deepEqual(told(world), ring(0, 0, 0));
  leave(world, "h3");
  assert.deepEqual(told(world), ring(0, 0, 1));
  const other = three();
  join(other, "h3", "4");
  assert.deepEqual(told(other), ring(0, 0, 1));
});

test("both steps wait for every host that is there, say for whom, and outlive the authority", () => {
  const world = three();
  leave(world, "h3");
  assert.deepEqual(turn(world), ring(0, 0, 1));
  const waits = world.logs.filter(({ event }) => event === "gossip/waits").map(({ fields }) => fields.reason);
  assert.deepEqual(waits, ["for host.h1, host.h2"]);
  says(world, "h1", ring(0, 0, 1));
  assert.deepEqual(turn(world), ring(0, 0, 1), "the other one is of the previous version, say");
  says(world, "h2", ring(0, 0, 1));
  assert.deepEqual(turn(world), ring(0, 1, 1));
  assert.deepEqual(told(world), ring(0, 1, 1), "everybody hears of it");
  world.restart();
  assert.deepEqual(turn(world), ring(0, 1, 1));
  says(world, "h1", ring(0, 1, 1));
  assert.deepEqual(turn(world, ["host.h2"]), ring(1, 1, 1), "one that is gone is not waited for");
  assert.ok(world.logs.some(({ event, fields }) => event === "gossip/rotated" && fields.epoch === 1));
  assert.equal(turn(world).newest, 1);
});

test("who leaves during a change has seen the next key, so another one follows", () => {
  const world = three();
  leave(world, "h3");
  leave(world, "h2");
  assert.deepEqual(told(world), ring(0, 0, 1));
  says(world, "h1", ring(0, 0, 1));
  turn(world);
  world.restart();
  says(world, "h1", ring(0, 1, 1));
  assert.deepEqual(turn(world), ring(1, 1, 2));
});

test("an authority that was set back goes on from the latest key that a host has, however far, by the same steps", () => {
  const world = three();
  assert.deepEqual(says(world, "h1", ring(130, 130, 130)), ring(0, 0, 0));
  assert.deepEqual(turn(world), ring(0, 0, 130), "others may be new, with the first key");
  for (const name of ["h2", "h3"]) says(world, name, ring(0, 0, 130));
  assert.deepEqual(turn(world), ring(0, 130, 130));
  for (const name of ["h2", "h3"]) says(world, name, ring(0, 130, 130));
  assert.deepEqual(turn(world), ring(130, 130, 131), "who left meanwhile has that key");
  assert.deepEqual(told(world), ring(130, 130, 131));
});

test("words of hosts are written once a turn at most, of those in the book, and change no change", () => {
  const world = three();
  const before = JSON.stringify([...world.records]);
  for (let at = 1; at < 100; at += 1) says(world, "h3", ring(0, 0, at));
  says(world, "h9", ring(0, 0, 1000));
  assert.equal(JSON.stringify([...world.records]), before);
  assert.deepEqual(turn(world), ring(0, 0, 99));
  told(world);
  says(world, "h3", ring(0, 0, 200));
  assert.deepEqual(turn(world), ring(0, 0, 99));
});

test("what a host says without the keys of it counts for nothing", () => {
  const world = three();
  leave(world, "h3");
  for (const name of ["h1", "h2"]) says(world, name, ring(0, 0, 1));
  world.ask({ kind: "gossip", host: "host.h2", has: null });
  assert.deepEqual(turn(world), ring(0, 0, 1));
});
