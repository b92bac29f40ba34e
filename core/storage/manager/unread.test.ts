import assert from "node:assert/strict";
import { test } from "node:test";
import { connection, StorageWorld, volume } from "./manager.testing.ts";

test("a volume whose stored wish cannot be read stays, and so does its lease, until it is readable or taken back", () => {
  for (const key of ["volume/a-1", "connection/c-1"]) {
    const world = new StorageWorld({ s1: { freeMiB: 9000 } });
    world.want("volume/a-1", volume("a-1", { kind: "empty" }, 100));
    world.want("connection/c-1", connection("c-1", "a-1", "v-1"));
    world.settle();
    const records = [...world.records.keys()].filter((record) => /^(volume|lease|connection)\//.test(record));
    assert.equal(records.length, 3, String(records));
    const [stored] = [...world.wanted].filter(([, document]) => document.key === key);
    const [at = "", document] = stored ?? [];
    assert.ok(document !== undefined);
    world.wanted.set(at, { ...document, value: { form: "of another version" } });
    const desired = JSON.stringify([...world.desiredAt].map(([agent, documents]) => [agent, [...documents]]));
    world.restart();
    world.settle();
    assert.equal(
      JSON.stringify([...world.desiredAt].map(([agent, documents]) => [agent, [...documents]])),
      desired,
      key,
    );
    assert.deepEqual(
      records.filter((record) => !world.records.has(record)),
      [],
    );
    world.want("connection/c-1", null);
    world.want("volume/a-1", null);
    world.settle();
    assert.ok(!world.records.has("volume/a-1"), "a tombstone ends it");
  }
});
