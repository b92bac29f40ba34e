import assert from "node:assert/strict";
import { test } from "node:test";
import { encode } from "dns-packet";
import { bytesOf, errors, refusalOf, type Signature, signatureOf, signed, type TsigKey } from "./tsig.ts";

const key: TsigKey = { name: "transfer", secret: Buffer.alloc(32, 7) };
const now = 1_800_000_000;
const query = encode({ type: "query", id: 77, questions: [{ name: "cloud.example.org", type: "SOA" }] });
const [whole] = signed(key, null, [query], now) as [Buffer];
const look = (packet: Buffer, nowS = now, keys: readonly TsigKey[] = [key]): Promise<Signature> =>
  signatureOf(
    packet,
    async (name) => keys.find((each) => each.name === name) ?? null,
    () => nowS,
  );
const errorOf = (signature: Signature): unknown => (signature.kind === "bad" ? signature.error : signature.kind);

test("who has the secret is believed, and the message is what it was without the signature", async () => {
  const found = await look(whole);
  assert.ok(found.kind === "good");
  assert.deepEqual(found.message, query);
  assert.equal(whole.length, query.length + bytesOf(key));
  // A forwarder has given it another number: what was signed stands in the signature.
  const forwarded = Buffer.from(whole);
  forwarded.writeUInt16BE(78, 0);
  assert.equal((await look(forwarded)).kind, "good");
  assert.deepEqual(await look(query), { kind: "none" });
});

test("each octet counts: with any other one nothing is good, and nothing throws", async () => {
  for (let at = 0; at < whole.length; at += 1)
    for (const bit of [1, 32, 128]) {
      const other = Buffer.from(whole);
      other[at] = (other[at] ?? 0) ^ bit;
      const found = await look(other);
      // Its number stands a second time where it is signed; letters of names are compared without case, which is how they are signed.
      const isOfId = at < 2;
      const isCase = bit === 32 && found.kind === "good" && at > query.length;
      if (!isOfId && !isCase) assert.notEqual(found.kind, "good", `octet ${at}`);
    }
  for (let length = 0; length < whole.length; length += 1)
    assert.equal((await look(whole.subarray(0, length))).kind, "malformed", `${length} octets`);
});

test("another secret, another name, another time and half a signature are told apart", async () => {
  const [other] = signed({ ...key, secret: Buffer.alloc(32, 8) }, null, [query], now) as [Buffer];
  assert.equal(errorOf(await look(other)), errors.BADSIG);
  const [unknown] = signed({ ...key, name: "other" }, null, [query], now) as [Buffer];
  assert.equal(errorOf(await look(unknown)), errors.BADKEY);
  assert.equal(errorOf(await look(whole, now, [])), errors.BADKEY);
  for (const nowS of [now - 301, now + 301]) assert.equal(errorOf(await look(whole, nowS)), errors.BADTIME);
  for (const nowS of [now - 300, now + 300]) assert.equal(errorOf(await look(whole, nowS)), "good");
  // The algorithm is the first thing in its data: hmac-sha256 to hmac-sha255.
  const weaker = Buffer.from(whole);
  weaker[weaker.indexOf("sha256") + 5] = 0x35;
  assert.equal(errorOf(await look(weaker)), errors.BADKEY);
  assert.equal(errorOf(await look(shortened(16))), errors.BADTRUNC);
  assert.equal(errorOf(await look(shortened(15))), "malformed");
});

/** The same with so many octets of its signature. */
function shortened(octets: number): Buffer {
  const macAt = whole.length - 6 - 32;
  const data = macAt - 2 - 8 - "hmac-sha256".length - 2;
  const short = Buffer.concat([whole.subarray(0, macAt + octets), whole.subarray(macAt + 32)]);
  short.writeUInt16BE(octets, macAt - 2);
  short.writeUInt16BE(short.readUInt16BE(data - 2) - (32 - octets), data - 2);
  return short;
}

test("it stands last and alone", async () => {
  const [twice] = signed(key, null, [whole], now) as [Buffer];
  assert.equal((await look(twice)).kind, "malformed");
  assert.equal((await look(Buffer.concat([whole, Buffer.from([0])]))).kind, "malformed");
  const elsewhere = Buffer.from(whole);
  elsewhere.writeUInt16BE(1, 6);
  elsewhere.writeUInt16BE(0, 10);
  assert.equal((await look(elsewhere)).kind, "malformed", "among the answers");
});

test("messages of one answer hang together: none is left out, put elsewhere, or another answer's", async () => {
  const question = await look(whole);
  assert.ok(question.kind === "good");
  const part = (name: string): Buffer =>
    encode({ type: "response", id: 77, answers: [{ name, type: "A", ttl: 60, data: "198.18.0.5" }] });
  const parts = ["a.example.org", "b.example.org", "c.example.org"].map(part);
  const answer = signed(key, question.mac, parts, now);
  const macs = (messages: readonly Buffer[]): readonly string[] =>
    messages.map((each) => each.subarray(each.length - 6 - 32, each.length - 6).toString("hex"));
  assert.deepEqual(macs(signed(key, question.mac, parts, now)), macs(answer));
  const without = macs(signed(key, question.mac, [parts[0] as Buffer, parts[2] as Buffer], now));
  assert.equal(without[0], macs(answer)[0]);
  assert.notEqual(without[1], macs(answer)[2]);
  const another = signed(key, Buffer.alloc(32, 1), parts, now);
  for (const [index, mac] of macs(another).entries()) assert.notEqual(mac, macs(answer)[index]);
});

test("a refusal says why, and is signed for whoever is known to have the key and for nobody else", async () => {
  const response = encode({
    type: "response",
    id: 77,
    flags: 9,
    questions: [{ name: "cloud.example.org", type: "SOA" }],
  });
  const late = await look(whole, now + 1_000);
  assert.ok(late.kind === "bad");
  const told = refusalOf(late, response, now + 1_000);
  assert.equal(told.readUInt16BE(told.length - 6 - 4), errors.BADTIME);
  assert.equal(told.readUIntBE(told.length - 6, 6), now + 1_000, "with the time here");
  assert.notEqual(told.subarray(told.length - 12 - 32, told.length - 12).compare(Buffer.alloc(32)), 0);
  const stranger = await look(whole, now, []);
  assert.ok(stranger.kind === "bad");
  const refused = refusalOf(stranger, response, now);
  assert.equal(refused.length, response.length + bytesOf(key) - 32);
  assert.equal(refused.readUInt16BE(refused.length - 4), errors.BADKEY);
});
