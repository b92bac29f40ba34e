import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../../model/cell/identifiers.ts";
import { createClient } from "../server.ts";
import { beyond, shareOf } from "./share.ts";

const shop = peerName("controller.shop");
const stored = (text: string) => ({ generation: 1, seq: 1, value: text, text });

test("a client has room for the documents of a large cell, and for no more than its share", () => {
  const { documents, characters } = shareOf(shop);
  assert.ok(documents >= 30_000 && characters >= 30_000 * 400, "a cell of 5,000 VMs fits");
  assert.ok(shareOf(peerName("storage-manager")).documents > documents, "who serves many cells has more");
});

test("a document beyond a client's share is refused by name; one that grows no more never is", () => {
  const client = createClient(shop, 1);
  const before = stored("12345678");
  client.documents.set("vm/1", before);
  client.characters = shareOf(shop).characters - 4;
  assert.equal(beyond(client, undefined, "1234"), null);
  assert.equal(beyond(client, undefined, "12345"), "too much in documents");
  assert.equal(beyond(client, before, "123456789012"), null, "four more than it has");
  assert.equal(beyond(client, before, "1234567890123"), "too much in documents");
  assert.equal(beyond(client, before, "1"), null);
  client.characters = 8;
  Object.defineProperty(client.documents, "size", { value: shareOf(shop).documents });
  assert.equal(beyond(client, undefined, "1"), "too many documents");
  assert.equal(beyond(client, before, "other"), null);
});
