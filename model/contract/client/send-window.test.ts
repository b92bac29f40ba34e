import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { SendWindow } from "./send-window.ts";

test("what is typed arrives whole and in its order, and no more of it is under way than may be", () => {
  const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 60_000 }), { maxLength: 12 });
  fc.assert(
    fc.property(pieces, fc.array(fc.nat(50_000)), (typed, acknowledged) => {
      const window = new SendWindow(64 * 1024);
      const sent: Uint8Array[] = [];
      let untaken = 0;
      const send = (ready: readonly Uint8Array[]): void => {
        for (const piece of ready) {
          sent.push(piece);
          untaken += piece.length;
        }
        assert.ok(untaken <= 64 * 1024, `${untaken} bytes are under way`);
      };
      const acknowledge = (bytes: number): void => {
        const some = Math.min(bytes, untaken);
        untaken -= some;
        send(window.taken(some));
      };
      typed.forEach((bytes, at) => {
        send(window.add(bytes) ?? assert.fail("there is room"));
        acknowledge(acknowledged[at] ?? 0);
      });
      while (untaken > 0) acknowledge(untaken);
      assert.deepEqual(Buffer.concat(sent), Buffer.concat(typed));
    }),
    { numRuns: 200 },
  );
});

test("what has no room is refused whole", () => {
  const window = new SendWindow(10, 100);
  assert.equal(window.add(new Uint8Array(100))?.length, 1);
  assert.equal(window.add(new Uint8Array(11)), null);
  assert.equal(window.add(new Uint8Array(10))?.length, 0);
  assert.deepEqual(
    window.taken(10).map((piece) => piece.length),
    [10],
  );
  assert.equal(window.isEmpty, false);
  for (let left = 90; left > 0; left -= 10) window.taken(10);
  assert.equal(window.isEmpty, true, "all of it is under way");
});
