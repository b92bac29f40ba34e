import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { hostName } from "../../../model/cell/identifiers.ts";
import { createGossip, type GossipPacket, stepGossip } from "../../distribution/gossip.ts";
import { decodePacket, packetBytes, type Seal } from "../swim/codec.ts";
import { decodeBroadcast, encodeBroadcast, isBroadcast } from "./codec.ts";
import { deathGossip, deathItem, deathOf } from "./death-broadcast.ts";

const sumOf = (bytes: Uint8Array, length: number): number =>
  bytes.subarray(0, length).reduce((sum, byte) => (sum + byte) % 251, 1);
const seal: Seal = {
  sign: (bytes, length) => void bytes.fill(sumOf(bytes, length), length),
  verify: (bytes, length) => bytes.subarray(length).every((byte) => byte === sumOf(bytes, length)),
};
const from = hostName("h0001");
const words = Array.from({ length: 128 }, (_, at) => (at * 0x9e3779b1) >>> 0);

test("broadcasts are read as they were written, in one datagram", () => {
  const packets: GossipPacket[] = [
    { kind: "tell", items: [deathItem({ host: hostName("h2"), generation: 3 })] },
    { kind: "tell", items: [{ source: "a", generation: 1, sequence: 1, key: "ü/€", value: "\u{1f600}" }] },
    { kind: "digest", digest: words, answer: true },
    { kind: "digest", digest: words.map(() => 0), answer: false },
    { kind: "want", buckets: Array.from({ length: 64 }, (_, at) => at) },
  ];
  for (const packet of packets) {
    const bytes = encodeBroadcast(hostName("h".repeat(63)), packet, seal) ?? assert.fail(packet.kind);
    assert.ok(bytes.length <= packetBytes && isBroadcast(bytes));
    assert.deepEqual(decodeBroadcast(bytes, seal), { ok: true, value: { from: "h".repeat(63), packet } });
    // Whoever knows membership packets only passes it over.
    assert.deepEqual(decodePacket(bytes, seal), { ok: false, error: "unknown kind" });
  }
  const long = { ...deathItem({ host: from, generation: 1 }), value: "x".repeat(1400) };
  assert.equal(encodeBroadcast(from, { kind: "tell", items: [long] }, seal), null);
});

test("what gossip of a thousand deaths makes fits into datagrams", () => {
  const state = createGossip({ self: "h1", seed: 1, config: deathGossip }, 0);
  const packets: GossipPacket[] = [];
  const step = (input: Parameters<typeof stepGossip>[1], now: number): void => {
    for (const { packet } of stepGossip(state, input, now).packets) packets.push(packet);
  };
  step({ kind: "members", members: ["h1", "h2", "h3"] }, 0);
  for (let at = 0; at < 1000; at += 1)
    step({ kind: "say", item: deathItem({ host: hostName(`host-with-a-long-name-${at}`), generation: at }) }, 0);
  for (let now = 1; now < 90_000; now += 400) step({ kind: "wake" }, now);
  assert.ok(packets.some(({ kind }) => kind === "digest") && packets.some(({ kind }) => kind === "tell"));
  for (const packet of packets) assert.ok((encodeBroadcast(from, packet, seal)?.length ?? 9999) <= packetBytes);
});

test("garbage, another key, another version and what is no death are refused", () => {
  const bytes = encodeBroadcast(from, { kind: "want", buckets: [1] }, seal) ?? assert.fail();
  const changed = (at: number, byte: number): Uint8Array => {
    const copy = bytes.slice();
    copy[at] = byte;
    return copy;
  };
  const faultOf = (given: Uint8Array): string | null => {
    const read = decodeBroadcast(given, seal);
    return read.ok ? null : read.error;
  };
  assert.equal(faultOf(changed(0, 1)), "not a packet");
  assert.equal(faultOf(changed(2, 3)), "version");
  assert.equal(faultOf(changed(30, 1)), "tag");
  assert.equal(faultOf(bytes.slice(0, 20)), "too short");
  assert.equal(faultOf(new Uint8Array(1500)), "too long");
  const trusting: Seal = { ...seal, verify: () => true };
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (tail) => {
      const given = new Uint8Array([...bytes.slice(0, 22), ...tail]);
      const read = decodeBroadcast(given, trusting);
      if (read.ok) assert.equal(typeof read.value.packet, "object");
    }),
  );
  const death = deathItem({ host: from, generation: 4 });
  assert.deepEqual(deathOf(death), { host: from, generation: 4 });
  assert.equal(deathOf({ ...death, source: "h1" }), null);
  assert.equal(deathOf({ ...death, key: "dead/H 1" }), null);
  assert.equal(deathOf({ ...death, value: null }), null);
});
