import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import type { PeerResponse } from "../../runtime/http/https.ts";
import { eventually } from "../../runtime/installation.testing.ts";
import { RefusedError, refused } from "../requests/refused.ts";
import { type Readers, requireVm, sourceOf } from "./sources.ts";

const answer = (status: number, body: Readable | object): PeerResponse => {
  const text = async (): Promise<string> => JSON.stringify(body);
  return {
    status,
    headers: { etag: '"7"' },
    body: body instanceof Readable ? body : Readable.from([]),
    text,
  } as unknown as PeerResponse;
};
/** `ann` sees the cell shop, nobody but the operator any other. */
function readers(more: Partial<Readers> = {}): Readers & { readonly asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    isOperator: (authorization) => authorization === "operator",
    cellOf: (authorization) => (authorization === "of-shop" ? "shop" : null),
    status: async () => ({ hosts: [], servers: [], services: [] }),
    cells: async (authorization) =>
      (authorization === "operator" ? ["shop", "bank"] : ["shop"]).map((cell) => ({
        cell,
        version: 1,
        phases: {},
        elements: 0,
      })),
    requireCell: async (cell, authorization) => {
      if (cell !== "shop" && authorization !== "operator")
        throw refused(404, "not-found", `there is no cell "${cell}"`);
    },
    ask: async (cell, path, authorization) => {
      asked.push(`${authorization} ${cell} ${path}`);
      return answer(200, {
        shop: { "x.type": "Cell", vm: { "x.type": "VM", $state: { phase: "ready" }, secret: "s" } },
      });
    },
    counters: async (cell) => {
      asked.push(`counters ${cell}`);
      const rules = [{ path: `${cell}/rule`, packets: 3, bytes: 30 }];
      return { rules, interfaces: [], machines: [], missing: 1 };
    },
    ha: async () => ({ protected: 2, storm: null, items: [] }),
    timeline: { follow: () => () => undefined },
    ...more,
  };
}
const { signal } = new AbortController();
const rowsOf = async (...asked: Parameters<typeof sourceOf>) => (await (await sourceOf(...asked)).read(signal)).rows;

test("each topic is read by what the same person could ask for, and has nothing else", async () => {
  const all = readers();
  await assert.rejects(sourceOf(all, { kind: "status" }, "ann"), /the topic status is for the operator/);
  await assert.rejects(sourceOf(all, { kind: "cell", cell: "bank" }, "ann"), /there is no cell "bank"/);
  await assert.rejects(sourceOf(all, { kind: "counters", cell: "bank" }, "ann"), /there is no cell "bank"/);
  assert.deepEqual(all.asked, [], "nobody is asked of a cell that is not there for who asks");
  assert.deepEqual(await rowsOf(all, { kind: "counters", cell: "shop" }, "ann"), {
    summary: { missing: 1 },
    "rule/shop/rule": { path: "shop/rule", packets: 3, bytes: 30 },
  });
  assert.deepEqual(all.asked.splice(0), ["counters shop"]);
  assert.deepEqual(Object.keys(await rowsOf(all, { kind: "cells" }, "ann")), ["shop"]);
  assert.deepEqual(Object.keys(await rowsOf(all, { kind: "cells" }, "operator")), ["shop", "bank"]);
  assert.deepEqual(Object.keys(await rowsOf(all, { kind: "status" }, "operator")), ["installation"]);
  await assert.rejects(sourceOf(all, { kind: "ha" }, "ann"), /the topic ha is for the operator/);
  assert.deepEqual(await rowsOf(all, { kind: "ha" }, "operator"), {
    summary: { protected: 2, storm: null },
  });
  const none = readers({ ha: async () => Promise.reject(refused(404, "ha/none", "there is none")) });
  assert.deepEqual(await rowsOf(none, { kind: "ha" }, "operator"), {});
  const read = await (await sourceOf(all, { kind: "cell", cell: "shop" }, "ann")).read(signal);
  assert.equal(read.version, 7, "of which model, as who answers says");
  assert.deepEqual(
    read.rows,
    { "shop/vm": { type: "VM", state: { phase: "ready" } } },
    "states, and nothing of the model",
  );
  assert.deepEqual(all.asked, ["ann shop model?state=true"]);
});

test("a cell's credential follows that cell, and of every other one learns the same and has nobody asked", async () => {
  const required: string[] = [];
  const all = readers({ requireCell: async (cell) => void required.push(cell) });
  const [bank, none] = await Promise.all(
    ["bank", "none"].map((cell) =>
      sourceOf(all, { kind: "cell", cell }, "of-shop").then(
        () => "followed",
        ({ statusCode, message }: RefusedError) => `${statusCode} ${message}`,
      ),
    ),
  );
  assert.equal(bank, '403 the credential is one of the cell "shop" and opens no other');
  assert.equal(none, bank);
  assert.deepEqual([required, all.asked], [[], []]);
  await (await sourceOf(all, { kind: "cell", cell: "shop" }, "of-shop")).read(signal);
  assert.deepEqual(all.asked, ["of-shop shop model?state=true"]);
});

test("who may not see the cell any more is refused at the next reading, in the controller's words", async () => {
  let isOver = false;
  const all = readers({
    ask: async () => (isOver ? answer(403, { error: { code: "forbidden", message: "ann may not" } }) : answer(404, {})),
  });
  const source = await sourceOf(all, { kind: "cell", cell: "shop" }, "ann");
  assert.deepEqual(await source.read(signal), { rows: {} }, "a cell without a model has no elements");
  isOver = true;
  await assert.rejects(
    source.read(signal),
    (error) => error instanceof RefusedError && error.statusCode === 403 && error.message === "ann may not",
  );
  const away = readers({ ask: () => Promise.reject(refused(404, "not-found", "there is no cell shop for ann")) });
  const taken = await sourceOf(away, { kind: "cell", cell: "shop" }, "ann");
  await assert.rejects(
    taken.read(signal),
    /there is no cell shop for ann/,
    "a cell that has no ticket is no empty one",
  );
});

test("an event of the cell, and the end of its stream, say that something may have changed; nobody services' but the operator", async () => {
  const stop = new AbortController();
  const events = [Readable.from(["data: {}\n\n"]), new Readable({ read: () => undefined })];
  let opened = 0;
  const followers: string[] = [];
  const all = readers({
    ask: async () => {
      opened += 1;
      return answer(200, events.shift() ?? Readable.from([]));
    },
    timeline: {
      follow: () => {
        followers.push("operator");
        return () => void followers.pop();
      },
    },
  });
  let changes = 0;
  (await sourceOf(all, { kind: "cell", cell: "shop" }, "ann")).watch(() => {
    changes += 1;
  }, stop.signal);
  await eventually("it is opened again", async () => opened === 2 && changes >= 3);
  (await sourceOf(all, { kind: "cells" }, "ann")).watch(() => undefined, stop.signal);
  assert.deepEqual(followers, []);
  (await sourceOf(all, { kind: "cells" }, "operator")).watch(() => undefined, stop.signal);
  assert.deepEqual(followers, ["operator"]);
  stop.abort();
  assert.deepEqual(followers, []);
});

test("a machine is one for who may read it: what is no VM, or another cell's, is told as what is not there", async () => {
  const said: Record<string, PeerResponse> = {
    "model/shop/web": answer(200, { "x.type": "VM" }),
    "model/shop/net": answer(200, { "x.type": "Subnet" }),
    "model/shop/hidden": answer(403, { error: { code: "forbidden", message: "ann may not" } }),
  };
  const asked: string[] = [];
  const all = readers({
    ask: async (_cell, path) => {
      asked.push(path);
      return said[path] ?? answer(404, { error: { code: "not-found", message: "there is none" } });
    },
  });
  const require = (path: string, cell = "shop") => requireVm(all, { cell, path, authorization: "ann" }, signal);
  await require("shop/web");
  await assert.rejects(require("shop/net"), /there is no VM "shop\/net" in the cell "shop"/);
  await assert.rejects(require("shop/hidden"), /ann may not/);
  await assert.rejects(require("shop/none"), /there is none/);
  asked.length = 0;
  await assert.rejects(require("shop/web", "bank"), /there is no cell "bank"/);
  for (const path of ["", "shop//web", "shop/../../bank/model/bank/web", ".", `shop/${"x".repeat(2000)}`])
    await assert.rejects(require(path), /there is no VM/);
  assert.deepEqual(asked, [], "no controller is asked of what is no path");
});
