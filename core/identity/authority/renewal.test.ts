import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { peerName } from "../../../model/cell/identifiers.ts";
import { clockFault, isDue, nextAsk } from "./renewal.ts";

const hour = 3_600_000;
const [placer, host] = [peerName("placer"), peerName("host.h1")];
const held = { validFromMs: 0, validToMs: 25 * hour };
const end = held.validToMs;

test("a certificate is renewed at two thirds of its time, a tenth of it earlier by chance", () => {
  const at = (nowMs: number, chance: number) => nextAsk(placer, held, 0, nowMs, chance);
  assert.deepEqual({ ...at(end * 0.65, 0), inMs: 0 }, { how: "renew", inMs: 0, usable: true });
  assert.equal(Math.round(at(end * 0.65, 0).inMs), Math.round(end * (2 / 3 - 0.65)));
  assert.ok(Math.abs(at(end * 0.6, 0.5).inMs - end * (2 / 3 - 0.05 - 0.6)) < 1);
  assert.ok(isDue(at(end * 0.67, 0)) && isDue(at(end * 0.6, 0.99)) && !isDue(at(end * 0.6, 0)));
  assert.equal(at(0, 0).inMs, hour, "it looks at the clock again every hour");
});

test("without a certificate it enrols at once, and then with back-off up to five minutes", () => {
  assert.deepEqual(nextAsk(placer, null, 0, 7, 0), { how: "enrol", inMs: 0, usable: false });
  const waits = [1, 2, 3, 9, 10, 1000].map((attempts) => nextAsk(placer, null, attempts, 7, 1).inMs);
  assert.deepEqual(waits, [1000, 2000, 4000, 256_000, 300_000, 300_000]);
  assert.equal(nextAsk(placer, null, 1, 7, 0).inMs, 500);
});

test("past its end it enrols anew; a host, whose key is pinned, renews and takes part meanwhile", () => {
  assert.deepEqual(nextAsk(placer, held, 0, end + 1, 0), { how: "enrol", inMs: 0, usable: false });
  assert.deepEqual(nextAsk(host, held, 0, end + 1, 0), { how: "renew", inMs: 0, usable: true });
  assert.deepEqual(nextAsk(host, null, 0, end + 1, 0), { how: "enrol", inMs: 0, usable: false });
  assert.equal(nextAsk(placer, held, 0, end, 0).how, "renew");
  assert.equal(nextAsk(placer, held, 0, -1, 0).usable, false, "a slow clock");
  assert.equal(nextAsk(placer, held, 0, -hour, 0).inMs, 60_000, "which may be set any minute");
  assert.equal(nextAsk(host, held, 0, -1, 0).usable, true);
});

test("while the authority is away it asks at least three times before the end", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 6_000, max: 25 * hour }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      (life, chance) => {
        const short = { validFromMs: 0, validToMs: life };
        let [nowMs, asked] = [0, 0];
        for (let turn = 0; turn < 1000 && nowMs <= life; turn += 1) {
          const next = nextAsk(placer, short, asked, nowMs, chance);
          assert.ok(next.inMs >= 0);
          nowMs += next.inMs;
          if (nowMs <= life && (asked > 0 || isDue(nextAsk(placer, short, 0, nowMs, chance)))) asked += 1;
        }
        assert.ok(asked >= 3, `${asked} of ${life}`);
      },
    ),
  );
});

test("clocks that differ by more than certificates bear are told apart", () => {
  const day = 24 * hour;
  assert.equal(clockFault(0, hour, day), null);
  assert.equal(clockFault(hour, 0, day), null);
  assert.match(clockFault(0, 2 * hour, day) ?? "", /clock is 2 hours slow .* bear 1 hour/);
  assert.match(clockFault(50 * hour, 0, day) ?? "", /clock is 2 days fast/);
  assert.match(clockFault(0, 2000, 24_000) ?? "", /bear 1 second/);
});
