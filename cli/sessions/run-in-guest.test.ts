import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type WebSocket, WebSocketServer } from "ws";
import { channels, type SessionMessage, sessionProtocol } from "../../model/cell/session-messages.ts";
import { Client } from "../connection/client.ts";
import { CommandFailure } from "../terminal/failure.ts";
import { type RunBounds, run } from "./run-in-guest.ts";

interface Guest {
  say(message: SessionMessage): void;
  write(channel: keyof typeof channels, bytes: Buffer): void;
  readonly socket: WebSocket;
}
/** A gateway whose guest does what the test says, once the command has come. */
const before = async (t: TestContext, guest: (guest: Guest) => void, grantAfterMs = 0): Promise<Client> => {
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => sessionProtocol });
  const server = createServer((_request, response) => {
    const grant = { session: "c".repeat(43), expires: "2030-01-01T00:00:00.000Z", vm: "shop/web", incarnation: 1 };
    response.writeHead(201, { "content-type": "application/json" });
    setTimeout(() => response.end(JSON.stringify(grant)), grantAfterMs);
  });
  server.on("upgrade", (request, socket, head) =>
    sockets.handleUpgrade(request, socket, head, (client) => {
      client.once("message", () =>
        guest({
          socket: client,
          say: (message) => client.send(JSON.stringify(message)),
          write: (channel, bytes) => client.send(Buffer.concat([Buffer.of(channels[channel]), bytes])),
        }),
      );
    }),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    for (const socket of sockets.clients) socket.terminate();
    server.closeAllConnections();
    server.close();
  });
  return new Client({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, credential: "x" });
};
const inTime = async <T>(what: Promise<T>): Promise<T> => {
  const ended = new AbortController();
  const late = sleep(10_000, null, { signal: ended.signal }).then(() => assert.fail("it is waited for without end"));
  late.catch(() => undefined);
  return Promise.race([what, late]).finally(() => ended.abort());
};
const refuses = (client: Client, bounds: RunBounds, why: RegExp): Promise<void> =>
  assert.rejects(inTime(run(client, "shop/web", ["true"], bounds)), (error) => {
    assert.ok(error instanceof CommandFailure && error.exitCode === 1, String(error));
    assert.match(error.message, why);
    return true;
  });

test("a guest that says nothing holds nobody", async (t) => {
  let isGone = false;
  const client = await before(t, ({ socket }) => socket.once("close", () => (isGone = true)));
  // Long enough that the session is there before, also on a busy machine.
  await refuses(client, { quietMs: 2000 }, /^shop\/web: its guest has said and taken nothing for 2 s; `cells why`/);
  for (let tries = 0; !isGone && tries < 1000; tries += 1) await sleep(10);
  assert.ok(isGone, "its host is told");
});

test("a guest that says a little for ever holds nobody where a time is set", async (t) => {
  const client = await before(t, ({ write, socket }) => {
    const timer = setInterval(() => write("error", Buffer.from(".")), 20);
    socket.once("close", () => clearInterval(timer));
  });
  await refuses(client, { quietMs: 10_000, limitMs: 300 }, /its guest was not done after 300 ms/);
});

test("a session that is there after its time is not begun", async (t) => {
  const client = await before(
    t,
    ({ write, socket }) => {
      const timer = setInterval(() => write("error", Buffer.from(".")), 20);
      socket.once("close", () => clearInterval(timer));
    },
    400,
  );
  await refuses(client, { quietMs: 10_000, limitMs: 100 }, /its guest was not done after 100 ms/);
});

test("of what a guest says beside its output the beginning is kept, and it is no control sequence", async (t) => {
  const client = await before(t, ({ write, say, socket }) => {
    write("error", Buffer.from("\u001b[2Jno such file\n"));
    for (let piece = 0; piece < 64; piece += 1) write("error", Buffer.alloc(32 * 1024, "x"));
    say({ kind: "exited", exitCode: 1 });
    socket.close();
  });
  const { exitCode, said } = await run(client, "shop/web", ["true"]);
  assert.equal(exitCode, 1);
  assert.match(said, /^\ufffd\[2Jno such file/);
  assert.ok(said.length <= 8 * 1024, `${said.length} letters are kept`);
});

test("a guest that says too much where little was asked for is left", async (t) => {
  let given = 0;
  const client = await before(t, ({ write, socket }) => {
    const timer = setInterval(() => write("output", Buffer.alloc(3000)), 5);
    socket.once("close", () => clearInterval(timer));
  });
  const output = (bytes: Buffer): null => {
    given += bytes.length;
    return null;
  };
  const bounds = { mostBytes: 4096, output };
  await refuses(client, bounds, /says more than 4096 bytes where a few were asked for/);
  assert.equal(given, 3000);
});

test("an output that cannot be written ends the command with that reason", async (t) => {
  const client = await before(t, ({ write }) => {
    for (let piece = 0; piece < 40; piece += 1) write("output", Buffer.alloc(64 * 1024));
  });
  const output = async (): Promise<void> => {
    throw new Error("ENOSPC: no space left on device");
  };
  await assert.rejects(inTime(run(client, "shop/web", ["true"], { output })), /ENOSPC/);
});
