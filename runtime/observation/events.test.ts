import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, get, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { streamEvents } from "./events.ts";

test("a follower is forgotten when it leaves, also when it left before its stream began", async () => {
  let followers = 0;
  const follow = (): (() => void) => {
    followers += 1;
    return () => {
      followers -= 1;
    };
  };
  const begin = (response: ServerResponse): void =>
    streamEvents<{ id: number }>(response, { past: [], heading: ({ id }) => ({ id, event: "x" }), follow });
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const ask = async (): Promise<{ response: ServerResponse; leave(): Promise<unknown> }> => {
      const asked = once(server, "request");
      const request = get({ port: (server.address() as AddressInfo).port, host: "127.0.0.1" });
      request.on("error", () => undefined);
      const response = (await asked)[1] as ServerResponse;
      const left = once(response, "close");
      const leave = (): Promise<unknown> => {
        request.destroy();
        return left;
      };
      return { response, leave };
    };
    const stays = await ask();
    begin(stays.response);
    assert.equal(followers, 1);
    await stays.leave();
    assert.equal(followers, 0);
    const hasty = await ask();
    await hasty.leave();
    begin(hasty.response);
    assert.equal(followers, 0);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
