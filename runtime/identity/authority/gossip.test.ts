import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { PeerHandler } from "../../http/peer-handler.ts";
import { createAuthority, gossipKeyOf } from "../certificates.ts";
import { gossipKeyBytes, markOfGossipKey } from "../own/gossip-key.ts";
import { serveGossip } from "./gossip.ts";

test("a host is heard of epochs whose keys it has, and of others not, however often it says so", async () => {
  const directory = await mkdtemp(join(tmpdir(), "cells-gossip-"));
  const heard: Json[] = [];
  const looks = Promise.withResolvers<void>();
  const served = serveGossip({
    directory,
    heardAt: () => null,
    request: async (asked) => {
      const { kind, has } = asked as { readonly kind: string; readonly has: Json };
      if (kind === "gossip-turn") looks.resolve();
      else heard.push(has);
      return { kind: "gossip", gossip: { oldest: 0, send: 0, newest: 0 } };
    },
  });
  const say = async (oldest: number, newest: number, marks: string): Promise<Json> => {
    const url = `/gossip?oldest=${oldest}&send=${oldest}&newest=${newest}&marks=${marks}`;
    const asked = { peer: peerName("host.h1"), method: "GET", url } as unknown as Parameters<PeerHandler>[0];
    await served.answer(asked, { writeHead: () => undefined, end: () => undefined } as unknown as ServerResponse);
    return heard.at(-1) ?? null;
  };
  try {
    await createAuthority(directory);
    const mark = async (epoch: number): Promise<string> =>
      `${epoch}.${markOfGossipKey(gossipKeyBytes(await gossipKeyOf(directory, epoch)))}`;
    const [four, five] = [await mark(4), await mark(5)];
    assert.deepEqual(await say(0, 0, ""), { oldest: 0, send: 0, newest: 0 });
    assert.deepEqual(await say(4, 5, `${four},${five}`), { oldest: 4, send: 4, newest: 5 });
    const without = ["", four, five, `${four},5.${four.slice(2)}`, `${four},${await mark(64)}`];
    for (const marks of without) assert.equal(await say(4, 5, marks), null);
    // What it has is later than what the authority knows.
    await looks.promise;
  } finally {
    served.stop();
    await rm(directory, { recursive: true, force: true });
  }
});
