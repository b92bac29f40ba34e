import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { hostName } from "../../../model/cell/identifiers.ts";
import {
  decodePacket,
  encodePacket,
  packetBytes,
  packetVersion,
  type Seal,
  sizeOf,
  tagBytes,
  updateRoom,
} from "./codec.ts";
import { createQueue, enqueue, takeUpdates } from "./gossip.ts";
import type { Packet, Update } from "./types.ts";

/** A sum is no authentication, but one wrong bit is enough to fail it. */
const tagOf = (body: Uint8Array): Uint8Array => {
  const tag = new Uint8Array(tagBytes);
  let sum = 7;
  for (const byte of body) sum = (Math.imul(sum, 31) + byte) >>> 0;
  new DataView(tag.buffer).setUint32(0, sum);
  return tag;
};
const seal: Seal = {
  sign: (bytes, length) => bytes.set(tagOf(bytes.subarray(0, length)), length),
  verify: (bytes, length) => tagOf(bytes.subarray(0, length)).every((byte, index) => byte === bytes[length + index]),
};

const name = fc
  .string({ unit: fc.constantFrom(..."abcxyz0189-"), minLength: 1, maxLength: 63 })
  .map((text) => hostName(text));
const generation = fc.integer({ min: 0, max: 2 ** 48 - 2 });
const incarnation = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const update: fc.Arbitrary<Update> = fc.oneof(
  fc.record({
    status: fc.constantFrom("alive" as const, "dead" as const, "left" as const),
    host: name,
    generation,
    incarnation,
    from: fc.constant(null),
  }),
  fc.record({ status: fc.constant("suspect" as const), host: name, generation, incarnation, from: name }),
);
const base = { seq: incarnation, from: name, generation, incarnation, digest: incarnation };
const packet: fc.Arbitrary<Packet> = fc
  .oneof(
    fc.record({
      kind: fc.constantFrom("ping" as const, "ack" as const, "ping-req" as const, "nack" as const),
      ...base,
      target: name,
      updates: fc.array(update, { maxLength: 7 }),
    }),
    fc.record({
      kind: fc.constant("gossip" as const),
      ...base,
      target: fc.constant(null),
      updates: fc.array(update, { maxLength: 7 }),
    }),
  )
  .filter((candidate) => sizeOf(candidate) <= packetBytes);
const example: Packet = {
  kind: "ping",
  seq: 1,
  from: hostName("h1"),
  generation: 1_700_000_000_000,
  incarnation: 2,
  target: hostName("h2"),
  digest: 3,
  updates: [{ status: "suspect", host: hostName("h3"), generation: 4, incarnation: 5, from: hostName("h4") }],
};
/** Its bytes with some of them changed, and a right tag again. */
const resealed = (change: (bytes: Uint8Array) => Uint8Array | undefined): Uint8Array => {
  const bytes = encodePacket(example, seal);
  const body = bytes.slice(0, bytes.length - tagBytes);
  const changed = change(body) ?? body;
  const whole = new Uint8Array(changed.length + tagBytes);
  whole.set(changed);
  seal.sign(whole, changed.length);
  return whole;
};

test("property: a packet comes back as it was, and is as long as was said", () => {
  fc.assert(
    fc.property(packet, (sent) => {
      const bytes = encodePacket(sent, seal);
      assert.equal(bytes.length, sizeOf(sent));
      // Records of fast-check have no prototype.
      assert.deepEqual(decodePacket(bytes, seal), { ok: true, value: structuredClone(sent) });
    }),
    { numRuns: 300 },
  );
});

test("property: no bytes make the reader throw, and one wrong bit is refused", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 1500 }), (bytes) => {
      assert.ok(!decodePacket(bytes, seal).ok);
      // The same behind a right head and with a right tag: then it is the form that is looked at.
      decodePacket(
        resealed((body) => new Uint8Array([...body.slice(0, 22), ...bytes.slice(0, 1300)])),
        seal,
      );
    }),
    { numRuns: 1000 },
  );
  fc.assert(
    fc.property(packet, fc.nat(), fc.nat(7), (sent, at, bit) => {
      const bytes = encodePacket(sent, seal);
      const index = at % bytes.length;
      bytes[index] = (bytes[index] ?? 0) ^ (1 << bit);
      assert.ok(!decodePacket(bytes, seal).ok);
    }),
    { numRuns: 300 },
  );
});

test("a packet of wrong form is refused as a whole: a letter, a name, a suspicion by nobody, something behind its end, too many bytes", () => {
  const faultOf = (change: (body: Uint8Array) => Uint8Array | undefined): string | null => {
    const read = decodePacket(resealed(change), seal);
    return read.ok ? null : read.error;
  };
  const put = (at: number, ...bytes: readonly number[]) => {
    return (body: Uint8Array): undefined => {
      for (const [index, byte] of bytes.entries()) body[at + index] = byte;
    };
  };
  assert.equal(
    faultOf(() => undefined),
    null,
  );
  // Behind the head: length and name of the sender, as `example` has them.
  assert.equal(faultOf(put(23, "H".charCodeAt(0))), "malformed");
  assert.equal(faultOf(put(22, 64)), "malformed");
  // The status of the one update, which is a suspicion by somebody.
  assert.equal(faultOf(put(22 + 3 + 3 + 1 + 1, 0)), "malformed");
  assert.equal(
    faultOf((body) => new Uint8Array([...body, 9])),
    "malformed",
  );
  assert.equal(
    faultOf((body) => new Uint8Array([...body, ...new Uint8Array(1400)])),
    "too long",
  );
});

test("the previous and the next version are read, others are refused", () => {
  const of = (version: number) =>
    decodePacket(
      resealed((body) => {
        body[2] = version;
        return undefined;
      }),
      seal,
    );
  assert.deepEqual(of(packetVersion - 1), { ok: true, value: example });
  assert.deepEqual(of(packetVersion + 1), { ok: true, value: example });
  assert.deepEqual(of(packetVersion + 2), { ok: false, error: "version" });
});

test("what the next version adds is passed over: a field, a status, a kind", () => {
  const start = 22 + 3 + 3 + 1;
  const longer = (version: number) =>
    decodePacket(
      resealed((body) => {
        const bytes = new Uint8Array([...body, 9, 9]);
        bytes[2] = version;
        bytes[start] = (bytes[start] ?? 0) + 2;
        return bytes;
      }),
      seal,
    );
  assert.deepEqual(longer(packetVersion + 1), { ok: true, value: example });
  const beyond = decodePacket(
    resealed((body) => {
      body[2] = packetVersion + 1;
      body[start] = 250;
      return undefined;
    }),
    seal,
  );
  assert.deepEqual(beyond, { ok: false, error: "malformed" }, "an update that is longer than the packet");
  const status = decodePacket(
    resealed((body) => {
      body[start + 1] = 200;
      return undefined;
    }),
    seal,
  );
  assert.deepEqual(status, { ok: true, value: { ...example, updates: [] } });
  const kind = decodePacket(
    resealed((body) => {
      body[3] = 77;
      return undefined;
    }),
    seal,
  );
  assert.deepEqual(kind, { ok: false, error: "unknown kind" });
});

test("a packet of the longest names stays within a frame, and every update is told its number of times, least told first", () => {
  const long = (number: number) => hostName(`${number}`.padStart(63, "h"));
  const queue = createQueue();
  for (let number = 0; number < 50; number += 1)
    enqueue(queue, { status: "suspect", host: long(number), generation: 1, incarnation: 0, from: long(99) });
  const told = new Map<string, number>();
  const limit = 3;
  for (let rounds = 0; rounds < 100 && queue.byHost.size > 0; rounds += 1) {
    const updates = takeUpdates(queue, updateRoom(long(1), long(2)), limit, null);
    assert.ok(updates.length > 0);
    const bytes = encodePacket({ ...example, from: long(1), target: long(2), updates }, seal);
    assert.ok(bytes.length <= packetBytes);
    for (const { host } of updates) told.set(host, (told.get(host) ?? 0) + 1);
    const counts = [...told.values()];
    if (told.size < 50) assert.ok(Math.max(...counts) === 1, "nothing is told again before all was told once");
  }
  assert.equal(told.size, 50);
  assert.ok([...told.values()].every((count) => count === limit));
});

test("a newer word replaces an older one in the queue, and superseded ones do not pile up", () => {
  const queue = createQueue();
  const host = hostName("h1");
  for (let incarnation = 0; incarnation < 10_000; incarnation += 1)
    enqueue(queue, { status: "alive", host, generation: 1, incarnation, from: null });
  assert.ok((queue.buckets[0]?.length ?? 0) < 100);
  const updates = takeUpdates(queue, 1000, 5, null);
  assert.deepEqual(
    updates.map(({ incarnation }) => incarnation),
    [9999],
  );
});
