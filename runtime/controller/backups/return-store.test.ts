import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, IncomingMessage, ServerResponse } from "node:http";
import { type AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, before, test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { longestStore, placeReturned } from "../../backup/returned-store.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { openStore } from "../../process/store.ts";
import { returnStore } from "./return-store.ts";

let root = "";
before(async () => {
  root = await mkdtemp(join(tmpdir(), "cells-return-store-"));
});
after(() => rm(root, { recursive: true, force: true }));

const storeOf = async (name: string, entries: Readonly<Record<string, Json>>): Promise<Buffer> => {
  const file = join(root, `${name}.sqlite`);
  const store = openStore(file);
  store.commit(new Map(Object.entries(entries)));
  const copy = join(root, `${name}.copy`);
  await store.copyTo(copy);
  store.close();
  return readFile(copy);
};

interface Controller {
  readonly directory: string;
  readonly restarts: () => number;
  readonly put: (bytes: Buffer) => Promise<{ readonly status: number; readonly text: string }>;
  /** The same by somebody who has gone when the answer comes. */
  readonly putAndGo: (bytes: Buffer) => Promise<void>;
}
/** A controller of the cell with the UID c1; its store is the text `blank`. */
const controllerIn = async (name: string, isForked: boolean, work: (controller: Controller) => Promise<void>) => {
  const directory = join(root, name);
  await mkdir(directory);
  await writeFile(join(directory, "state.sqlite"), "blank");
  await writeFile(join(directory, "state.sqlite-wal"), "its journal");
  const configuration = { name: peerName("controller.shop"), directory, controller: { cellUid: "c1" } };
  let restarts = 0;
  const restart = (): void => {
    restarts += 1;
  };
  const by = { who: "operator", door: "gateway" };
  const returning = { isForked: async () => isForked, restart };
  const take = (body: Readable, response: ServerResponse): Promise<void> =>
    returnStore(configuration as unknown as ProcessConfiguration, returning, { body, by }, response);
  const server = createServer((incoming, response) => void take(incoming, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const put = async (bytes: Buffer) => {
    const answer = await fetch(`http://127.0.0.1:${port}/`, { method: "PUT", body: new Uint8Array(bytes) });
    return { status: answer.status, text: await answer.text() };
  };
  const putAndGo = async (bytes: Buffer): Promise<void> => {
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    response.destroy();
    await take(Readable.from([bytes]), response);
  };
  try {
    await work({ directory, put, putAndGo, restarts: () => restarts });
  } finally {
    server.closeAllConnections();
    server.close();
  }
};

test("a controller without its store takes a copy of it, and starts again with that and a note", async () => {
  const copy = await storeOf("own", { "own/element/c1-1": { path: "shop" } });
  await controllerIn("lost", true, async ({ directory, put, restarts }) => {
    assert.deepEqual(await put(copy), { status: 200, text: '{"returned":"c1"}' });
    assert.equal(restarts(), 1);
    assert.equal(await readFile(join(directory, "state.sqlite"), "utf8"), "blank", "not while it runs");
    await placeReturned(directory);
    const store = openStore(join(directory, "state.sqlite"));
    const loaded = store.load();
    store.close();
    assert.deepEqual(loaded.get("own/element/c1-1"), { path: "shop" });
    assert.match(JSON.stringify(loaded.get("history/restored")), /a backup, by the operator's hand/);
    assert.equal(await readFile(join(directory, "before-restore", "state.sqlite-wal"), "utf8"), "its journal");
    await placeReturned(directory);
    assert.equal(await readFile(join(directory, "before-restore", "state.sqlite"), "utf8"), "blank", "once");
    // Broken off after what was there had been set aside.
    assert.equal((await put(copy)).status, 200);
    await rm(join(directory, "state.sqlite"));
    await placeReturned(directory);
    assert.ok(existsSync(join(directory, "state.sqlite")));
    assert.equal(await readFile(join(directory, "before-restore", "state.sqlite"), "utf8"), "blank");
  });
});

test("a copy that was taken comes into its place at once, also where nobody hears the answer", async () => {
  const copy = await storeOf("unheard", { "own/element/c1-1": { path: "shop" } });
  await controllerIn("unheard", true, async ({ directory, putAndGo, restarts }) => {
    await putAndGo(copy);
    assert.ok(existsSync(join(directory, "state.sqlite.returned")));
    // Left there, it would replace at some later start what the controller has learnt by then.
    assert.equal(restarts(), 1);
  });
});

test("a store that nobody doubts stays, and what is no store of this cell is refused and leaves nothing", async () => {
  const copy = await storeOf("whole", { "own/element/c1-1": {} });
  await controllerIn("whole", false, async ({ directory, put, restarts }) => {
    const { status, text } = await put(copy);
    assert.equal(status, 409);
    assert.match(text, /nobody says that the store .* was lost or is older/);
    assert.deepEqual([(await readdir(directory)).length, restarts()], [2, 0]);
  });
  const wrong: readonly (readonly [Buffer, RegExp])[] = [
    [Buffer.from("no database"), /it is no database that SQLite can read/],
    [copy.subarray(0, copy.length / 2), /damaged|no database/],
    [await storeOf("other", { "own/element/c2-1": {} }), /it is of another cell, c2, and this one is c1/],
    [await storeOf("empty", { other: 1 }), /no element that says of which cell it is/],
    [Buffer.alloc(longestStore + 1), /it is longer than/],
  ];
  await controllerIn("wrong", true, async ({ directory, put, restarts }) => {
    for (const [bytes, why] of wrong) {
      const { status, text } = await put(bytes);
      assert.equal(status, 400, text);
      assert.match(text, why);
      assert.deepEqual([(await readdir(directory)).length, restarts()], [2, 0], text);
    }
  });
});
