import assert from "node:assert/strict";
import { test } from "node:test";
import type { CellNews, SubscriptionSummary } from "../../../model/contract/tenancy/subscriptions.ts";
import type { WhoAmI } from "../../../model/contract/tenancy/tenancy.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Effect } from "../../env.ts";
import type { Ask, TenancyResponse } from "../asks.ts";
import { Bench, operator, settled } from "../tenancy.testing.ts";
import type { NextNotice } from "./notices.ts";

const day = 24 * 60 * 60_000;
const url = "https://hooks.example.com/a-secret-path";
let drawn = 0;

/** As the edge asks it, the secret sealed. */
function add(bench: Bench, session: string, more: object = {}, key?: string): TenancyResponse {
  drawn += 1;
  return ask(bench, session, "addSubscription", { url, cells: ["shop"], ...more }, { uid: key ?? `s${drawn}` });
}
function ask(
  bench: Bench,
  session: string,
  name: Ask["name"],
  body: object,
  { uid = "", parameters = {}, sealed = "sealed" as string | null } = {},
): TenancyResponse {
  return bench.request({
    kind: "ask",
    by: { session },
    name,
    parameters,
    query: {},
    body: body as Ask["body"],
    password: null,
    fresh: { uid, number: "0" },
    ...(sealed === null ? {} : { sealed }),
  });
}
const logIn = (bench: Bench, user: string): string =>
  bench.logIn(user, user === "lea" ? "ROOT/acme/sub" : "ROOT/acme", `of ${user}`) ?? assert.fail(user);
const codeOf = ({ status, body }: TenancyResponse): string =>
  `${status} ${(body as { readonly error?: { readonly code: string } }).error?.code ?? ""}`.trim();
const messageOf = ({ body }: TenancyResponse): string =>
  (body as { readonly error?: { readonly message: string } }).error?.message ?? "";
const uidIn = ({ body }: TenancyResponse): string => (body as unknown as SubscriptionSummary).uid;
const listed = (bench: Bench, session: string): readonly SubscriptionSummary[] =>
  bench.ask({ session }, "listSubscriptions").body as unknown as readonly SubscriptionSummary[];

const news: CellNews = { kind: "changed", cell: "shop", events: [], more: 0 };
let asked = 100;
/** What is answered to whoever waits, now or by this step; null: nothing yet. */
const answered = (effects: readonly Effect[], id: number): NextNotice | null => {
  const reply = effects.find((effect) => effect.kind === "reply" && effect.id === id);
  return reply?.kind === "reply" ? (reply.response as unknown as NextNotice) : null;
};
function next(bench: Bench, watched: string | null = null): NextNotice | null {
  asked += 1;
  return answered(bench.step({ kind: "request", id: asked, request: { kind: "notice-next", watched } }), asked);
}
const said = (bench: Bench, due: NextNotice["due"], taken: boolean): void => {
  const { subscription, number } = due?.notice ?? assert.fail("nothing is due");
  const reason = taken ? null : "no answer";
  bench.step({ kind: "request", id: 1, request: { kind: "notice-said", subscription, number, taken, reason } });
};

test("whoever may read a cell has a URL told of it, and of no other; the operator is nobody who is told", () => {
  const bench = settled();
  const [ann, bob] = [logIn(bench, "ann"), logIn(bench, "bob")];
  const made = add(bench, ann);
  assert.equal(made.status, 200, messageOf(made));
  assert.equal(codeOf(add(bench, ann, { cells: ["bank"] })), "404 not-found");
  assert.equal(codeOf(add(bench, ann, { cells: ["shop", "nothing"] })), "404 not-found");
  assert.equal(codeOf(add(bench, ann, { cells: ["root"] })), "404 not-found");
  assert.equal(codeOf(add(bench, bob)), "404 not-found");
  assert.equal(add(bench, bob, { cells: ["bank"] }).status, 200);
  assert.equal(codeOf(bench.ask(operator, "addSubscription", { url, cells: ["shop"] })), "400 bad-request");
  assert.deepEqual(
    listed(bench, ann).map(({ user, url, cells, waiting }) => [user, url, cells, waiting]),
    [["ann@ROOT/acme", url, ["shop"], 1]],
  );
});

test("whoever administers the account sees whom others have told, without the path that lets one post there, and ends it", () => {
  const bench = settled();
  const [dora, bob, ann] = [logIn(bench, "dora"), logIn(bench, "bob"), logIn(bench, "ann")];
  const uid = uidIn(add(bench, bob, { cells: ["bank"] }));
  assert.deepEqual(
    listed(bench, dora).map(({ url }) => url),
    ["https://hooks.example.com"],
  );
  assert.deepEqual(listed(bench, ann), []);
  assert.equal(codeOf(ask(bench, ann, "deleteSubscription", {}, { parameters: { uid } })), "404 not-found");
  assert.equal(
    codeOf(ask(bench, dora, "changeSubscription", { url: "http://x.example" }, { parameters: { uid } })),
    "404 not-found",
    "but nobody has somebody else's notices told elsewhere",
  );
  assert.equal(ask(bench, dora, "deleteSubscription", {}, { parameters: { uid } }).status, 200);
  assert.deepEqual(listed(bench, bob), []);
  assert.ok(![...bench.records.keys()].some((key) => key.startsWith("notice/")), "with what waited");
});

test("a session that a key has begun has nobody told: that would outlive the key", () => {
  const bench = settled();
  const ann = logIn(bench, "ann");
  const record = bench.state.tables.session.get(ann) ?? assert.fail();
  bench.state.tables.session.set("by key", { ...record, key: "CELLK" });
  assert.equal(codeOf(add(bench, "by key")), "403 forbidden");
  const uid = uidIn(add(bench, ann));
  const change = { url: "https://elsewhere.example.com/" };
  assert.equal(codeOf(ask(bench, "by key", "changeSubscription", change, { parameters: { uid } })), "403 forbidden");
  assert.equal(ask(bench, ann, "changeSubscription", change, { parameters: { uid } }).status, 200);
});

test("a user has eight, an account's name 32 cells", () => {
  const bench = settled();
  const ann = logIn(bench, "ann");
  for (let count = 0; count < 8; count += 1) assert.equal(add(bench, ann).status, 200);
  assert.match(messageOf(add(bench, ann)), /at most 8 subscriptions/);
  for (const { uid } of listed(bench, ann)) ask(bench, ann, "deleteSubscription", {}, { parameters: { uid } });
  const many = Array.from({ length: 8 }, (_, at) => `c${at}`);
  for (const cell of many) bench.ask(operator, "giveCell", { account: "ROOT/acme/dev" }, { cell });
  for (let count = 0; count < 4; count += 1) assert.equal(add(bench, ann, { cells: many }).status, 200);
  assert.match(messageOf(add(bench, ann)), /32 cells together at most/);
});

test("who watches persistent volumes for somebody is told who he is and what account he has, and nothing else is opened", () => {
  const bench = settled();
  const ann = logIn(bench, "ann");
  assert.equal(codeOf(add(bench, ann, { cells: [] })), "400 bad-request");
  const [volumes, both, cells] = [
    uidIn(add(bench, ann, { cells: [], volumes: true })),
    uidIn(add(bench, ann, { volumes: true })),
    uidIn(add(bench, ann)),
  ];
  assert.deepEqual(
    listed(bench, ann).map(({ uid, cells, volumes }) => [uid, cells, volumes]),
    [
      [volumes, [], true],
      [both, ["shop"], true],
      [cells, ["shop"], undefined],
    ],
  );
  const watched = new Map((next(bench)?.watches ?? []).map(({ uid, volumes }) => [uid, volumes]));
  assert.deepEqual([watched.get(volumes), watched.get(cells)], [true, undefined]);
  for (const uid of [volumes, both, cells])
    assert.equal(bench.request({ kind: "watch", uid, session: `by ${uid}` }).status, 200);
  const by = (uid: string, name: Ask["name"]): TenancyResponse => bench.ask({ session: `by ${uid}` }, name);
  for (const uid of [volumes, both]) {
    const who = by(uid, "whoAmI").body as unknown as WhoAmI;
    assert.deepEqual([who.user?.name, who.user?.account], ["ann", "ROOT/acme/dev"]);
    assert.deepEqual(
      who.rules.map(({ verb }) => verb),
      ["cell.read", "account.read"],
    );
    const accounts = by(uid, "listAccounts").body as unknown as readonly { readonly path: string }[];
    assert.deepEqual(
      accounts.map(({ path }) => path),
      ["ROOT/acme/dev"],
    );
    assert.deepEqual(by(uid, "cells").body, []);
    for (const name of ["listUsers", "listKeys", "listSubscriptions", "listQuotas", "logOut"] as const)
      assert.equal(codeOf(by(uid, name)), "401 unauthorized", name);
  }
  for (const name of ["whoAmI", "listAccounts", "cells"] as const)
    assert.equal(codeOf(by(cells, name)), "401 unauthorized", "of cells alone nobody is told whose they are");
  const change = { volumes: false, cells: ["shop"] };
  assert.equal(ask(bench, ann, "changeSubscription", change, { parameters: { uid: both } }).status, 200);
  assert.equal(codeOf(by(both, "whoAmI")), "401 unauthorized", "what it was for is over");
  assert.equal(listed(bench, ann)[1]?.volumes, undefined);
});

test("a trial leaves nothing behind, however often somebody tries", () => {
  const bench = settled();
  const ann = logIn(bench, "ann");
  const uid = uidIn(add(bench, ann));
  const [query, body] = [{ dryRun: true }, { url, cells: ["shop"] }];
  for (let count = 0; count < 20; count += 1) {
    const fresh = { uid: `tried${count}`, number: "0" };
    const trial = { kind: "ask", by: { session: ann }, name: "addSubscription", parameters: {}, query, body };
    const tried = bench.request({ ...trial, password: null, fresh, sealed: "sealed" } as never);
    assert.equal(tried.status, 200, messageOf(tried));
  }
  assert.deepEqual([...bench.state.notices.queues.keys()], [uid]);
});

test("another URL has a secret of its own, and what waited for the one before is dropped", () => {
  const bench = settled();
  const ann = logIn(bench, "ann");
  const uid = uidIn(add(bench, ann));
  const first = next(bench)?.due;
  assert.equal(first?.notice.kind, "test");
  const change = { url: "https://elsewhere.example.com/" };
  const no = ask(bench, ann, "changeSubscription", change, { parameters: { uid }, sealed: null });
  assert.equal(codeOf(no), "400 bad-request");
  const changed = ask(bench, ann, "changeSubscription", change, { parameters: { uid }, sealed: "other" });
  assert.equal(changed.status, 200, messageOf(changed));
  said(bench, first, true);
  const due = next(bench)?.due;
  assert.deepEqual([due?.url, due?.sealed, due?.notice.kind, due?.notice.number], [change.url, "other", "test", 2]);
});

test("a watching session reads the cells of its subscription and opens nothing else", () => {
  const bench = settled();
  const [ann, rita] = [logIn(bench, "ann"), bench.logIn("rita", "ROOT", "of rita") ?? assert.fail()];
  const uid = uidIn(add(bench, ann));
  const everything = uidIn(add(bench, rita, { cells: ["shop"] }));
  for (const [of, session] of [
    [uid, "watching"],
    [everything, "of-rita"],
  ] as const) {
    assert.equal(bench.request({ kind: "watch", uid: of, session }).status, 200);
    assert.equal(bench.ticket(session, "shop", `${session}-t`), 200);
    assert.deepEqual(bench.look("shop", `${session}-t`)?.rules, [{ verb: "cell.read", effect: "allow" }]);
    assert.equal(bench.ticket(session, "bank", `${session}-b`), 401, "a cell that it does not watch");
    for (const name of ["whoAmI", "cells", "listUsers", "listSubscriptions", "listKeys"] as const)
      assert.equal(bench.ask({ session }, name).status, 401, name);
    assert.equal(codeOf(add(bench, session)), "401 unauthorized");
  }
  assert.equal(bench.ticket("watching", "lab", "x"), 401);
});

test("whose right ends has nothing watched any more: by his role, his state, the subscription, or himself", () => {
  const begin = () => {
    const bench = settled();
    const ann = logIn(bench, "ann");
    const uid = uidIn(add(bench, ann));
    bench.request({ kind: "watch", uid, session: "watching" });
    bench.ticket("watching", "shop", "t");
    assert.equal(bench.look("shop", "t")?.open, true);
    const user = bench.state.tables.session.get(ann)?.user ?? "";
    return { bench, ann, uid, user };
  };
  {
    const { bench, ann, uid } = begin();
    ask(bench, ann, "deleteSubscription", {}, { parameters: { uid } });
    assert.equal(bench.worth("shop", "t")?.open, false, "deleted");
    assert.equal(codeOf(bench.request({ kind: "watch", uid, session: "again" })), "404 not-found");
  }
  {
    const { bench, uid, user } = begin();
    bench.ask(operator, "changeUser", { state: "disabled" }, { uid: user });
    assert.equal(bench.worth("shop", "t")?.open, false, "disabled");
    assert.equal(codeOf(bench.request({ kind: "watch", uid, session: "again" })), "403 disabled");
    assert.equal(next(bench)?.due, undefined, "and nothing is posted for him");
  }
  {
    const { bench } = begin();
    bench.ask(operator, "giveCell", { account: "ROOT/acme/ops" }, { cell: "shop" });
    assert.equal(bench.worth("shop", "t")?.open, false, "the cell is another account's");
  }
  {
    const { bench, uid, user } = begin();
    bench.ask(operator, "deleteUser", {}, { uid: user });
    assert.ok(!bench.records.has(`subscription/${uid}`) && !bench.records.has(`notice/${uid}/1`));
    assert.equal(bench.worth("shop", "t")?.open, false);
  }
});

test("a watching session takes the place of none of the user's own", () => {
  const bench = settled();
  const own = () => [...bench.state.tables.session.values()].filter(({ watch }) => watch === undefined).length;
  for (let before = -1; before < own(); ) {
    before = own();
    logIn(bench, "ann");
  }
  const most = own();
  const uid = uidIn(add(bench, logIn(bench, "ann")));
  bench.request({ kind: "watch", uid, session: "watching" });
  logIn(bench, "ann");
  assert.equal(own(), most, "as many as one may have");
  bench.request({ kind: "watch", uid, session: "another" });
  assert.ok(!bench.state.tables.session.has("watching"), "and there is one of a subscription");
});

test("notices wait for who carries them, one after the other, and what is not taken comes again at growing intervals", () => {
  const bench = settled();
  const uid = uidIn(add(bench, logIn(bench, "ann")));
  bench.request({ kind: "notice-add", subscription: uid, news });
  const first = next(bench);
  assert.deepEqual(first?.watches, [{ uid, cells: ["shop"], events: ["cell", "vm", "volume"] }]);
  assert.deepEqual([first?.due?.notice.number, first?.due?.notice.kind, first?.due?.url], [1, "test", url]);
  assert.equal(next(bench, first?.watched ?? ""), null, "the second waits for the first");
  const waited = asked;
  const intervals: number[] = [];
  for (let count = 0; count < 12; count += 1) {
    said(bench, first?.due, false);
    assert.equal(listed(bench, logIn(bench, "ann"))[0]?.said, "no answer");
    const effects = bench.step({ kind: "timer", name: "notices" });
    const timer = effects.find((effect) => effect.kind === "timer");
    assert.ok(timer?.kind === "timer" && timer.afterMs !== null, "it is said when to look again");
    intervals.push(timer.afterMs);
    bench.ms += timer.afterMs;
    const again = bench.step({ kind: "timer", name: "notices" });
    assert.equal(answered(again, count === 0 ? waited : asked)?.due?.notice.number, 1);
    assert.equal(next(bench, first?.watched ?? ""), null);
  }
  assert.deepEqual(intervals.slice(0, 4), [1000, 2000, 4000, 8000]);
  assert.deepEqual(intervals.slice(-2), [600_000, 600_000]);
  const { subscription = "", number = 0 } = first?.due?.notice ?? {};
  const word: Json = { kind: "notice-said", subscription, number, taken: true, reason: null };
  assert.equal(answered(bench.step({ kind: "request", id: 1, request: word }), asked)?.due?.notice.number, 2);
});

test("for a day it is tried, then it is in the list of those that were given up", () => {
  const bench = settled();
  const ann = logIn(bench, "ann");
  const uid = uidIn(add(bench, ann));
  bench.request({ kind: "notice-add", subscription: uid, news });
  const first = next(bench)?.due;
  bench.ms += day - 2000;
  said(bench, first, false);
  assert.deepEqual(bench.records.get(`notice/${uid}/1`) !== undefined && bench.state.notices.queues.get(uid)?.dead, []);
  bench.ms += 2000;
  const again = next(bench)?.due;
  assert.equal(again?.notice.number, 1);
  bench.step({ kind: "request", id: 1, request: { kind: "notice-add", subscription: uid, news } as unknown as Json });
  said(bench, again, false);
  const other = logIn(bench, "ann");
  const [shown] = listed(bench, other);
  assert.deepEqual(
    shown?.dead.map(({ number, why }) => [number, why]),
    [
      [1, "no answer"],
      [2, "no answer"],
    ],
  );
  assert.equal(shown?.waiting, 1, "what is new is tried for its own day");
  const after = Bench.started(bench.records);
  after.ms = bench.ms + 1;
  const session = after.logIn("ann", "ROOT/acme", "of ann") ?? assert.fail();
  assert.deepEqual(
    listed(after, session)[0]?.dead.map(({ number }) => number),
    [1, 2],
    "also after a start",
  );
  assert.equal(next(after)?.due?.notice.number, 3);
});

test("64 of a subscription wait, and 16 that were given up are kept", () => {
  const bench = settled();
  const ann = logIn(bench, "ann");
  const uid = uidIn(add(bench, ann));
  for (let count = 0; count < 200; count += 1) bench.request({ kind: "notice-add", subscription: uid, news });
  const [shown] = listed(bench, ann);
  assert.deepEqual([shown?.waiting, shown?.dead.length], [64, 16]);
  assert.match(shown?.dead[0]?.why ?? "", /more than 64 waited/);
  assert.equal([...bench.records.keys()].filter((key) => key.startsWith("notice/")).length, 80);
});

test("a receiver that is slow holds up nobody else's: two of an account are carried at a time", () => {
  const bench = settled();
  const [ann, bob] = [logIn(bench, "ann"), logIn(bench, "bob")];
  for (let count = 0; count < 4; count += 1) add(bench, ann);
  const theirs = uidIn(add(bench, bob, { cells: ["bank"] }));
  const carried = Array.from({ length: 5 }, () => next(bench)?.due?.notice.subscription);
  assert.equal(carried.filter((uid) => uid !== undefined).length, 3);
  assert.ok(carried.includes(theirs));
  bench.ms += 61_000;
  assert.notEqual(next(bench)?.due, undefined, "nobody who carries them ends without a word for good");
});

test("two of an account are carried also where their subscriptions are others meanwhile, or gone", () => {
  for (const isGone of [false, true]) {
    const bench = settled();
    const ann = logIn(bench, "ann");
    let uid = uidIn(add(bench, ann));
    const carried: NextNotice["due"][] = [];
    for (let count = 0; count < 6; count += 1) {
      const due = next(bench)?.due;
      if (due !== undefined) carried.push(due);
      const parameters = { uid };
      if (isGone) {
        ask(bench, ann, "deleteSubscription", {}, { parameters });
        uid = uidIn(add(bench, ann));
      } else ask(bench, ann, "changeSubscription", { url: `https://h${count}.example.com/` }, { parameters });
    }
    assert.ok(carried.length > 0 && carried.length <= 2, `${carried.length} are under way`);
    for (const each of carried) said(bench, each, true);
    assert.equal(next(bench)?.due?.notice.subscription, uid);
  }
});

test("the word about one for an earlier URL has nobody carry a second time what is under way", () => {
  const bench = settled();
  const ann = logIn(bench, "ann");
  const uid = uidIn(add(bench, ann));
  const first = next(bench)?.due;
  const change = { url: "https://elsewhere.example.com/" };
  ask(bench, ann, "changeSubscription", change, { parameters: { uid } });
  bench.ms += 61_000;
  const second = next(bench)?.due;
  assert.equal(second?.notice.number, 2);
  said(bench, first, false);
  assert.equal(next(bench)?.due, undefined, "it is under way still");
  said(bench, second, true);
  assert.equal(listed(bench, ann)[0]?.waiting, 0);
});

test("who asked before is answered with nothing, and whoever knows all is told once there is more", () => {
  const bench = settled();
  const ann = logIn(bench, "ann");
  const { watched = "" } = next(bench) ?? {};
  assert.equal(next(bench, watched), null);
  const before = asked;
  const effects = bench.step({ kind: "request", id: 999, request: { kind: "notice-next", watched } });
  assert.deepEqual(answered(effects, before), {});
  drawn += 1;
  const made = bench.step({
    kind: "request",
    id: 1000,
    request: {
      kind: "ask",
      by: { session: ann },
      name: "addSubscription",
      parameters: {},
      query: {},
      body: { url, cells: ["shop"] },
      password: null,
      fresh: { uid: `s${drawn}`, number: "0" },
      sealed: "sealed",
    } as unknown as Json,
  });
  const told = answered(made, 999);
  assert.notEqual(told?.watched, watched);
  assert.equal(told?.watches?.length, 1);
});

test("what a subscription writes costs no look at what tickets are worth", () => {
  const bench = settled();
  const ann = logIn(bench, "ann");
  const uid = uidIn(add(bench, ann));
  bench.ticket(ann, "shop", "own");
  bench.look("shop", "own");
  const effects = bench.step({
    kind: "request",
    id: 1,
    request: { kind: "notice-add", subscription: uid, news } as unknown as Json,
  });
  assert.ok(!effects.some(({ kind }) => kind === "publish"));
});

test("an account that ends takes its subscriptions with it", () => {
  const bench = settled();
  const uid = uidIn(add(bench, logIn(bench, "lea"), { cells: ["lab"] }));
  bench.ask(operator, "giveCell", { account: "ROOT/acme/ops" }, { cell: "lab" });
  bench.ask(operator, "deleteAccount", {}, { uid: bench.uidOf("ROOT/acme/sub/lab") });
  assert.ok(!bench.records.has(`subscription/${uid}`) && !bench.records.has(`notice/${uid}/1`));
});
