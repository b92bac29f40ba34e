import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { watchCell } from "./changes.ts";
import { Client } from "./client.ts";

/** Longer than any of these tests may take: a change that is not told lets the test fail by its time-out. */
const never = 9_000;

test("a change is told once for many events, and a stream that breaks is followed again", async () => {
  const streams: ServerResponse[] = [];
  const asked: (string | undefined)[] = [];
  let arrived = (): void => undefined;
  const server = createServer((request, response) => {
    asked.push(request.url);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    streams.push(response);
    arrived();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const nextStream = (): Promise<void> =>
    new Promise((resolve) => {
      arrived = resolve;
    });
  const first = nextStream();
  const changes = watchCell(new Client({ url, credential: "x" }), "shop");
  try {
    await first;
    await changes.next(never);
    assert.deepEqual(asked, ["/cells/shop/events?follow=true&past=false"]);

    for (let id = 0; id < 50; id += 1) streams[0]?.write(`id: ${id}\ndata: {"id": ${id}}\n\n`);
    await changes.next(never);
    let told = false;
    const quiet = changes.next(300).then(() => {
      told = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(told, false, "fifty events were one change");
    await quiet;

    const again = nextStream();
    streams[0]?.destroy();
    await again;
    await changes.next(never);
    streams[1]?.write('id: 1\ndata: {"id": 1}\n\n');
    await changes.next(never);
  } finally {
    changes.close();
    server.closeAllConnections();
    server.close();
  }
});
