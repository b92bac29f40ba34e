import assert from "node:assert/strict";
import { test } from "node:test";
import { signInTimes } from "../../model/contract/tenancy/sign-in.ts";
import { SignIns } from "./kept.ts";

const { idleMs, longestMs, codeMs } = signInTimes;
function clocked() {
  const clock = { ms: 0 };
  return { clock, signIns: new SignIns(() => clock.ms) };
}

test("a sign-in opens what it was begun with until it is idle for an hour, is twelve hours old, or is ended", () => {
  const { clock, signIns } = clocked();
  const idle = signIns.begin("operator", false);
  clock.ms += idleMs - 1;
  assert.equal(signIns.open(idle)?.credential, "operator", "and is not idle by that");
  clock.ms += idleMs;
  assert.equal(signIns.open(idle), null);

  const busy = signIns.begin("operator", false);
  for (const endMs = clock.ms + longestMs; clock.ms + idleMs / 2 < endMs; clock.ms += idleMs / 2)
    assert.ok(signIns.open(busy));
  clock.ms += idleMs / 2;
  assert.equal(signIns.open(busy), null);

  const ended = signIns.begin("ann", true);
  assert.equal(signIns.open(ended)?.isOwn, true);
  signIns.end(ended);
  assert.equal(signIns.open(ended), null);

  const short = signIns.begin("ann", true, 1000);
  clock.ms += 999;
  assert.equal(signIns.open(short)?.leftMs, 1);
  clock.ms += 1;
  assert.equal(signIns.open(short), null, "a session that ends sooner takes its sign-in along");
  assert.equal(signIns.open("made up"), null);
});

test("what was opened with a sign-in ends with it, whichever way that ends", () => {
  const { clock, signIns } = clocked();
  const ended: string[] = [];
  const [out, idle] = [signIns.begin("a", false), signIns.begin("b", false)];
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
  const once = signIns.makeCode("operator") ?? assert.fail();
  assert.equal(signIns.takeCode(once), "operator");
  assert.equal(signIns.takeCode(once), null);
  const late = signIns.makeCode("operator") ?? assert.fail();
  clock.ms += codeMs;
  assert.equal(signIns.takeCode(late), null);
  assert.equal(signIns.open(signIns.makeCode("operator") ?? ""), null, "a code is no cookie");
  assert.equal(signIns.takeCode(signIns.begin("operator", false)), null, "and a cookie no code");
});

test("of one person so many are kept, and he is in nobody's way", () => {
  const { clock, signIns } = clocked();
  const first = signIns.begin("ann", false);
  const other = signIns.begin("bob", false);
  for (let n = 0; n < 32; n += 1) signIns.begin("ann", false);
  assert.equal(signIns.open(first), null, "the oldest has ended");
  assert.ok(signIns.open(other));
  let codes = 0;
  while (signIns.makeCode("ann") !== null) codes += 1;
  assert.equal(codes, 8);
  assert.ok(signIns.makeCode("bob"));
  clock.ms += codeMs;
  assert.ok(signIns.makeCode("ann"), "there is room again when they are over");
});
