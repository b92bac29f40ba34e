import assert from "node:assert/strict";
import { test } from "node:test";
import { type PeerName, peerName } from "../../../../model/cell/identifiers.ts";
import type { AuditEntry, AuditRecord } from "../../../../model/contract/audit/audit.ts";
import { faultsOf, recordsIn } from "../../../../model/contract/testing/audited.testing.ts";
import type { Json, JsonObject } from "../../../../model/json/json.ts";
import { type Effect, readAnything, type Service } from "../../../env.ts";
import { createNode, type Node, stepNode } from "../node.ts";
import type { NodeInput } from "../types.ts";

const self = peerName("placer");
const by: AuditEntry = {
  who: "operator",
  door: "gateway",
  source: "192.0.2.1",
  verb: "releaseHa",
  target: "shop",
  outcome: "done",
};
/** Writes what it is asked to, and answers what it is told to. */
const service = (record?: Service<null>["record"]): Service<null> => ({
  restore: () => null,
  step: (_state, input) => {
    if (input.kind !== "request") return { state: null, effects: [] };
    const { response = null, write } = input.request as JsonObject;
    const written: Effect[] = write === undefined ? [] : [{ kind: "write", key: String(write), value: 1 }];
    return { state: null, effects: [...written, { kind: "reply", id: input.id, response: response as Json }] };
  },
  entitled: () => true,
  accepts: () => true,
  read: readAnything,
  ...(record === undefined ? {} : { record }),
});

class Bench {
  readonly store = new Map<string, Json>();
  node: Node<null>;
  readonly of: Service<null>;
  constructor(of = service()) {
    this.of = of;
    this.node = this.start();
  }
  start(): Node<null> {
    this.node = createNode(this.of, this.store, self, { ms: 0, wallMs: 1_000 }, `start ${this.store.size}`);
    this.step({ kind: "start" });
    return this.node;
  }
  /** Keys that were written in this one step, and so in one commit. */
  step(input: NodeInput): readonly string[] {
    const { writes } = stepNode(this.node, input, { ms: 0, wallMs: 1_000 });
    for (const { key, value } of writes)
      if (value === null) this.store.delete(key);
      else this.store.set(key, value);
    return writes.map(({ key }) => key);
  }
  get records(): readonly AuditRecord[] {
    return recordsIn(this.store);
  }
}
const isOf = (key: string): boolean => key.includes("audit");

test("who asks for a change has his record in the step that makes it", () => {
  const bench = new Bench();
  const written = bench.step({ kind: "request", id: 1, request: { write: "a" }, by });
  assert.ok(written.some((key) => key.endsWith("a") && !isOf(key)) && written.some(isOf), written.join(" "));
  assert.ok(!bench.step({ kind: "request", id: 2, request: { write: "b" } }).some(isOf), "who asks for none has none");
  assert.equal(bench.records.length, 1);
  const [record] = bench.records;
  assert.deepEqual(
    [record?.who, record?.source, record?.verb, record?.target, record?.outcome],
    ["operator", "192.0.2.1", "releaseHa", "shop", "done"],
  );
});

test("what the service refuses is recorded as refused, with why", () => {
  const bench = new Bench();
  for (const response of ["there is no such thing", { refusal: { status: 404, message: "there is none" } }, {}, null])
    bench.step({ kind: "request", id: 1, request: { response }, by });
  assert.deepEqual(
    bench.records.map(({ outcome, why }) => [outcome, why]),
    [
      ["refused", "there is no such thing"],
      ["refused", "there is none"],
      ["done", undefined],
      ["done", undefined],
    ],
  );
});

test("what an operator says of a peer, and what is done beside the service, has a record too", () => {
  const bench = new Bench();
  const peer: PeerName = peerName("controller.shop");
  assert.ok(bench.step({ kind: "release", peer, by: { ...by, verb: "releaseOrphans" } }).some(isOf));
  assert.ok(bench.step({ kind: "release", peer, keys: ["a"], by: { ...by, verb: "endOrphans" } }).some(isOf));
  assert.ok(bench.step({ kind: "record", id: 1, by: { ...by, verb: "removeImage" } }).some(isOf));
  assert.deepEqual(
    bench.records.map(({ verb }) => verb),
    ["releaseOrphans", "endOrphans", "removeImage"],
  );
});

test("the chain goes on after a start, whole", () => {
  const bench = new Bench();
  for (let round = 0; round < 5; round += 1) {
    bench.step({ kind: "request", id: 1, request: {}, by });
    if (round % 2 === 0) bench.step({ kind: "request", id: 1, request: { response: "there is none" }, by });
    bench.start();
  }
  assert.deepEqual(
    bench.records.map(({ n, behind = "" }) => `${n} ${behind}`.trim()),
    ["1", "1 1", "2", "3", "2 3", "4", "5", "3 5"],
  );
  assert.equal(bench.node.recorder.chains()?.refusals.next, 4);
  assert.deepEqual(faultsOf(bench.store, "history/"), []);
});

test("a service that has records of its own has these there", () => {
  const own: string[] = [];
  const bench = new Bench(
    service((_state, { verb }) => {
      own.push(verb);
      return [{ kind: "write", key: "own", value: verb }];
    }),
  );
  const written = bench.step({ kind: "release", peer: self, by });
  assert.ok(written.some((key) => key.endsWith("own")));
  assert.deepEqual([own, bench.records.length, bench.node.recorder.chains()], [["releaseHa"], 0, null]);
});

test("a service that takes each of its records for one of its own starts again after it, with none of them", () => {
  const found: string[][] = [];
  const picky: Service<null> = {
    ...service(),
    restore: ({ records }) => {
      found.push([...records.keys()].filter((key) => !/^audit(-refusals)?\/\d+$/.test(key)));
      return null;
    },
  };
  const bench = new Bench(picky);
  bench.step({ kind: "request", id: 1, request: {}, by });
  bench.start();
  bench.step({ kind: "request", id: 2, request: {}, by });
  assert.deepEqual(found, [[], []]);
  assert.deepEqual(
    bench.records.map(({ n }) => n),
    [...bench.records.keys()].map((at) => (bench.records[0]?.n ?? 0) + at),
  );
  assert.equal(bench.records.length, 2, "and the chain goes on");
});
