import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, peerName } from "../../../model/cell/identifiers.ts";
import { toJson } from "../../outbox.ts";
import {
  createDeaths,
  type Deaths,
  deathOf,
  diedAt,
  followDeaths,
  followOthers,
  hasEnded,
  hearMember,
  isOff,
  takeDeath,
} from "./deaths.ts";

const members = ["presence.1", "presence.2", "presence.3"].map(peerName);
const [one = peerName("x"), two = one, three = one] = members;
const host = hostName("h1");
const key = "dead/h1";
const death = (more: object = {}) =>
  toJson({ host, generation: 4, incarnation: 0, declaredAt: 1_763_757_607_900, reporters: 2, ...more });
/** What each of the members says, in their order; null: nothing. */
const told = (...words: readonly (object | null)[]): Deaths => {
  const deaths = createDeaths(members);
  words.forEach((word, index) => {
    if (word !== null) assert.equal(takeDeath(deaths, members[index] ?? one, key, death(word)), host);
  });
  return deaths;
};

test("a boot has ended where more than half say so, that one and those before it, and no later one", () => {
  const deaths = told({ ended: 5 }, { ended: 6 });
  assert.deepEqual(
    [4, 5, 6, 7].map((boot) => hasEnded(deaths, host, boot)),
    [true, true, false, false],
  );
  assert.ok(!hasEnded(told({ ended: 5 }), host, 5), "one of three is not enough");
  assert.ok(!hasEnded(told({ ended: 5 }, {}, {}), host, 5), "a death without an end is none");
  assert.ok(!hasEnded(deaths, hostName("h2"), 1), "of another host nothing is said");
});

test("where most members are away one of the rest is enough, and where fewer are it is not", () => {
  const deaths = told({ ended: 5 });
  hearMember(deaths, two, false);
  assert.ok(!hasEnded(deaths, host, 5), "two can still be heard");
  hearMember(deaths, three, false);
  assert.ok(hasEnded(deaths, host, 5));
  hearMember(deaths, three, true);
  assert.ok(!hasEnded(deaths, host, 5));
  // Silence of others says nothing of the group.
  hearMember(deaths, peerName("host.h7"), false);
  hearMember(deaths, peerName("host.h8"), false);
  assert.ok(!hasEnded(deaths, host, 5));
});

test("only members are believed, and only of deaths", () => {
  const deaths = createDeaths(members);
  assert.equal(takeDeath(deaths, peerName("host.h2"), key, death({ ended: 5 })), null);
  assert.equal(takeDeath(deaths, one, "view/h1", death({ ended: 5 })), null);
  for (const member of [one, two]) takeDeath(deaths, member, key, death({ ended: 5 }));
  // Malformed: what it said before stays. Taken back: it is no longer said.
  takeDeath(deaths, two, key, toJson({ host, generation: "4" }));
  assert.ok(hasEnded(deaths, host, 5));
  takeDeath(deaths, two, key, null);
  assert.ok(!hasEnded(deaths, host, 5));
});

test("a group with other members follows those, and forgets what the others said", () => {
  const deaths = told({ ended: 5 }, { ended: 5 });
  hearMember(deaths, two, false);
  const four = peerName("presence.4");
  assert.deepEqual(followOthers(deaths, [one, three, four]), [
    { kind: "unsubscribe", to: two, prefix: "dead/" },
    { kind: "subscribe", to: four, prefix: "dead/" },
  ]);
  assert.deepEqual([...deaths.silent], []);
  assert.ok(!hasEnded(deaths, host, 5), "one of three says it");
  assert.deepEqual(
    followDeaths(deaths).map((effect) => (effect.kind === "subscribe" ? effect.to : null)),
    [one, three, four],
  );
});

test("the death that most tell of counts, unless one knows of a return since", () => {
  assert.equal(deathOf(told({}), host), null);
  assert.equal(deathOf(told({}, {}), host)?.generation, 4);
  assert.equal(deathOf(createDeaths(members), host), null);
  assert.equal(deathOf(told({}, { returned: 5 }), host), null);
  assert.equal(deathOf(told({}, { returned: 4 }), host)?.generation, 4, "a return of that life is before its end");
  assert.equal(diedAt(deathOf(told({}, {}), host) ?? assert.fail()), "2025-11-21T20:40:07Z");
});

test("nothing runs at a host whose power was off in its latest life, and not for a word about an earlier one", () => {
  assert.ok(isOff(told({ endedIn: 4 }, { endedIn: 4 }), host));
  assert.ok(isOff(told({ endedIn: 5 }, { endedIn: 4 }), host));
  assert.ok(!isOff(told({ endedIn: 3 }, { endedIn: 4 }), host));
  assert.ok(!isOff(told({}, {}), host));
  assert.ok(!isOff(told({ endedIn: 4 }, { endedIn: 4, returned: 5 }), host));
});
