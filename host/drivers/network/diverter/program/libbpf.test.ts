import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { canRun } from "../testing/namespaces.testing.ts";
import { createMap, mapTypes, noPreallocation } from "./libbpf.ts";

describe("maps of the kernel", { skip: !canRun() }, () => {
  for (const [name, type, flags] of [
    ["a trie", mapTypes.lpmTrie, noPreallocation],
    ["a hash", 1, noPreallocation],
  ] as const)
    test(`${name} is read as a whole, however many parts it takes`, () => {
      for (const size of [0, 1, 1023, 1024, 1025, 5000]) {
        const map = createMap(type, "whole", 8, 4, 8192, flags);
        try {
          const put = Array.from({ length: size }, (_, at) => {
            const entry = { key: Buffer.alloc(8), value: Buffer.alloc(4) };
            entry.key.writeUInt32LE(32, 0);
            entry.key.writeUInt32BE(at * 7919, 4);
            entry.value.writeUInt32LE(at, 0);
            return entry;
          });
          map.setAll(put);
          const text = (entries: readonly { readonly key: Buffer; readonly value: Buffer }[]) =>
            entries.map(({ key, value }) => `${key.toString("hex")} ${value.toString("hex")}`).sort();
          assert.deepEqual(text(map.entries()), text(put));
        } finally {
          map.close();
        }
      }
    });
});
