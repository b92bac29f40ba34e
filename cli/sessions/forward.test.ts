import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";
import { channels, sessionProtocol } from "../../model/cell/session-messages.ts";
import { eventually } from "../../runtime/installation.testing.ts";
import { writeClientConfiguration } from "../connection/client-config.ts";
import { portsOf } from "./forward.ts";

const main = fileURLToPath(new URL("../main.ts", import.meta.url));

test("ports are written HERE:THERE or THERE, and nothing else is a port", () => {
  assert.deepEqual(portsOf("8080:80"), { here: 8080, there: 80 });
  assert.deepEqual(portsOf("5432"), { here: 5432, there: 5432 });
  assert.deepEqual(portsOf("0:80"), { here: 0, there: 80 });
  for (const wrong of [
    "",
    "80:0",
    "0",
    "65536",
    "80:65536",
    "a",
    "1:2:3",
    "-1",
    "8080:",
    "127.0.0.1:80:80",
    "9".repeat(10_000),
  ])
    assert.throws(() => portsOf(wrong), /are no ports: write HERE:THERE/, wrong.slice(0, 20));
});

/** A gateway whose guest answers each connection in capitals once its input has ended; port 81 is closed, and 82 not allowed. */
async function world(work: (run: (...args: string[]) => ReturnType<typeof spawn>, asked: object[]) => Promise<void>) {
  const directory = mkdtempSync(join(tmpdir(), "cells-forward-"));
  const asked: object[] = [];
  let port = 0;
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await text(request)) as { readonly port: number };
    asked.push(body);
    port = body.port;
    const refused = port === 82;
    response.writeHead(refused ? 403 : 201, { "content-type": "application/json" });
    const grant = {
      session: "c".repeat(43),
      expires: "2030-01-01T00:00:00.000Z",
      vm: "shop/web",
      incarnation: 3,
      host: "h1",
    };
    response.end(
      JSON.stringify(refused ? { error: { code: "forbidden", message: "the cell lets nobody forward" } } : grant),
    );
  });
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => sessionProtocol });
  server.on("upgrade", (request, socket, head) =>
    sockets.handleUpgrade(request, socket, head, (guest) => {
      guest.send(JSON.stringify({ kind: "opened", incarnation: 3, host: "h1", viewers: 1, pastBytes: 0 }));
      if (port === 81) {
        guest.send(Buffer.concat([Buffer.of(channels.error), Buffer.from("connection \u001b[31mrefused")]));
        guest.send(JSON.stringify({ kind: "exited", exitCode: 1 }));
        guest.close(1000);
        return;
      }
      let input = "";
      guest.on("message", (data, isBinary) => {
        if (isBinary) input += String(data);
        else if ((JSON.parse(String(data)) as { kind: string }).kind === "input-end") {
          guest.send(Buffer.concat([Buffer.of(channels.output), Buffer.from(input.toUpperCase())]));
          guest.send(JSON.stringify({ kind: "exited", exitCode: 0 }));
          guest.close(1000);
        }
        if (isBinary) guest.send(JSON.stringify({ kind: "taken", bytes: (data as Buffer).length }));
      });
    }),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const file = join(directory, "config.json");
  const at = (server.address() as AddressInfo).port;
  writeClientConfiguration({ url: `http://127.0.0.1:${at}`, credential: "secret" }, file);
  const run = (...args: string[]) =>
    spawn(process.execPath, [main, ...(args[0] === "display" ? [] : ["forward"]), ...args], {
      env: { ...process.env, CELLS_CONFIG: file, NO_COLOR: "1" },
    });
  try {
    await work(run, asked);
  } finally {
    for (const socket of sockets.clients) socket.terminate();
    server.closeAllConnections();
    server.close();
    rmSync(directory, { recursive: true, force: true });
  }
}
const asking = async (port: number, what: string): Promise<string> => {
  const socket = connect(port, "127.0.0.1");
  socket.end(what);
  return text(socket);
};

test("each connection to the port here is one of its own to the port of the VM, both ways, until Ctrl-C", async () => {
  await world(async (run, asked) => {
    const command = run("shop/web", "0:80", "--output", "json");
    const printed = text(command.stdout ?? assert.fail());
    await eventually("it is asked", () => asked.length > 0);
    await new Promise((resolve) => setTimeout(resolve, 300));
    command.kill("SIGINT");
    const { port, address } = JSON.parse(await printed) as { readonly port: number; readonly address: string };
    assert.deepEqual([port, address], [80, "127.0.0.1"]);
    assert.deepEqual(asked[0], { vm: "shop/web", verb: "forward", port: 80 });
  });
  await world(async (run, asked) => {
    const command = run("shop/web", "0:80");
    const [line] = (await once(createInterface(command.stdout ?? assert.fail()), "line")) as [string];
    const port = Number(/^127\.0\.0\.1:(\d+) is port 80 of shop\/web/.exec(line)?.[1]);
    const large = "x".repeat(1_000_000);
    const answers = await Promise.all([asking(port, "one"), asking(port, "two"), asking(port, large)]);
    assert.deepEqual(answers.slice(0, 2), ["ONE", "TWO"]);
    assert.equal(answers[2], large.toUpperCase());
    assert.equal(asked.length, 4, "a session each, and one that was asked whether it may be");
    command.kill("SIGINT");
    const [code] = await once(command, "exit");
    assert.equal(code, 0);
  });
});

test("where nobody listens the connection ends and it is said; what is not allowed is told before anybody connects", async () => {
  await world(async (run) => {
    const command = run("shop/web", "0:81");
    const said = text(command.stderr ?? assert.fail());
    const [line] = (await once(createInterface(command.stdout ?? assert.fail()), "line")) as [string];
    const port = Number(/:(\d+) is/.exec(line)?.[1]);
    assert.equal(await asking(port, "x").catch(() => ""), "");
    command.kill("SIGINT");
    await once(command, "exit");
    assert.match(await said, /shop\/web port 81: connection .*refused/);
    assert.ok(!(await said).includes("\u001b"), "a guest's words are text");
    const refused = run("shop/web", "82");
    const why = text(refused.stderr ?? assert.fail());
    assert.equal((await once(refused, "exit"))[0], 1);
    assert.match(await why, /the cell lets nobody forward/);
  });
});

test("a display is a port here for viewers, each with a session of its own, or one viewer by standard input and output", async () => {
  await world(async (run, asked) => {
    const command = run("display", "shop/web");
    const [line] = (await once(createInterface(command.stdout ?? assert.fail()), "line")) as [string];
    const port = Number(/^vnc:\/\/127\.0\.0\.1:(\d+) is the display of shop\/web/.exec(line)?.[1]);
    assert.deepEqual(await Promise.all([asking(port, "rfb"), asking(port, "two")]), ["RFB", "TWO"]);
    assert.deepEqual(asked, Array(3).fill({ vm: "shop/web", verb: "display" }));
    command.kill("SIGINT");
    assert.equal((await once(command, "exit"))[0], 0);
    const one = run("display", "shop/web", "--stdio");
    one.stdin?.end("rfb");
    assert.equal(await text(one.stdout ?? assert.fail()), "RFB");
    const wrong = run("display", "shop/web", "--port", "65536");
    const why = text(wrong.stderr ?? assert.fail());
    assert.equal((await once(wrong, "exit"))[0], 2);
    assert.match(await why, /--port is "65536"; it would be a number from 0/);
  });
});
