import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { SliceDigest, Summary } from "../../documents/network/policy.ts";
import { type CutSlice, cut, groupOf, type Item, mostInSlice, summaryOf } from "./slices.ts";
import { type Replaced, type Taken, View, type ViewKind } from "./view.ts";

const seed = Number(process.env.CELLS_SEED ?? Math.trunc(Math.random() * 2 ** 31));
const numRuns = 400;

const itemOf = (key: string, value: number): Item<string> => {
  const text = `${key}=${value}`;
  return { key, value: text, text };
};
/** Groups of items by their keys. */
type Content = ReadonlyMap<string, ReadonlyMap<string, number>>;
const most = 24;
const cutAll = (content: Content): readonly CutSlice<string>[] =>
  [...content].flatMap(([group, items]) =>
    cut(
      group,
      [...items].map(([key, value]) => itemOf(key, value)),
      most,
    ),
  );

const keys = Array.from({ length: 40 }, (_, at) => `item${at}`);
const items = fc.uniqueArray(fc.tuple(fc.constantFrom(...keys), fc.nat(9)), {
  selector: ([key]) => key,
  maxLength: 40,
});

test("where an item lies follows from what there is, whatever the order", (context) => {
  context.diagnostic(`CELLS_SEED=${seed}`);
  fc.assert(
    fc.property(items, fc.nat(), (all, turn) => {
      const given = all.map(([key, value]) => itemOf(key, value));
      const at = all.length === 0 ? 0 : turn % all.length;
      assert.deepEqual(cut("g", given, most), cut("g", [...given.slice(at), ...given.slice(0, at)].reverse(), most));
      const found = cut("g", given, most);
      assert.deepEqual(found.flatMap(({ values }) => values).sort(), given.map(({ value }) => value).sort());
      assert.equal(new Set(found.map(({ name }) => name)).size, found.length);
      for (const { values, name } of found) {
        assert.equal(groupOf(name), "g");
        if (values.length > 1) assert.ok(values.reduce((sum, text) => sum + text.length + 1, 0) <= most, name);
      }
    }),
    { seed, numRuns },
  );
});

test("a change of one item concerns its slice, and where that is cut or joined the ones beside it", (context) => {
  context.diagnostic(`CELLS_SEED=${seed}`);
  fc.assert(
    fc.property(items, fc.constantFrom(...keys), fc.option(fc.nat(9)), (all, key, value) => {
      const before = new Map(all);
      const after = new Map(all);
      if (value === null) after.delete(key);
      else after.set(key, value);
      const [one, two] = [before, after].map((each) => cutAll(new Map([["g", each]])));
      const changed = two!.filter(({ name, digest }) => {
        const same = one!.find((slice) => slice.name === name);
        return same === undefined || String(same.digest) !== String(digest);
      });
      // All that changed is what one slice holds, and the item.
      const characters = changed.flatMap(({ values }) => values).reduce((sum, text) => sum + text.length + 1, 0);
      assert.ok(characters <= most + itemOf(key, 9).text.length + 1, `${characters} characters`);
    }),
    { seed, numRuns },
  );
});

interface TestManifest {
  readonly version: number;
  readonly groups: readonly string[];
  readonly slices?: Summary;
}
interface TestSlice {
  readonly digest: SliceDigest;
  readonly values: readonly string[];
}
const kind: ViewKind<TestManifest> = {
  names:
    ({ groups }) =>
    (group) =>
      groups.includes(group),
};

/** What a sender desires: by key, "" is the manifest. */
type Documents = ReadonlyMap<string, TestManifest | TestSlice>;
function documentsOf(version: number, content: Content, isSliced: boolean): Documents {
  const groups = [...content.keys()];
  if (!isSliced) return new Map([["", { version, groups }]]);
  const slices = cutAll(content);
  const manifest: TestManifest = { version, groups, slices: summaryOf(slices) };
  return new Map<string, TestManifest | TestSlice>([
    ["", manifest],
    ...slices.map(({ name, digest, values }) => [name, { digest, values }] as const),
  ]);
}

/** A receiver that is durable as a node is: documents and records are written together, and a crash loses the rest. */
class Receiver {
  readonly documents = new Map<string, TestManifest | TestSlice>();
  readonly records = new Map<string, TestManifest | TestSlice | null>();
  view = new View<TestManifest, TestSlice>(kind);
  /** What counts, as whoever uses the view was told. */
  now: { readonly version: number; readonly values: readonly string[] } | null = null;

  constructor() {
    this.#take(this.view.begin());
  }
  put(name: string, document: TestManifest | TestSlice | null): void {
    if (document === null) this.documents.delete(name);
    else this.documents.set(name, document);
    this.#take(
      name === ""
        ? this.view.takeManifest(document as TestManifest | null)
        : this.view.takeSlice(name, document as TestSlice | null),
    );
  }
  crash(): void {
    this.now = null;
    this.view = new View<TestManifest, TestSlice>(kind, new Map(this.records) as Replaced<TestManifest, TestSlice>);
    for (const [name, document] of this.documents) {
      if (name === "") this.view.takeManifest(document as TestManifest);
      else this.view.takeSlice(name, document as TestSlice);
    }
    this.#take(this.view.begin());
  }
  #take({ now, writes }: Taken<TestManifest, TestSlice>): void {
    for (const { name, record } of writes) {
      if (record === null) this.records.delete(name);
      else this.records.set(name, record.was);
    }
    if (now === "gone") this.now = null;
    else if (now !== null) {
      const values = [...now.slices.values()].flatMap((slice) => slice.values).sort();
      this.now = { version: now.manifest.version, values };
    }
  }
}

const content = fc
  .dictionary(fc.constantFrom("a", "b", "c"), items, { maxKeys: 3 })
  .map((groups): Content => new Map(Object.entries(groups).map(([name, all]) => [name, new Map(all)])));
type Step = { readonly kind: "version"; readonly content: Content; readonly isSliced: boolean } | Happening;
type Happening =
  | { readonly kind: "arrives"; readonly which: number }
  | { readonly kind: "crash" }
  | { readonly kind: "ends" }
  | { readonly kind: "all" };
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("version" as const), content, isSliced: fc.boolean() }) },
  { weight: 20, arbitrary: fc.record({ kind: fc.constant("arrives" as const), which: fc.nat() }) },
  { weight: 2, arbitrary: fc.constant({ kind: "crash" } as const) },
  { weight: 1, arbitrary: fc.constant({ kind: "ends" } as const) },
  { weight: 2, arbitrary: fc.constant({ kind: "all" } as const) },
);

test("a version counts whole or not at all: lost, late and repeated slices, crashes of the receiver, other forms", (context) => {
  context.diagnostic(`CELLS_SEED=${seed}`);
  let [between, overlaid] = [0, 0];
  fc.assert(
    fc.property(fc.array(step, { minLength: 60, maxLength: 150, size: "max" }), (steps) => {
      const receiver = new Receiver();
      let desired: Documents = new Map();
      let version = 0;
      /** What each version says, and the last one that counted. */
      const said = new Map<number, readonly string[]>();
      let last = 0;
      /** Documents that are not there as they are desired: in any order, as each key's newest one may overtake others. */
      const due = (): readonly string[] =>
        [...new Set([...desired.keys(), ...receiver.documents.keys()])].filter(
          (name) => receiver.documents.get(name) !== desired.get(name),
        );
      const look = (): void => {
        const { now } = receiver;
        if (now === null) {
          assert.equal(receiver.documents.has("") && last > 0, false, "it counted, and does no more");
          last = 0;
          return;
        }
        assert.ok(now.version >= last, `${now.version} after ${last}`);
        assert.deepEqual(now.values, said.get(now.version), `of version ${now.version}`);
        last = now.version;
      };
      for (const happens of steps) {
        if (happens.kind === "version") {
          version += 1;
          desired = documentsOf(version, happens.content, happens.isSliced);
          const values = happens.isSliced ? cutAll(happens.content).flatMap((slice) => slice.values) : [];
          said.set(version, [...values].sort());
        } else if (happens.kind === "ends") desired = new Map();
        else if (happens.kind === "crash") {
          if (receiver.records.size > 0) overlaid += 1;
          receiver.crash();
        } else if (happens.kind === "all") {
          for (const name of due()) receiver.put(name, desired.get(name) ?? null);
          assert.equal(receiver.now?.version, desired.size === 0 ? undefined : version);
          assert.equal(receiver.records.size, 0, "nothing is kept of what was before");
        } else {
          const names = due();
          if (names.length === 0) continue;
          const name = names[happens.which % names.length] as string;
          receiver.put(name, desired.get(name) ?? null);
          if (receiver.now !== null && receiver.now.version < version) between += 1;
        }
        look();
      }
    }),
    { seed, numRuns },
  );
  assert.ok(between > 100 && overlaid > 20, `${between} steps between two versions, ${overlaid} crashes there`);
});

test("what a sender whose store was put back does not know of keeps no version from being whole", () => {
  const receiver = new Receiver();
  const first = documentsOf(1, new Map([["a", new Map([["item1", 1]])]]), true);
  receiver.put("z.01", { digest: [5, 6], values: ["item9=9"] });
  for (const [name, document] of first) receiver.put(name, document);
  assert.deepEqual(receiver.now, { version: 1, values: ["item1=1"] });
  receiver.put("z.01", { digest: [7, 8], values: [] });
  assert.deepEqual(receiver.now, { version: 1, values: ["item1=1"] });
});

test("one rule among 20,000 is a slice of some kilobytes", () => {
  const all = Array.from({ length: 20_000 }, (_, at) => itemOf(`rule${at}`, at));
  const before = cut("17", all);
  const after = cut("17", [...all.slice(0, 7_777), itemOf("rule7777", 5), ...all.slice(7_778)]);
  const names = new Map(before.map(({ name, digest }) => [name, String(digest)]));
  const changed = after.filter(({ name, digest }) => names.get(name) !== String(digest));
  assert.equal(changed.length, 1);
  assert.ok(changed.every(({ values }) => values.join().length <= mostInSlice));
});
