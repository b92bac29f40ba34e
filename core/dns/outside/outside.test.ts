import assert from "node:assert/strict";
import { test } from "node:test";
import { decode, encode, type RecordClass } from "dns-packet";
import { below, seedOf } from "../../random.ts";
import { type Guarded, type Heard, readAnswer } from "./answers.ts";
import { isAskable } from "./askable.ts";
import { NameCache } from "./cache.ts";
import { answerTo, parseQuery, questionTo } from "./message.ts";

/**
 * Names outside, against a library that writes and reads such messages otherwise: what is asked of whom, what of an answer is
 * believed, and for how long.
 */
const guarded: Guarded = {
  domain: "cells.internal",
  networks: ["10.0.0.0/16", "10.64.0.0/10", "198.18.0.0/15"],
  closed: ["10.0.0.0/16", "10.64.0.0/10"],
};
const question = { id: 4711, name: "www.example.org", type: 1 };
const a = (name: string, data: string, ttl = 60) => ({
  name,
  type: "A" as const,
  class: "IN" as RecordClass,
  ttl,
  data,
});
const alias = (name: string, data: string, ttl = 60) => ({ ...a(name, data, ttl), type: "CNAME" as const });
const soa = (name: string, ttl: number, minimum: number) => ({
  name,
  type: "SOA" as const,
  class: "IN" as RecordClass,
  ttl,
  data: { mname: "ns.example.org", rname: "admin.example.org", serial: 1, refresh: 1, retry: 1, expire: 1, minimum },
});
type Parts = Parameters<typeof encode>[0];
const packet = (parts: Partial<Parts> = {}): Buffer =>
  encode({
    type: "response",
    id: question.id,
    flags: 0x8180,
    questions: [{ name: question.name, type: "A" }],
    ...parts,
  } as Parts);
const read = (bytes: Uint8Array, asked = question): Heard => readAnswer(bytes, asked, guarded);
const found = (heard: Heard) => (heard.kind === "answer" ? heard.found : assert.fail(heard.kind));

test("nothing of the inside is asked outside, nor what is nobody's there", () => {
  const asked = [
    "www.example.org",
    "_dmarc.example.org",
    "8.8.8.8.in-addr.arpa",
    "8.in-addr.arpa",
    "cells.internal.example.org",
  ];
  for (const name of asked) assert.ok(isAskable(name, guarded), name);
  const kept = [
    "cells.internal",
    "web1.shop.cells.internal",
    "web1.shop.cell.internal",
    "db",
    "10.64.0.2",
    "",
    "printer.local",
    "x.onion",
    "a.home.arpa",
    // Of the underlay, the pools, and whatever is private; the networks around them; and below them.
    "2.0.64.10.in-addr.arpa",
    "64.10.in-addr.arpa",
    "10.in-addr.arpa",
    "in-addr.arpa",
    "7.0.18.198.in-addr.arpa",
    "198.in-addr.arpa",
    "1.1.168.192.in-addr.arpa",
    "b._dns-sd._udp.0.0.64.10.in-addr.arpa",
    "010.in-addr.arpa",
    "300.1.in-addr.arpa",
    "d.f.ip6.arpa",
    "ip6.arpa",
    `${"0.".repeat(32)}ip6.arpa`,
  ];
  for (const name of kept) assert.ok(!isAskable(name, guarded), name);
  // Also where the cloud's domain is below one that is somebody's.
  const elsewhere = { ...guarded, domain: "cloud.example.com" };
  for (const name of ["cloud.example.com", "web1.shop.cloud.example.com"]) assert.ok(!isAskable(name, elsewhere), name);
  for (const name of ["www.example.com", "xcloud.example.com"]) assert.ok(isAskable(name, elsewhere), name);
  assert.ok(isAskable(`${"8.".repeat(4)}1.0.0.2.ip6.arpa`, guarded));
});

test("a question goes out with its name and its type, and nothing else of the asker's", () => {
  const own = encode({
    type: "query",
    id: 9,
    flags: 0x0100,
    questions: [{ name: "WWW.example.ORG", type: "A" }],
    additionals: [
      { type: "OPT", name: ".", udpPayloadSize: 4096, flags: 0, options: [{ code: "CLIENT_SUBNET", ip: "10.64.0.2" }] },
    ],
  } as unknown as Parts);
  const query = parseQuery(own) ?? assert.fail("it is a query");
  assert.deepEqual(
    [query.id, query.name, query.type, query.largest, query.extended],
    [9, "www.example.org", 1, 1232, true],
  );
  const out = decode(Buffer.from(questionTo(4711, query)));
  assert.equal(out.id, 4711);
  assert.deepEqual(out.questions, [{ name: "www.example.org", type: "A", class: "IN" }]);
  assert.deepEqual(
    out.additionals?.map((each) => ("options" in each ? each.options : null)),
    [[]],
  );
  for (const [what, bytes] of [
    ["a response", packet()],
    [
      "two questions",
      encode({
        type: "query",
        questions: [
          { name: "a.b", type: "A" },
          { name: "c.d", type: "A" },
        ],
      }),
    ],
    ["two questions, of which one is there", own.map((byte, at) => (at === 5 ? 2 : byte))],
    ["more behind it", Buffer.concat([own, Buffer.from([0])])],
    // To the name of the OPT record behind it, which is empty.
    [
      "a pointer that leads on",
      Buffer.from([0, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0xc0, 18, 0, 1, 0, 1, 0, 0, 41, 4, 0, 0, 0, 0, 0, 0, 0]),
    ],
    ["a pointer to itself", Buffer.from([0, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1])],
  ] as const)
    assert.equal(parseQuery(bytes), null, what);
});

test("an answer counts under its number and with its question alone", () => {
  const whole = packet({ answers: [a("www.example.org", "203.0.113.9")] });
  assert.deepEqual(
    found(read(whole)).records.map(({ name, ttl, data }) => [name, ttl, [...data]]),
    [["www.example.org", 60, [203, 0, 113, 9]]],
  );
  assert.equal(read(whole, { ...question, id: 4712 }).kind, "other");
  assert.equal(read(whole, { ...question, name: "www.example.com" }).kind, "other");
  assert.equal(read(whole, { ...question, type: 28 }).kind, "other");
  assert.equal(read(packet({ type: "query" })).kind, "other");
  assert.equal(read(packet({ questions: [] })).kind, "other");
  assert.equal(read(Buffer.concat([whole, Buffer.alloc(17_000)])).kind, "other");
  assert.equal(read(packet({ flags: 0x8182 })).kind, "failed", "the resolver could not");
  assert.equal(read(packet({ flags: 0x8380 })).kind, "truncated");
});

test("of its records those count that follow from the name, along its aliases", () => {
  const { records, ttl } = found(
    read(
      packet({
        answers: [
          a("elsewhere.example.com", "203.0.113.66"),
          alias("www.example.org", "a.example.net", 30),
          a("a.example.net", "203.0.113.9", 90),
          a("www.example.net", "203.0.113.67"),
        ],
      }),
    ),
  );
  assert.deepEqual([records.map(({ name }) => name), ttl], [["www.example.org", "a.example.net"], 30]);
  const circle = [alias("www.example.org", "a.example.net"), alias("a.example.net", "www.example.org")];
  assert.equal(read(packet({ answers: circle })).kind, "failed");
  assert.equal(
    read(packet({ answers: Array.from({ length: 65 }, () => a("www.example.org", "203.0.113.9")) })).kind,
    "failed",
  );
});

test("no answer leads inside: not by an address, not by an alias", () => {
  const refused = (answers: Parts["answers"], asked = question): void => {
    const questions = [{ name: asked.name, type: asked.type === 28 ? "AAAA" : "A" }] as Parts["questions"];
    assert.equal(read(packet({ answers, questions } as Partial<Parts>), asked).kind, "inside", JSON.stringify(answers));
  };
  for (const address of [
    "10.64.0.2",
    "10.0.3.1",
    "127.0.0.1",
    "169.254.169.254",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
  ])
    refused([a("www.example.org", "203.0.113.9"), a("www.example.org", address)]);
  refused([alias("www.example.org", "web1.bank.cells.internal"), a("web1.bank.cells.internal", "203.0.113.9")]);
  refused([alias("www.example.org", "db")]);
  const aaaa = (data: string) => ({ ...a("www.example.org", data), type: "AAAA" as const });
  for (const address of ["::1", "::ffff:10.64.0.2", "fd00::1", "fe80::1", "64:ff9b::a40:2", "2002:a40:2::1", "ff02::1"])
    refused([aaaa(address)], { ...question, type: 28 });
  // An external address of the cloud is one that everybody may know.
  for (const address of ["198.18.0.4", "192.168.1.1", "203.0.113.9"])
    assert.equal(read(packet({ answers: [a("www.example.org", address)] })).kind, "answer", address);
  const six = packet({
    questions: [{ name: question.name, type: "AAAA" }],
    answers: [aaaa("2001:db8::1"), aaaa("64:ff9b::cb00:7109")],
  });
  assert.equal(found(read(six, { ...question, type: 28 })).records.length, 2);
});

test("it holds for as long as its shortest record, for an hour at most, and what is not there for five minutes", () => {
  const held = (parts: Partial<Parts>): number => found(read(packet(parts))).ttl;
  assert.equal(held({ answers: [a("www.example.org", "203.0.113.9", 7), a("www.example.org", "203.0.113.8", 9)] }), 7);
  assert.equal(held({ answers: [a("www.example.org", "203.0.113.9", 86_400)] }), 3_600);
  assert.equal(held({ answers: [a("www.example.org", "203.0.113.9", 2 ** 31)] }), 0);
  assert.equal(held({ flags: 0x8183, authorities: [soa("example.org", 40, 90)] }), 40);
  assert.equal(held({ flags: 0x8183, authorities: [soa("example.org", 9_000, 9_000)] }), 300);
  assert.equal(
    held({ flags: 0x8183, authorities: [soa("example.com", 40, 90)] }),
    0,
    "another zone says nothing of it",
  );
  assert.equal(held({ flags: 0x8183 }), 0);
});

test("the cache ends with the time, and is bounded by entries and by bytes", () => {
  const entry = (ttl: number, size = 4) => ({
    rcode: 0,
    ttl,
    records: [{ name: "a.b", type: 16, ttl, data: new Uint8Array(size) }],
  });
  const cache = new NameCache({ entries: 3, bytes: 4_000 });
  cache.put("one", entry(10), 0);
  assert.deepEqual(
    cache.get("one", 9_999)?.records.map(({ ttl }) => ttl),
    [1],
  );
  assert.equal(cache.get("one", 10_000), null);
  cache.put("never", entry(0), 0);
  assert.equal(cache.size, 0);
  for (const key of ["a", "b", "c"]) cache.put(key, entry(10), 0);
  cache.get("a", 1);
  cache.put("d", entry(10), 1);
  assert.deepEqual(
    ["a", "b", "c", "d"].map((key) => cache.get(key, 2) !== null),
    [true, false, true, true],
  );
  cache.put("large", entry(10, 3_000), 3);
  cache.put("larger", entry(10, 3_500), 3);
  assert.ok(cache.bytes <= 4_000 && cache.get("larger", 4) !== null && cache.get("large", 4) === null);
  cache.put("too large", entry(10, 5_000), 5);
  assert.equal(cache.get("too large", 6), null);
  for (const key of ["a", "b", "c", "d", "larger"]) cache.get(key, 60_000);
  assert.deepEqual([cache.size, cache.bytes], [0, 0]);
});

test("an asker gets whole records as far as they fit, and is told that some are missing", () => {
  const query = parseQuery(
    encode({ type: "query", id: 7, flags: 0x0100, questions: [{ name: "www.example.org", type: "TXT" }] }),
  );
  assert.ok(query !== null);
  const records = Array.from({ length: 20 }, () => ({
    name: query.name,
    type: 16,
    ttl: 5,
    data: Uint8Array.from([40, ...Array(40).fill(120)]),
  }));
  const bytes = answerTo(query, 0, records);
  const answer = decode(Buffer.from(bytes));
  assert.ok(bytes.length <= 512 && answer.flag_tc && answer.flag_ra && answer.flag_rd && !answer.flag_aa);
  assert.ok((answer.answers?.length ?? 0) > 5 && answer.id === 7);
  const larger = answerTo({ ...query, largest: 1232, extended: true }, 0, records);
  assert.ok(larger.length <= 1232 && larger.length > 1000);
  assert.equal(decode(Buffer.from(larger)).additionals?.[0]?.type, "OPT");
});

test("whatever somebody outside sends, reading it ends, and nothing inside comes of it", () => {
  const rounds = 20_000;
  const random = { random: seedOf(Number(process.env.CELLS_SEED ?? 16)) };
  const whole = packet({
    answers: [alias("www.example.org", "a.example.net"), a("a.example.net", "10.64.0.2")],
    authorities: [soa("example.org", 40, 90)],
  });
  let answers = 0;
  for (let round = 0; round < rounds; round += 1) {
    const bytes = Buffer.from(whole.subarray(0, below(random, 4) === 0 ? below(random, whole.length) : whole.length));
    for (let change = below(random, 4); change >= 0; change -= 1) {
      const at = 12 + below(random, Math.max(1, bytes.length - 12));
      if (at < bytes.length) bytes[at] = below(random, 3) === 0 ? 0xc0 + below(random, 4) : below(random, 256);
    }
    const heard = read(bytes);
    parseQuery(bytes);
    if (heard.kind !== "answer") continue;
    answers += 1;
    for (const { type, data } of heard.found.records)
      assert.ok(type !== 1 || !(data[0] === 10 && (data[1] ?? 0) >= 64 && (data[1] ?? 0) < 128), `round ${round}`);
  }
  assert.ok(answers > 100, `${answers} answers were understood`);
});
