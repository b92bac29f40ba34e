import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { reaches as allReaches } from "../../../model/contract/tenancy/rules.ts";
import { granteeKinds, volumeRights } from "../../../model/contract/tenancy/volumes/volumes.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { uuidOf } from "../../shared/uuid.ts";
import { readVolume, written } from "./layout.ts";
import { type Asker, rightsOf } from "./rights.ts";
import { openIndex } from "./search.ts";

const operator: Asker = {
  account: null,
  reach: "installation",
  mayRead: true,
  mayChange: true,
  accounts: new Map(),
  domains: new Map(),
  cells: new Set(),
};
const uidAt = (at: number): string => `pv-${uuidOf("test", String(at))}`;
const groupOf = (at: number, more: JsonObject = {}): JsonObject => ({
  name: `disk-${at}`,
  account: "ROOT/acme/dev",
  tags: [],
  text: "",
  made: "2026-11-26T10:00:00.000Z",
  version: 1,
  versions: 1,
  shares: {},
  v1: { "x.type": "Volume", "x.size": 64 },
  ...more,
});

test("property: what is found is just what somebody has a right to, whatever the accounts and shares", () => {
  const accounts = ["ROOT/acme/dev", "ROOT/acme/ops", "ROOT/acme0/dev", "ROOT/acme/lab/x", "ROOT/bank", null] as const;
  const paths = ["shop", "bank", "ROOT", "ROOT/acme", "ROOT/acme/dev", "ROOT/acme/lab", "ROOT/bank"];
  const share = fc.record({
    kind: fc.constantFrom(...granteeKinds),
    path: fc.constantFrom(...paths),
    right: fc.constantFrom(...volumeRights),
    holder: fc.constantFrom("u1", "u2", undefined),
  });
  const volume = fc.record({
    account: fc.constantFrom(...accounts),
    owner: fc.constantFrom("u1", "u2", undefined),
    shares: fc.array(share, { maxLength: 3 }),
  });
  const asker = fc.record({
    account: fc.constantFrom(...accounts),
    reach: fc.constantFrom(...allReaches),
    mayRead: fc.boolean(),
    seen: fc.dictionary(fc.constantFrom(...paths), fc.constantFrom("u1", "u2")),
    inDomains: fc.dictionary(fc.constantFrom(...paths), fc.constantFrom("u1", "u2")),
    cells: fc.subarray(["shop", "bank", "other"]),
  });
  let seen = 0;
  const property = fc.property(
    fc.array(volume, { maxLength: 8 }),
    asker,
    (volumes, { cells, seen: uids, inDomains, ...rest }) => {
      const groups = Object.fromEntries(
        volumes.map(({ account, owner, shares }, at) => [
          uidAt(at),
          groupOf(at, {
            ...(account === null ? { account: null } : { account }),
            ...(owner === undefined ? {} : { owner }),
            shares: Object.fromEntries(shares.map((each, index) => [`s-${index}`, each as JsonObject])),
          }),
        ]),
      );
      const who: Asker = {
        ...rest,
        mayChange: false,
        accounts: new Map(Object.entries(uids)),
        domains: new Map(Object.entries(inDomains)),
        cells: new Set(cells),
      };
      const index = openIndex(":memory:");
      index.fill("1", groups);
      const found = index.find(who, { limit: 100 }).map(({ uid }) => uid);
      const right = Object.entries(groups).flatMap(([uid, json]) => {
        const read = readVolume(uid, json);
        return read !== null && rightsOf(who, read).length > 0 ? [uid] : [];
      });
      assert.deepEqual(found, right.sort());
      seen += found.length;
      index.close();
    },
  );
  // Which of the domains above somebody it is that a volume is shared with: each has a UID of its own.
  const toAcme = { kind: "domain" as const, path: "ROOT/acme", right: "copy" as const, holder: "u2" as const };
  const bank = { account: "ROOT/bank" as const, owner: undefined, shares: [toAcme] };
  const inDomains = { ROOT: "u1" as const, "ROOT/acme": "u2" as const };
  const dev = {
    account: "ROOT/acme/dev" as const,
    reach: "account" as const,
    mayRead: true,
    seen: {},
    inDomains,
    cells: [],
  };
  fc.assert(property, {
    examples: [[[bank], dev]],
    seed: Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31)),
    numRuns: 300,
  });
  assert.ok(seen > 50, String(seen));
});

test("words, tags, name, account, size and age narrow it down, and a page goes on behind the one before", () => {
  const index = openIndex(":memory:");
  const groups: Record<string, JsonObject> = {};
  for (let at = 0; at < 30; at += 1)
    groups[uidAt(at)] = groupOf(at, {
      tags: [at % 2 === 0 ? "web" : "db", `n${at % 3}`].map(written),
      text: written(at === 7 ? 'Golden "image" of the web-shop; DROP TABLE volume' : "nothing"),
      made: `2026-11-${String(at + 1).padStart(2, "0")}T10:00:00.000Z`,
      v1: { "x.type": "Volume", "x.size": at + 1 },
    });
  index.fill("1", groups);
  const names = (question: object): readonly string[] =>
    index
      .find(operator, { limit: 100, ...question })
      .map(({ name }) => name)
      .sort();
  assert.deepEqual(names({ text: "gold shop" }), ["disk-7"]);
  assert.deepEqual(names({ text: 'GOLDEN "AND' }), [], "what reads as a word of the language is a word");
  assert.deepEqual(names({ text: '"' }).length, 30, "without a word it narrows nothing down");
  assert.equal(names({ tag: ["web"] }).length, 15);
  assert.equal(names({ tag: ["web", "n0"] }).length, 5);
  assert.deepEqual(names({ name: "disk-3" }), ["disk-3"]);
  assert.equal(names({ account: "ROOT/other" }).length, 0);
  assert.deepEqual(names({ leastMiB: 29 }), ["disk-28", "disk-29"]);
  assert.deepEqual(names({ mostMiB: 1 }), ["disk-0"]);
  assert.deepEqual(names({ since: "2026-11-30" }), ["disk-29"]);
  assert.deepEqual(names({ until: "2026-11-01T10:00:00.001Z" }), ["disk-0"]);
  const all: string[] = [];
  for (let behind: string | undefined; ; ) {
    const page = index.find(operator, { limit: 7, behind });
    all.push(...page.map(({ uid }) => uid));
    behind = page.at(-1)?.uid;
    if (page.length < 7) break;
  }
  assert.deepEqual(all, Object.keys(groups).sort());
  index.set("2", uidAt(7), null);
  assert.deepEqual([names({ text: "golden" }), names({}).length, index.version], [[], 29, "2"]);
  index.set("3", uidAt(7), groupOf(7, { text: written("golden again") }));
  assert.deepEqual(names({ text: "again" }), ["disk-7"]);
  index.fill("4", { "no-volume": {}, [uidAt(1)]: groupOf(1), [uidAt(2)]: 7 });
  assert.deepEqual(names({}), ["disk-1"], "what is none is passed over");
  index.close();
});
