import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { type TestContext, test } from "node:test";
import { WebSocketServer } from "ws";
import {
  type ClientMessage,
  channels,
  inputWindowBytes,
  type SessionMessage,
  sessionProtocol,
} from "../../model/cell/session-messages.ts";
import { Client } from "../connection/client.ts";
import type { Context } from "../context/context.ts";
import { CommandFailure } from "../terminal/failure.ts";
import { copy, guestFileOf } from "./cp.ts";

/** A gateway whose guest is this machine: commands are run here, and take their input as it comes. */
const scene = async (t: TestContext, tamper: (input: Buffer) => Buffer = (input) => input) => {
  const directory = mkdtempSync(join(tmpdir(), "cells-cp-"));
  let most = 0;
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => sessionProtocol });
  const server = createServer((_request, response) => {
    const grant = {
      session: "c".repeat(43),
      expires: "2030-01-01T00:00:00.000Z",
      vm: "shop/web",
      incarnation: 1,
      host: "h1",
    };
    response.writeHead(201, { "content-type": "application/json" }).end(JSON.stringify(grant));
  });
  server.on("upgrade", (request, socket, head) => {
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      const say = (message: SessionMessage): void => webSocket.send(JSON.stringify(message));
      let untaken = 0;
      let stdin: Writable | null = null;
      const begin = (command: readonly string[]): void => {
        const [name = "", ...args] = command;
        const child = spawn(name, args);
        stdin = child.stdin;
        stdin.on("error", () => undefined);
        child.stdout.on("data", (bytes: Buffer) => webSocket.send(Buffer.concat([Buffer.of(channels.output), bytes])));
        child.stderr.on("data", (bytes: Buffer) => webSocket.send(Buffer.concat([Buffer.of(channels.error), bytes])));
        child.once("close", (code) => {
          say({ kind: "exited", exitCode: code ?? 1 });
          webSocket.close();
        });
      };
      webSocket.on("message", (data, isBinary) => {
        if (isBinary) {
          const { length } = data as Buffer;
          untaken += length;
          most = Math.max(most, untaken);
          stdin?.write(tamper(data as Buffer), () => {
            untaken -= length;
            say({ kind: "taken", bytes: length });
          });
          return;
        }
        const message = JSON.parse(String(data)) as ClientMessage;
        if (message.kind === "run") begin(message.command);
        if (message.kind === "input-end" || (message.kind === "run" && !message.input)) stdin?.end();
      });
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    for (const socket of sockets.clients) socket.terminate();
    server.closeAllConnections();
    server.close();
    rmSync(directory, { recursive: true, force: true });
  });
  const client = new Client({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, credential: "x" });
  const context = { terminal: { print: () => undefined }, json: false, client: () => client } as unknown as Context;
  return { directory, most: () => most, context };
};

test("a file goes in and out whole, whatever its size and its name", async (t) => {
  const { directory, most, context } = await scene(t);
  const [here, there, back] = ["here", "there $(touch x) 'y'", "back"].map((name) => join(directory, name));
  assert.ok(here !== undefined && there !== undefined && back !== undefined);
  for (const size of [0, 5, 2_500_000]) {
    const bytes = randomBytes(size);
    writeFileSync(here, bytes, { mode: 0o750 });
    await copy(context, here, `shop/web:${there}`, 3);
    assert.ok(readFileSync(there).equals(bytes));
    assert.ok(most() <= inputWindowBytes.exec, `${most()} bytes were on their way`);
    await copy(context, `shop/web:${there}`, back, 3);
    assert.ok(readFileSync(back).equals(bytes));
  }
  await copy(context, `shop/web:${here}`, directory, 3).catch((error: unknown) => assert.fail(String(error)));
  assert.deepEqual(readdirSync(directory).toSorted(), ["back", "here", "there $(touch x) 'y'"]);
});

test("what is not whole is not kept, and what was there stays", async (t) => {
  const { directory, context } = await scene(t, (input) => input.subarray(0, 3));
  const [here, there] = [join(directory, "here"), join(directory, "there")];
  writeFileSync(here, "all of it");
  writeFileSync(there, "before");
  await assert.rejects(copy(context, here, `shop/web:${there}`, 3), /there is not what .*here was.*Nothing was kept/);
  assert.equal(readFileSync(there, "utf8"), "before");
  await assert.rejects(copy(context, `shop/web:${directory}/none`, here, 3), (error) => {
    assert.ok(error instanceof CommandFailure && error.exitCode === 1, String(error));
    return true;
  });
  assert.equal(readFileSync(here, "utf8"), "all of it");
  assert.deepEqual(readdirSync(directory).toSorted(), ["here", "there"]);
  assert.ok(!existsSync(join(directory, "none")));
});

test("a guest whose file does not end fills no disk here", async (t) => {
  const { directory, context } = await scene(t);
  const [there, here] = [join(directory, "there"), join(directory, "here")];
  writeFileSync(there, Buffer.alloc(1024 * 1024));
  await copy(context, `shop/web:${there}`, here, 1);
  writeFileSync(there, Buffer.alloc(1024 * 1024 + 1));
  await assert.rejects(
    copy(context, `shop/web:${there}`, here, 1),
    /shop\/web:.*there is more than 1 MiB. Nothing was kept; --most says how much is taken/,
  );
  assert.equal(readFileSync(here).length, 1024 * 1024, "what was there stays");
  assert.deepEqual(readdirSync(directory).toSorted(), ["here", "there"]);
});

test("one of the two is in a VM, and is written with its path", async (t) => {
  const { context } = await scene(t);
  assert.deepEqual(guestFileOf("shop/web/vm:/a:b"), { vm: "shop/web/vm", path: "/a:b" });
  assert.deepEqual([guestFileOf("./a:b"), guestFileOf("/a:b"), guestFileOf("a")], [null, null, null]);
  await assert.rejects(copy(context, "a", "b", 3), /one of the two is a file in a VM/);
  await assert.rejects(copy(context, "shop:/a", "b", 3), /shop is no path of a VM/);
  await assert.rejects(copy(context, "shop/web:", "b", 3), /which file in shop\/web\?/);
});
