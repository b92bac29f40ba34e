import assert from "node:assert/strict";
import { test } from "node:test";
import type { FollowEvent, Rows } from "../../model/contract/follow/follow.ts";
import { nothingFollowed, reduced } from "../../model/contract/follow/reduce.ts";
import { followedCells, goneMs, heardBy, type Surroundings, silentMs, Tabs, type ToTab } from "./tabs.ts";

const event = (kind: "snapshot" | "delta", topic: string, n: number, rows: Rows): FollowEvent => ({
  kind,
  topic,
  n,
  rows,
  run: "a",
  time: "2026-01-01T00:00:00Z",
});
/** A worker whose streams, clock and gateway are in the test's hands. */
function worker(whyRefused: Surroundings["whyRefused"] = async () => new Map()) {
  const world = { nowMs: 0, opened: [] as string[], ended: 0, waiting: [] as (() => void)[] };
  let heard: (event: FollowEvent) => void = () => assert.fail("nothing is open");
  let over: () => void = () => assert.fail("nothing is open");
  const tabs = new Tabs({
    nowMs: () => world.nowMs,
    later: (_ms, after) => {
      world.waiting.push(after);
      return () => undefined;
    },
    open: (topics, ...rest) => {
      world.opened.push(topics.join(" "));
      [heard, over] = rest;
      return () => {
        world.ended += 1;
      };
    },
    whyRefused,
  });
  const tab = () => {
    const told: ToTab[] = [];
    return { told, say: tabs.add((said) => told.push(said)) };
  };
  return { world, tabs, tab, heard: (each: FollowEvent) => heard(each), refuse: () => over() };
}
const rowsTold = (told: readonly ToTab[]) =>
  told.flatMap((said) => (said.kind === "event" && said.event.rows !== undefined ? [said.event.rows] : []));
const turn = () => new Promise((resolve) => setImmediate(resolve));

test("a tab whose clock stood still is told what it missed as soon as it is heard again", () => {
  const { world, tabs, tab, heard } = worker();
  const [hidden, other] = [tab(), tab()];
  for (const { say } of [hidden, other]) say({ kind: "follow", topics: ["cells"] });
  heard(event("snapshot", "cells", 1, { shop: 1 }));
  world.nowMs += goneMs + 1;
  other.say({ kind: "alive" });
  tabs.sweep();
  heard(event("delta", "cells", 2, { bank: 2 }));
  assert.deepEqual(rowsTold(hidden.told), [{ shop: 1 }]);
  hidden.say({ kind: "alive" });
  assert.deepEqual(rowsTold(hidden.told).at(-1), { shop: 1, bank: 2 });
  heard(event("delta", "cells", 3, { mill: 3 }));
  assert.deepEqual(rowsTold(hidden.told).at(-1), { mill: 3 });
});

test("where no tab is heard nothing is followed, and the first that is heard again has it followed", () => {
  const { world, tabs, tab } = worker();
  const only = tab();
  only.say({ kind: "follow", topics: ["cells"] });
  world.nowMs += goneMs + 1;
  tabs.sweep();
  assert.equal(world.ended, 1);
  only.say({ kind: "alive" });
  assert.deepEqual(world.opened, ["cells", "cells"]);
  only.say({ kind: "leave" });
  assert.equal(world.ended, 2);
});

test("a tab that has missed something asks anew, and comes to what is so", () => {
  const { tab, heard } = worker();
  const { told, say } = tab();
  say({ kind: "follow", topics: ["cells"] });
  heard(event("snapshot", "cells", 1, { shop: 1 }));
  heard(event("delta", "cells", 2, { bank: 2 }));
  const [first] = told;
  assert.ok(first?.kind === "event");
  let { followed } = heardBy(nothingFollowed, first.event, ["cells"]);
  const broken = heardBy(followed, event("delta", "cells", 3, { mill: 3 }), ["cells"]);
  assert.equal(broken.isGap, true);
  assert.equal(heardBy(followed, event("delta", "cell:old", 7, {}), ["cells"]).isGap, false, "it is shown no more");
  say({ kind: "follow", topics: ["cells"], anew: true });
  const again = told.at(-1);
  assert.ok(again?.kind === "event");
  ({ followed } = heardBy(broken.followed, again.event, ["cells"]));
  assert.deepEqual(followed.topics.get("cells")?.rows, { shop: 1, bank: 2 });
});

test("a stream that says nothing is asked for anew, ever less often, until it is heard again", () => {
  const { world, tabs, tab, heard } = worker();
  const { say } = tab();
  say({ kind: "follow", topics: ["cells"] });
  const after = (ms: number): number => {
    world.nowMs += ms;
    say({ kind: "alive" });
    tabs.sweep();
    return world.opened.length;
  };
  assert.equal(after(silentMs), 1);
  assert.equal(after(1), 2);
  assert.equal(after(silentMs + 1), 2, "the next one has twice the time");
  assert.equal(after(silentMs), 3);
  heard(event("snapshot", "cells", 1, {}));
  assert.equal(after(silentMs), 3, "it is heard");
  assert.equal(after(1), 4, "and gets no more time than the first");
  assert.equal(world.ended, 3, "of several one alone is open");
});

test("a gap in the stream has it begin anew", () => {
  const { world, tab, heard } = worker();
  tab().say({ kind: "follow", topics: ["cells"] });
  heard(event("snapshot", "cells", 1, {}));
  heard(event("delta", "cells", 4, {}));
  assert.equal(world.opened.length, 2);
});

test("a cell that went is left out, and everything else goes on", async () => {
  const { world, tabs, tab, refuse } = worker(async () => new Map([["cell:shop", "there is no cell shop"]]));
  const { told, say } = tab();
  say({ kind: "follow", topics: ["cells", "cell:shop", "cell:bank"] });
  refuse();
  await turn();
  assert.deepEqual(world.opened, ["cell:bank cell:shop cells", "cell:bank cells"]);
  const [said] = told;
  assert.ok(said?.kind === "event" && said.event.kind === "ended");
  assert.equal(said.event.why, "there is no cell shop");
  world.nowMs += 60_000;
  say({ kind: "alive" });
  tabs.sweep();
  assert.equal(world.opened.at(-1), "cell:bank cell:shop cells", "it may have come back");
});

test("a refusal without a reason is tried again, and one since nobody is in says so", async () => {
  const busy = worker();
  busy.tab().say({ kind: "follow", topics: ["cells"] });
  busy.refuse();
  await turn();
  assert.equal(busy.world.opened.length, 1);
  for (const after of busy.world.waiting) after();
  assert.equal(busy.world.opened.length, 2);

  const out = worker(async () => "signed-out");
  const { told, say } = out.tab();
  say({ kind: "follow", topics: ["cells"] });
  out.refuse();
  await turn();
  assert.deepEqual(told, [{ kind: "signed-out" }]);
  for (let times = 0; times < 5; times += 1) {
    out.world.nowMs += silentMs;
    say({ kind: "alive" });
    out.tabs.sweep();
  }
  assert.equal(out.world.opened.length, 1, "whoever is out asks for nothing");
  say({ kind: "follow", topics: ["cells"] });
  assert.equal(out.world.opened.length, 2, "until somebody signs in");
});

test("what ended and comes again has not ended", () => {
  const ended: FollowEvent = { kind: "ended", time: "", topic: "cell:shop", why: "it went" };
  const one = reduced(nothingFollowed, ended).followed;
  assert.deepEqual([...one.ended], [["cell:shop", "it went"]]);
  assert.equal(reduced(one, event("snapshot", "cell:shop", 1, {})).followed.ended.size, 0);
});

test("of more cells than one stream has room for, the others are named, and the chosen one is never among them", () => {
  const cells = Array.from({ length: 20 }, (_, at) => `c${at}`);
  const { shown, left } = followedCells(cells, "c19", 3);
  assert.equal(shown.length, 13);
  assert.equal(shown[0], "c19");
  assert.deepEqual([...shown, ...left].sort(), [...cells].sort());
  assert.deepEqual(followedCells(["a"], "not there", 3), { shown: ["a"], left: [] });
});
