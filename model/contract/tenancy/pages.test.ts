import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { JsonObject } from "../../json/json.ts";
import { longestCursor, pageOf, tagIn, tagOf } from "./pages.ts";

const user = (name: string): JsonObject => ({ domain: "ROOT/acme", name, uid: `uid-${name}` });
const names = (items: readonly JsonObject[]): readonly string[] => items.map(({ name }) => String(name));

/** All pages, while `change` is made to the list before each but the first. */
function readAll(first: readonly JsonObject[], limit: number, change: (page: number) => readonly JsonObject[]) {
  const seen: JsonObject[] = [];
  let [all, after, count] = [first, undefined as string | undefined, 0];
  do {
    const page = pageOf("listUsers", all, { limit, ...(after === undefined ? {} : { after }) });
    assert.ok(page.ok, JSON.stringify(page));
    assert.ok(page.value.items.length <= limit);
    seen.push(...page.value.items);
    after = page.value.next ?? undefined;
    count += 1;
    assert.ok(count < 100, "it comes to an end");
    all = change(count);
  } while (after !== undefined);
  return { seen, count };
}

test("pages have all that is in a list, once and in its order", () => {
  const all = ["eve", "ann", "dora", "bob", "carl"].map(user);
  for (let limit = 1; limit <= 6; limit += 1) {
    const { seen, count } = readAll(all, limit, () => all);
    assert.deepEqual(names(seen), ["ann", "bob", "carl", "dora", "eve"]);
    assert.equal(count, Math.ceil(5 / limit), "the last page says that it is the last");
  }
  assert.deepEqual(readAll([], 3, () => []).seen, []);
});

test("what is there all the while is in one page and in no other, whatever comes and goes between them", () => {
  const name = fc.stringMatching(/^[a-z0-9]{1,3}$/);
  const list = fc.uniqueArray(name, { maxLength: 20 });
  const property = fc.property(
    list,
    fc.array(list, { minLength: 1, maxLength: 8 }),
    fc.integer({ min: 1, max: 5 }),
    (stays, others, limit) => {
      const at = (page: number): readonly JsonObject[] =>
        [...new Set([...stays, ...(others[page % others.length] ?? [])])].map(user);
      const seen = names(readAll(at(0), limit, at).seen);
      assert.equal(new Set(seen).size, seen.length, "nothing twice");
      for (const each of stays) assert.ok(seen.includes(each), each);
    },
  );
  fc.assert(property);
});

test("of a bin the last that was deleted comes first, and two of one moment are two", () => {
  const file = (name: string, deleted: string): JsonObject => ({ deleted, server: "s1", file: name });
  const all = [
    file("old", "2026-11-27T10:00:00.000Z"),
    file("b", "2026-11-27T10:00:00.001Z"),
    file("a", "2026-11-27T10:00:00.001Z"),
  ];
  const seen: unknown[] = [];
  for (let after: string | undefined; ; ) {
    const page = pageOf("listBin", all, { limit: 1, ...(after === undefined ? {} : { after }) });
    assert.ok(page.ok);
    seen.push(...page.value.items.map((each) => each.file));
    if (page.value.next === null) break;
    after = page.value.next;
  }
  assert.deepEqual(seen, ["a", "b", "old"]);
});

test("what says the same of nothing that has a name is there as often as it is, and the last version comes first", () => {
  const all = (list: "listDedications" | "listVersions", items: readonly JsonObject[], limit: number) => {
    const seen: JsonObject[] = [];
    for (let after: string | undefined; ; ) {
      const page = pageOf(list, items, { limit, ...(after === undefined ? {} : { after }) });
      assert.ok(page.ok);
      seen.push(...page.value.items);
      if (page.value.next === null) return seen;
      after = page.value.next;
    }
  };
  const acme = { kind: "domain", path: "ROOT/acme" };
  const host = { of: null, level: "host", to: acme };
  const zone = { of: "z1", level: "zone", to: acme };
  for (const limit of [1, 2, 3, 9]) {
    const seen = all("listDedications", [host, zone, host, host], limit);
    assert.deepEqual([seen.length, seen.filter((each) => each === zone).length], [4, 1], String(limit));
    const versions = [9, 10, 100, 1].map((version) => ({ version }));
    assert.deepEqual(
      all("listVersions", versions, limit).map(({ version }) => version),
      [100, 10, 9, 1],
    );
  }
});

test("a cursor of another list, or one that was altered, is refused", () => {
  const first = pageOf("listUsers", ["ann", "bob"].map(user), { limit: 1 });
  const cursor = (first.ok ? first.value.next : null) ?? assert.fail();
  assert.ok(!cursor.includes("ann"), "it is nobody's to read");
  assert.ok(cursor.length <= longestCursor);
  const wrong = [
    "",
    "x",
    "0",
    cursor.slice(1),
    `${cursor}0`,
    cursor.toUpperCase(),
    `${cursor.slice(0, -1)}f`,
    `00000000${cursor.slice(8)}`,
    `${cursor.slice(0, 8)}ffffff`,
  ];
  for (const after of wrong.filter((each) => each !== cursor)) {
    const page = pageOf("listUsers", ["ann", "bob"].map(user), { after });
    assert.match(page.ok ? "" : page.error, /^after in the query: it is no cursor that this list has given/, after);
  }
  assert.ok(!pageOf("listDomains", [], { after: cursor }).ok);
});

test("a tag is that of what is shown, in whichever order, and of nothing else", () => {
  const shown = { uid: "u", rules: [{ verb: "a", effect: "allow" }], state: "enabled" };
  const tag = tagOf(shown);
  assert.match(tag, /^[0-9a-f]{32}$/);
  assert.equal(
    tagOf({ state: "enabled", uid: "u", rules: [{ effect: "allow", verb: "a" }], etag: "before", plan: ["1"] }),
    tag,
  );
  for (const other of [
    { ...shown, state: "locked" },
    { ...shown, rules: [] },
    { ...shown, more: null },
  ])
    assert.notEqual(tagOf(other), tag);
  assert.deepEqual(
    [tagIn(` "${tag}" `), tagIn("*")],
    [
      { ok: true, value: tag },
      { ok: true, value: null },
    ],
  );
  for (const written of [
    tag,
    `W/"${tag}"`,
    `"${tag}", "${tag}"`,
    '"7"',
    "",
    `"${tag.toUpperCase().replace(/\d/g, "A")}"`,
  ]) {
    const read = tagIn(written);
    assert.match(read.ok ? "" : read.error, /^If-Match is one tag .*; it was/, written);
  }
});
