import assert from "node:assert/strict";
import { test } from "node:test";
import { presenceKey } from "../../documents/presence.ts";
import { member, peer, second, third } from "./group.testing.ts";

test("how many reports are enough follows the hosts that are there now: who leaves, comes back or is declared counts at once", () => {
  const { report, hear, voted, say, refute, vote, hearMember } = member(8);
  hear(1, false);
  for (const by of [2, 3, 4]) report(by, 1);
  assert.ok(!voted(1), "three of seven others are too few");
  say(peer(8), presenceKey.self, null);
  assert.ok(!voted(1), "and of six");
  say(peer(7), presenceKey.self, null);
  assert.ok(voted(1), "three of five are enough");
  refute(7, 1);
  assert.ok(!voted(1), "it is there again");
  hearMember(second, true);
  hear(7, false);
  for (const by of [second, third]) vote(by, 7, 1);
  assert.ok(voted(1), "it was declared dead");
});

test("a doubt is counted without a look at all hosts", () => {
  const { say, state, published } = member(9);
  const { hosts } = state;
  let looks = 0;
  const values = hosts.values.bind(hosts);
  hosts.values = () => {
    looks += 1;
    return values();
  };
  const doubt = (by: number): unknown =>
    say(peer(by), presenceKey.doubt("h1"), { host: "h1", generation: 1, incarnation: 0 });
  for (const by of [2, 3, 4, 5, 6, 7]) doubt(by);
  assert.ok(published.has(presenceKey.suspected("h1")));
  assert.equal(looks, 1, "they are counted once, since nobody has come or gone");
  say(peer(9), presenceKey.self, null);
  looks = 0;
  doubt(8);
  assert.equal(looks, 0, "who goes has them counted");
});
