import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../model/cell/identifiers.ts";
import {
  audit,
  auditRefusal,
  cellOfController,
  createOutbox,
  desire,
  longestSentence,
  progress,
  publish,
  sameJson,
  takeEffects,
  write,
} from "./outbox.ts";

test("only differences become effects, also against what was restored", () => {
  const outbox = createOutbox({
    records: new Map([["a", { x: 1 }]]),
    desiredAt: new Map([[peerName("p"), new Map([["k", { y: 2 }]])]]),
  });
  write(outbox, "a", { x: 1 });
  desire(outbox, peerName("p"), "k", { y: 2 });
  write(outbox, "gone", null);
  assert.deepEqual(takeEffects(outbox), []);
  desire(outbox, peerName("p"), "k", null);
  write(outbox, "a", { x: 2 });
  publish(outbox, "controller.shop/subnet/ab-1", { phase: "ready", reason: null });
  publish(outbox, "controller.shop/subnet/ab-1", { phase: "ready", reason: null });
  assert.deepEqual(
    takeEffects(outbox).map((effect) => effect.kind),
    ["desire", "write", "publish", "log"],
  );
});

test("JSON equality ignores the order of keys and sees nested differences", () => {
  assert.ok(sameJson({ a: 1, b: [1, { c: null }] }, { b: [1, { c: null }], a: 1 }));
  assert.ok(!sameJson({ a: 1 }, { a: 1, b: null }));
  assert.ok(!sameJson([1, 2], [1, 3]));
  assert.ok(!sameJson([], {}));
});

test("a controller is known by its name", () => {
  assert.equal(cellOfController(peerName("controller.shop")), "shop");
  assert.equal(cellOfController(peerName("host.h1")), null);
});

test("a reason that quotes more than its reader takes is cut, and any other is as it was", () => {
  const { reason } = progress("waiting", `"${"a".repeat(1_000_000)}" is being deleted`);
  assert.equal(reason?.length, longestSentence);
  assert.ok(reason?.startsWith('"aaa') && reason.endsWith("…"));
  assert.equal(progress("waiting", "a".repeat(longestSentence)).reason, "a".repeat(longestSentence));
  assert.deepEqual(progress("ready"), { phase: "ready", reason: null });
});

/** How many refusals of each have a record, when they ask in turns. */
const refusalsOf = (
  turns: number,
  all: readonly {
    readonly account?: string;
    readonly who: string;
    readonly source?: string;
    readonly isKnown?: boolean;
  }[],
): ReadonlyMap<string, number> => {
  const outbox = createOutbox({ records: new Map(), desiredAt: new Map() });
  const recorded = new Map<string, number>();
  for (let turn = 0; turn < turns; turn += 1)
    for (const { isKnown = true, ...actor } of all) {
      const entry = { ...actor, door: "gateway", verb: "exec", target: "shop", outcome: "refused" } as const;
      auditRefusal(outbox, { ms: turn, wallMs: turn }, entry, { isKnown });
      const isWritten = takeEffects(outbox).length > 0;
      if (isWritten) recorded.set(actor.who, (recorded.get(actor.who) ?? 0) + 1);
    }
  return recorded;
};
const total = (recorded: ReadonlyMap<string, number>): number =>
  [...recorded.values()].reduce((sum, each) => sum + each, 0);

test("refusals have one supply of records, of which nobody takes another's share", () => {
  const user = (part: string, name: string) => ({ account: `ROOT/${part}/dev`, who: `${name}@ROOT/${part}` });
  const alone = refusalsOf(1000, [user("acme", "ann")]);
  assert.deepEqual([...alone], [["ann@ROOT/acme", 25]]);
  // A part with a hundred accounts has no more than one with a few.
  const many = Array.from({ length: 100 }, (_none, index) => ({
    account: `ROOT/evil/a${index}`,
    who: `m${index}@ROOT/evil`,
  }));
  assert.ok(total(refusalsOf(1000, many)) <= 100);
  // Whoever comes after many others finds some, however many they are and however often they ask.
  const parts = Array.from({ length: 6 }, (_none, index) =>
    many.map(({ account, who }) => ({ account: account.replace("evil", `evil${index}`), who: `${who}${index}` })),
  ).flat();
  const strangers = many.map((_one, index) => ({ who: `u${index}`, source: `192.0.2.${index}`, isKnown: false }));
  const operators = [{ who: "operator" }, { who: "credential a of shop" }];
  const late = user("victims", "vera");
  const outbox = refusalsOf(50, [...parts, ...strangers, ...operators, late]);
  assert.ok(total(outbox) <= 300);
  assert.ok((outbox.get(late.who) ?? 0) >= 1, `${outbox.get(late.who)}`);
  assert.ok((outbox.get("operator") ?? 0) >= 1);
});

test("accounts of one domain, and users of one account, leave each other some", () => {
  const of = (account: string, who: string) => ({ account: `ROOT/acme/${account}`, who });
  const often = <One>(one: One): readonly One[] => Array.from({ length: 200 }, () => one);
  const accounts = ["a", "b", "c"].map((name) => [of(name, `1${name}`), of(name, `2${name}`), of(name, `3${name}`)]);
  const recorded = refusalsOf(1, accounts.flat().flatMap(often));
  for (const [first = 0, second = 0, third = 0] of accounts.map((users) => users.map(({ who }) => recorded.get(who))))
    assert.ok(first > second && second > third && third >= 1, `${first} ${second} ${third}`);
});

test("a stranger takes nothing from the one whose name he says", () => {
  const ann = { account: "ROOT/acme/dev", who: "ann@ROOT/acme" };
  const strangers = Array.from({ length: 50 }, (_none, index) => ({
    ...ann,
    source: `192.0.2.${index}`,
    isKnown: false,
  }));
  const isOwn = refusalsOf(1000, strangers).get(ann.who) ?? 0;
  assert.ok(isOwn <= 50, `${isOwn}`);
  const both = refusalsOf(1000, [...strangers, ann]).get(ann.who) ?? 0;
  assert.ok(both >= isOwn + 10, `${both}, and ${isOwn} without her own`);
});

test("what was refused, however often, removes nothing of what was changed", () => {
  const outbox = createOutbox({ records: new Map(), desiredAt: new Map() });
  const room = { changes: 20, refusals: 5 };
  const kept = new Set<string>();
  const take = (): void => {
    for (const effect of takeEffects(outbox))
      if (effect.kind === "write" && effect.value === null)
        assert.ok(kept.delete(effect.key), `${effect.key} was there`);
      else if (effect.kind === "write") kept.add(effect.key);
  };
  const entry = { who: "ann@ROOT/acme", account: "ROOT/acme/dev", door: "gateway", verb: "exec", target: "shop" };
  for (let count = 0; count < 10; count += 1) audit(outbox, { ms: 0, wallMs: 0 }, { ...entry, outcome: "done" }, room);
  for (let hour = 0; hour < 24; hour += 1)
    for (let count = 0; count < 40; count += 1) {
      const now = { ms: 3_600_000 * hour, wallMs: 3_600_000 * hour };
      auditRefusal(outbox, now, { ...entry, outcome: "refused" }, { room, isKnown: true });
    }
  take();
  const of = (key: string): number => [...kept].filter((each) => each.startsWith(`${key}/`)).length;
  assert.deepEqual([of("audit"), of("audit-refusals")], [10, 5]);
  for (let count = 0; count < 30; count += 1) audit(outbox, { ms: 0, wallMs: 0 }, { ...entry, outcome: "done" }, room);
  take();
  assert.deepEqual([of("audit"), of("audit-refusals")], [20, 5]);
});
