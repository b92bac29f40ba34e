import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { KeySummary, MadeKey } from "../../../model/contract/tenancy/tenancy.ts";
import type { By } from "../actor.ts";
import type { TenancyResponse } from "../asks.ts";
import { Bench, operator, settled } from "../tenancy.testing.ts";
import type { SignedBegun } from "./signed.ts";

/** A clock of the wall on which a signature can be late. */
const atMs = Date.parse("2026-01-02T03:04:05Z");
const bench = (): Bench => {
  const made = settled();
  made.ms = atMs;
  return made;
};
const uidOf = (on: Bench, name: string): string =>
  [...on.state.tables.user.values()].find((user) => user.name === name)?.uid ?? assert.fail(name);
const logIn = (on: Bench, name: string): By => {
  const domain = { lea: "ROOT/acme/sub", rita: "ROOT" }[name] ?? "ROOT/acme";
  return { session: on.logIn(name, domain, `of ${name}`) ?? assert.fail(name) };
};
let drawn = 0;
const add = (on: Bench, by: By, user?: string): TenancyResponse => {
  drawn += 1;
  const fresh = { uid: "", number: "" };
  const key = { id: `CELL${drawn}`, sealed: `sealed ${drawn}` };
  const body = { note: "scripts", ...(user === undefined ? {} : { user }) };
  return on.request({ kind: "ask", by, name: "addKey", parameters: {}, query: {}, body, password: null, fresh, key });
};
const keyOf = ({ body }: TenancyResponse): string => (body as unknown as MadeKey).key.id;
const codeOf = ({ status, body }: TenancyResponse): string =>
  `${status} ${(body as { error?: { code: string } }).error?.code ?? ""}`.trim();

const dateOf = (ms: number): string => new Date(ms).toISOString().replace(/[-:]|\.\d+/g, "");
const signedBy = (on: Bench, key: string, date = dateOf(on.ms)) => ({
  scheme: "sigv4" as const,
  key,
  stringToSign: `AWS4-HMAC-SHA256\n${date}\n${date.slice(0, 8)}/here/cells/aws4_request\nabc`,
});
/** As the edge does. */
const enter = (
  on: Bench,
  key: string,
  { matched = true, date = undefined as string | undefined, between = (): void => undefined } = {},
): TenancyResponse & { readonly session: string } => {
  drawn += 1;
  const session = `by key ${drawn}`;
  const asked = { signed: signedBy(on, key, date), source: "here" };
  const begun = on.request({ kind: "signed-begin", ...asked });
  if (begun.status !== 200) return { ...begun, session };
  between();
  const known = begun.body as unknown as SignedBegun;
  return { ...on.request({ kind: "signed-end", ...asked, begun: known, matched, session }), session };
};
const isIn = (on: Bench, session: string): boolean => on.ask({ session }, "whoAmI").status === 200;

test("a user makes keys of his own without any right, and begins sessions with them", () => {
  const on = bench();
  const lea = logIn(on, "lea");
  const id = keyOf(add(on, lea));
  const entered = enter(on, id);
  assert.equal(entered.status, 201);
  assert.ok(isIn(on, entered.session));
  const [own, ...more] = on.ask(lea, "listKeys").body as unknown as readonly KeySummary[];
  assert.deepEqual([more.length, own?.id, own?.user, own?.note], [0, id, "lea@ROOT/acme/sub", "scripts"]);
  assert.equal(own?.used, "2026-01-02T03:04:05.000Z");
  assert.ok(!JSON.stringify([own, on.ask(operator, "listKeys")]).includes("sealed"), "nobody is told the secret");
});

test("an unknown key and a wrong signature are told the same; what is late, or of a disabled key, says so", () => {
  const on = bench();
  const id = keyOf(add(on, logIn(on, "ann")));
  const [unknown, wrong] = [enter(on, "CELLNONE", { matched: false }), enter(on, id, { matched: false })];
  assert.deepEqual([unknown.status, unknown.body], [wrong.status, wrong.body]);
  assert.equal(codeOf(wrong), "401 signature");
  for (const ms of [-301_000, 301_000])
    assert.equal(codeOf(enter(on, id, { date: dateOf(on.ms + ms) })), "401 signature-late");
  for (const ms of [-299_000, 299_000]) assert.equal(enter(on, id, { date: dateOf(on.ms + ms) }).status, 201);
  assert.equal(on.ask(operator, "changeKey", { state: "disabled" }, { key: id }).status, 200);
  assert.equal(codeOf(enter(on, id)), "403 disabled");
  assert.equal(codeOf(enter(on, id, { matched: false })), "401 signature", "which only its holder hears");
  assert.equal(on.ask(operator, "changeKey", { state: "enabled" }, { key: id }).status, 200);
  assert.equal(enter(on, id).status, 201);
});

test("what happens while a signature is looked at counts: the key is deleted, disabled, or another one", () => {
  const on = bench();
  const ann = logIn(on, "ann");
  const id = keyOf(add(on, ann));
  const gone = enter(on, id, { between: () => on.ask(ann, "deleteKey", {}, { key: id }) });
  assert.equal(codeOf(gone), "401 signature");
  const next = keyOf(add(on, ann));
  const off = enter(on, next, { between: () => on.ask(ann, "changeKey", { state: "disabled" }, { key: next }) });
  assert.equal(codeOf(off), "403 disabled");
});

test("with the key ends what it opened, of its user nothing else; a disabled user has no way in by it", () => {
  const on = bench();
  const ann = logIn(on, "ann");
  for (const end of [
    (id: string) => on.ask(ann, "deleteKey", {}, { key: id }),
    (id: string) => on.ask(ann, "changeKey", { state: "disabled" }, { key: id }),
  ]) {
    const [id, other] = [keyOf(add(on, ann)), keyOf(add(on, ann))];
    const [own, another] = [enter(on, id).session, enter(on, other).session];
    on.ticket(own, "shop", `t${id}`);
    assert.equal(on.look("shop", `t${id}`)?.open, true);
    assert.equal(end(id).status, 200);
    assert.ok(!isIn(on, own) && isIn(on, another));
    assert.equal(on.worth("shop", `t${id}`)?.open, false);
  }
  const id = keyOf(add(on, ann));
  on.ask(operator, "changeUser", { state: "disabled" }, { uid: uidOf(on, "ann") });
  assert.equal(codeOf(enter(on, id)), "403 disabled");
});

test("a key makes no key, for nobody", () => {
  const on = bench();
  const { session } = enter(on, keyOf(add(on, logIn(on, "rita"))));
  assert.equal(add(on, { session }).status, 403);
  assert.equal(add(on, { session }, uidOf(on, "ann")).status, 403);
  assert.equal(add(on, logIn(on, "rita"), uidOf(on, "ann")).status, 200);
});

test("keys of others are for who may, within reach, and of nobody stronger; what is beyond is not there", () => {
  const on = bench();
  const [ann, bob, dora] = [logIn(on, "ann"), logIn(on, "bob"), logIn(on, "dora")];
  const [ofAnn, ofBob, ofDora] = [ann, bob, dora].map((by) => keyOf(add(on, by))) as [string, string, string];
  const ask = (by: By, key: string): number => on.ask(by, "changeKey", { state: "enabled" }, { key }).status;
  assert.deepEqual([ask(ann, ofAnn), ask(ann, ofBob), ask(ann, ofDora)], [200, 404, 404]);
  assert.deepEqual(
    on.ask(ann, "deleteKey", {}, { key: ofBob }).body,
    JSON.parse(JSON.stringify(on.ask(ann, "deleteKey", {}, { key: "CELLX" }).body).replace("CELLX", ofBob)),
  );
  assert.deepEqual([ask(bob, ofDora), ask(dora, ofBob), ask(dora, ofAnn)], [403, 200, 200]);
  assert.equal(add(on, bob, uidOf(on, "dora")).status, 403);
  assert.equal(add(on, ann, uidOf(on, "bob")).status, 404);
  assert.equal(add(on, operator).status, 400, "the operator has none himself");
  const seen = (by: By): readonly string[] =>
    (on.ask(by, "listKeys").body as unknown as readonly KeySummary[]).map(({ id }) => id);
  assert.deepEqual([seen(ann), seen(bob), seen(dora).length], [[ofAnn], [ofBob], 3]);
});

test("an older store lets no key in: one that was deleted since would be back", () => {
  const before = bench();
  const id = keyOf(add(before, logIn(before, "rita")));
  const on = Bench.started(before.records, true);
  on.ms = atMs;
  assert.equal(codeOf(enter(on, id)), "503 held");
  assert.notEqual(on.logIn("rita", "ROOT", "of rita"), null, "who puts it right has a password");
  on.step({ kind: "excused", peer: peerName("tenancy") });
  assert.equal(enter(on, id).status, 201);
});

test("with its user a key is gone, also where a version that knows no keys deleted him", () => {
  const on = bench();
  const ann = logIn(on, "ann");
  const id = keyOf(add(on, ann));
  const uid = uidOf(on, "ann");
  on.ask(operator, "deleteUser", {}, { uid });
  assert.ok(!on.records.has(`key/${id}`));
  const other = bench();
  const left = keyOf(add(other, logIn(other, "ann")));
  other.records.delete(`user/${uidOf(other, "ann")}`);
  const again = Bench.started(other.records);
  assert.ok(!again.records.has(`key/${left}`));
  assert.equal(codeOf(enter(again, left, { date: dateOf(again.ms), matched: false })), "401 signature");
});

test("a user has so many keys and no more", () => {
  const on = bench();
  const ann = logIn(on, "ann");
  for (let count = 0; count < 16; count += 1) assert.equal(add(on, ann).status, 200);
  assert.equal(add(on, ann).status, 409);
  assert.equal(add(on, logIn(on, "bob")).status, 200);
});

test("the one session of a key is told while it goes on for a while, and not of one that is disabled", () => {
  const on = bench();
  const id = keyOf(add(on, logIn(on, "ann")));
  const live = (): readonly string[] =>
    (on.request({ kind: "signed-begin", signed: signedBy(on, id), source: "here" }).body as unknown as SignedBegun)
      .live;
  assert.deepEqual(live(), []);
  const { session } = enter(on, id);
  assert.deepEqual(live(), [session]);
  on.ms += 11.5 * 60 * 60_000;
  assert.deepEqual(live(), [], "the next request begins another");
  on.ms = atMs;
  on.ask(operator, "changeAccount", { state: "disabled" }, { uid: on.uidOf("ROOT/acme/dev") });
  assert.deepEqual(live(), []);
});

test("what a key has opened ends with it also where the service was started again meanwhile", () => {
  const before = bench();
  const ann = logIn(before, "ann");
  const id = keyOf(add(before, ann));
  const { session } = enter(before, id);
  const on = Bench.started(before.records);
  on.ms = atMs;
  assert.ok(isIn(on, session));
  assert.equal(on.ask(ann, "deleteKey", {}, { key: id }).status, 200);
  assert.ok(!isIn(on, session));
});
