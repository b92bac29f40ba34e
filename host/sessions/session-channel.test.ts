import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket, WebSocketServer } from "ws";
import { createSessionChannel, unreadLimit } from "./session-channel.ts";

test("a client that asks and asks and reads no answer is not heard any more until it does", async () => {
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: false });
  await once(server, "listening");
  const connected = once(server, "connection");
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const [ours] = (await connected) as [WebSocket];
  await once(client, "open");
  try {
    const channel = createSessionChannel(ours, 600_000);
    const answer = "x".repeat(8 * 1024);
    const asked = 6000;
    let heard = 0;
    let most = 0;
    channel.onInput(() => {
      heard += 1;
      channel.send({ kind: "notice", sentence: answer });
      most = Math.max(most, ours.bufferedAmount);
    });
    client.pause();
    for (let count = 0; count < asked; count += 1) client.send(Buffer.alloc(4 * 1024), { binary: true });
    for (let before = -1; before < heard || heard === 0; await sleep(200)) before = heard;
    assert.ok(heard > 0 && heard < asked, `it was heard ${heard} times`);
    assert.ok(most < 2 * unreadLimit, `${most} bytes were held for it`);
    let answers = 0;
    client.on("message", () => {
      answers += 1;
    });
    client.resume();
    while (answers < asked) await sleep(20);
    assert.equal(heard, asked, "nothing was lost");
  } finally {
    client.terminate();
    ours.terminate();
    server.close();
  }
});
