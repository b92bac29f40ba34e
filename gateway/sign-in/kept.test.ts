import assert from "node:assert/strict";
import { test } from "node:test";
import { signInTimes } from "../../model/contract/tenancy/sign-in.ts";
import type { Person } from "../requests/credentials.ts";
import { SignIns } from "./kept.ts";

/** Of an account of the same name, unless it is said. */
const person = (name: string, account = name): Person => ({ person: name, scope: { kind: "account", account } });
const { idleMs, longestMs, codeMs } = signInTimes;
function clocked() {
  const clock = { ms: 0 };
  return { clock, signIns: new SignIns(() => clock.ms) };
}

test("a sign-in opens what it was begun with until it is idle for an hour, is twelve hours old, or is ended", () => {
  const { clock, signIns } = clocked();
  const idle = signIns.begin("operator", { isOwn: false }, person("operator"));
  clock.ms += idleMs - 1;
  assert.equal(signIns.open(idle)?.credential, "operator", "and is not idle by that");
  clock.ms += idleMs;
  assert.equal(signIns.open(idle), null);

  const busy = signIns.begin("operator", { isOwn: false }, person("operator"));
  for (const endMs = clock.ms + longestMs; clock.ms + idleMs / 2 < endMs; clock.ms += idleMs / 2)
    assert.ok(signIns.open(busy));
  clock.ms += idleMs / 2;
  assert.equal(signIns.open(busy), null);

  const ended = signIns.begin("ann", { isOwn: true }, person("ann"));
  assert.equal(signIns.open(ended)?.isOwn, true);
  signIns.end(ended);
  assert.equal(signIns.open(ended), null);

  const short = signIns.begin("ann", { isOwn: true, leftMs: 1000 }, person("ann"));
  clock.ms += 999;
  assert.equal(signIns.open(short)?.leftMs, 1);
  clock.ms += 1;
  assert.equal(signIns.open(short), null, "a session that ends sooner takes its sign-in along");
  assert.equal(signIns.open("made up"), null);
});

test("what was opened with a sign-in ends with it, whichever way that ends", () => {
  const { clock, signIns } = clocked();
  const ended: string[] = [];
  const [out, idle] = [
    signIns.begin("a", { isOwn: false }, person("a")),
    signIns.begin("b", { isOwn: false }, person("b")),
  ];
  signIns.hold(out, () => ended.push("out"));
  signIns.hold(idle, () => ended.push("idle"));
  signIns.hold(idle, () => ended.push("left before"))();
  signIns.end(out);
  assert.deepEqual(ended, ["out"]);
  clock.ms += idleMs;
  signIns.sweep();
  assert.deepEqual(ended, ["out", "idle"]);
});

test("a one-time code opens once, within a minute", () => {
  const { clock, signIns } = clocked();
  const once = signIns.makeCode("operator", person("operator")) ?? assert.fail();
  assert.equal(signIns.takeCode(once), "operator");
  assert.equal(signIns.takeCode(once), null);
  const late = signIns.makeCode("operator", person("operator")) ?? assert.fail();
  clock.ms += codeMs;
  assert.equal(signIns.takeCode(late), null);
  assert.equal(signIns.open(signIns.makeCode("operator", person("operator")) ?? ""), null, "a code is no cookie");
  assert.equal(
    signIns.takeCode(signIns.begin("operator", { isOwn: false }, person("operator"))),
    null,
    "and a cookie no code",
  );
});

test("of one person so many are kept, and he is in nobody's way", () => {
  const { clock, signIns } = clocked();
  const first = signIns.begin("ann", { isOwn: false }, person("ann"));
  const other = signIns.begin("bob", { isOwn: false }, person("bob"));
  for (let n = 0; n < 32; n += 1) signIns.begin("ann", { isOwn: false }, person("ann"));
  assert.equal(signIns.open(first), null, "the oldest has ended");
  assert.ok(signIns.open(other));
  let codes = 0;
  while (signIns.makeCode("ann", person("ann")) !== null) codes += 1;
  assert.equal(codes, 8);
  assert.ok(signIns.makeCode("bob", person("bob")));
  clock.ms += codeMs;
  assert.ok(signIns.makeCode("ann", person("ann")), "there is room again when they are over");
});

test("whoever signs in ever so often, by ever so many of his credentials, throws out himself alone", () => {
  const { signIns } = clocked();
  const bob = signIns.begin("bob", { isOwn: false }, person("bob"));
  const other = signIns.begin("joe", { isOwn: false }, person("joe", "ann"));
  const first = signIns.begin("ann-first", { isOwn: false }, person("ann"));
  let last = "";
  for (let n = 0; n < 4200; n += 1) last = signIns.begin(`ann-${n}`, { isOwn: false }, person("ann"));
  assert.equal(signIns.open(first), null);
  assert.ok(signIns.open(last));
  assert.ok(signIns.open(bob), "nobody else's sign-in has ended");
  assert.ok(signIns.open(other), "nor that of a colleague");
});

test("one account's people together have a share, and with many accounts the oldest of the largest goes", () => {
  const { signIns } = clocked();
  const bob = signIns.begin("bob", { isOwn: false }, person("bob"));
  const ann = signIns.begin("ann", { isOwn: false }, person("ann", "many"));
  for (let n = 0; n < 600; n += 1) signIns.begin(`u${n}`, { isOwn: false }, person(`u${n}`, "many"));
  assert.equal(signIns.open(ann), null, "the oldest of the account");
  for (let n = 0; n < 4096; n += 1) signIns.begin(`v${n}`, { isOwn: false }, person(`v${n}`, `crowd${n % 9}`));
  assert.ok(signIns.open(bob));
  let codes = 0;
  while (codes < 2000 && signIns.makeCode(`w${codes}`, person(`w${codes}`, "many")) !== null) codes += 1;
  assert.equal(codes, 128);
  assert.ok(signIns.makeCode("bob", person("bob")));
});
