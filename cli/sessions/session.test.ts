import assert from "node:assert/strict";
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type WebSocket, WebSocketServer } from "ws";
import {
  type ClientMessage,
  capabilityPrefix,
  channels,
  inputWindowBytes,
  type SessionMessage,
  sessionProtocol,
} from "../../model/cell/session-messages.ts";
import { Client as Asking } from "../connection/client.ts";
import { writeClientConfiguration } from "../connection/client-config.ts";
import { CommandFailure } from "../terminal/failure.ts";
import { withoutQueries } from "./replay.ts";
import { openSession } from "./session.ts";

/** `cells exec` and `cells console` as a user runs them, against a gateway whose sessions are the test's. */
const main = fileURLToPath(new URL("../main.ts", import.meta.url));
const grant = {
  session: "c".repeat(43),
  expires: "2030-01-01T00:00:00.000Z",
  vm: "shop/web",
  incarnation: 3,
  host: "h1",
};
const opened = { kind: "opened", incarnation: 3, host: "h1", viewers: 1, pastBytes: 0 } as const;

interface Guest {
  readonly socket: WebSocket;
  send(message: SessionMessage): void;
  write(channel: keyof typeof channels, text: string): void;
  onMessage(listener: (message: ClientMessage) => void): void;
  onInput(listener: (text: string) => void): void;
}
const guestAt = (socket: WebSocket): Guest => ({
  socket,
  send: (message) => socket.send(JSON.stringify(message)),
  write: (channel, text) => socket.send(Buffer.concat([Buffer.of(channels[channel]), Buffer.from(text)])),
  onMessage: (listener) =>
    void socket.on("message", (data, isBinary) => {
      if (!isBinary) listener(JSON.parse(String(data)) as ClientMessage);
    }),
  onInput: (listener) =>
    void socket.on("message", (data, isBinary) => {
      if (!isBinary) return;
      listener(String(data));
      socket.send(JSON.stringify({ kind: "taken", bytes: (data as Buffer).length } satisfies SessionMessage));
    }),
});

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}
interface Running {
  readonly child: ChildProcessWithoutNullStreams;
  readonly ended: Promise<Ended>;
}
interface Client {
  run(...args: readonly string[]): Running;
  readonly asked: readonly string[];
  /** What each session was asked for by. */
  readonly bodies: readonly string[];
}

const withSessions = async (
  serve: (guest: Guest, count: number) => void,
  work: (client: Client) => Promise<void>,
  refuseWith?: { readonly status: number; readonly message: string },
): Promise<void> => {
  const directory = mkdtempSync(join(tmpdir(), "cells-cli-"));
  const asked: string[] = [];
  let count = 0;
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => sessionProtocol });
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    asked.push(`${request.method} ${request.url} ${request.headers.authorization}`);
    bodies.push(await textOf(request));
    response.writeHead(201, { "content-type": "application/json" }).end(JSON.stringify(grant));
  });
  server.on("upgrade", (request, socket, head) => {
    asked.push(`${request.url} ${request.headers["sec-websocket-protocol"]} ${request.headers.authorization}`);
    if (refuseWith !== undefined && count === 0) {
      count += 1;
      const body = JSON.stringify({ error: { code: "x", message: refuseWith.message } });
      socket.end(
        `HTTP/1.1 ${refuseWith.status} No\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
      );
      return;
    }
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      count += 1;
      serve(guestAt(webSocket), count);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const configFile = join(directory, "config.json");
  const { port } = server.address() as AddressInfo;
  writeClientConfiguration({ url: `http://127.0.0.1:${port}`, credential: "secret" }, configFile);
  const run = (...args: readonly string[]): Running => {
    const child = spawn(process.execPath, [main, ...args], { env: { ...process.env, CELLS_CONFIG: configFile } });
    const output = { stdout: "", stderr: "" };
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output.stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      output.stderr += text;
    });
    child.stdin.on("error", () => undefined);
    return { child, ended: new Promise((resolve) => child.once("close", (code) => resolve({ code, ...output }))) };
  };
  try {
    await work({ run, asked, bodies });
  } finally {
    for (const socket of sockets.clients) socket.terminate();
    server.closeAllConnections();
    server.close();
    rmSync(directory, { recursive: true, force: true });
  }
};

test("exec passes the guest's output and exit code on, and shows its capability to nobody but the handshake", async () => {
  const messages: ClientMessage[] = [];
  const serve = (guest: Guest): void => {
    guest.send(opened);
    guest.onMessage((message) => {
      messages.push(message);
      guest.write("output", "out\n");
      guest.write("error", "err\n");
      guest.send({ kind: "exited", exitCode: 7 });
      guest.socket.close();
    });
  };
  await withSessions(serve, async ({ run, asked }) => {
    const ended = await run("exec", "shop/web", "--timeout", "9", "--", "ls", "-l").ended;
    assert.deepEqual(ended, { code: 7, stdout: "out\n", stderr: "err\n" });
    assert.deepEqual(asked, [
      "POST /cells/shop/sessions Bearer secret",
      `/cells/shop/sessions ${sessionProtocol},${capabilityPrefix}${grant.session} undefined`,
    ]);
    assert.deepEqual(messages, [{ kind: "run", command: ["ls", "-l"], input: false, timeoutMs: 9000 }]);
    const json = await run("exec", "shop/web", "--output", "json", "--", "ls").ended;
    assert.deepEqual(JSON.parse(json.stdout), { exitCode: 7, stdout: "out\n", stderr: "err\n" });
  });
});

test("exec -i gives its input as it comes, in pieces that wait for room, then its end", async () => {
  let received = "";
  let heard: () => void = () => undefined;
  const serve = (guest: Guest): void => {
    guest.send(opened);
    guest.onInput((text) => {
      received += text;
      heard();
    });
    guest.onMessage(({ kind }) => {
      if (kind !== "input-end") return;
      guest.send({ kind: "exited", exitCode: 0 });
      guest.socket.close();
    });
  };
  await withSessions(serve, async ({ run }) => {
    const { child, ended } = run("exec", "-i", "shop/web", "--", "cat");
    const first = new Promise<void>((resolve) => {
      heard = resolve;
    });
    child.stdin.write("first");
    await Promise.race([first, ended]);
    assert.equal(received, "first", "before the input has ended");
    const input = "0123456789abcdef".repeat(200_000);
    child.stdin.end(input);
    assert.equal((await ended).code, 0);
    assert.equal(received.length, 5 + input.length);
    assert.equal(received, `first${input}`);
  });
});

test("exec -i reads no further than the guest has room, and does not wait for an input that nobody wants", async () => {
  let received = 0;
  const full = Promise.withResolvers<WebSocket>();
  const serve = (guest: Guest): void => {
    guest.send(opened);
    guest.socket.on("message", (data, isBinary) => {
      if (!isBinary) return;
      received += (data as Buffer).length;
      // The next piece would be more than may be on its way.
      if (received > inputWindowBytes.exec - 16 * 1024) full.resolve(guest.socket);
    });
  };
  await withSessions(serve, async ({ run }) => {
    const { child, ended } = run("exec", "-i", "shop/web", "--", "true");
    child.stdin.write(Buffer.alloc(4 * inputWindowBytes.exec));
    const socket = await full.promise;
    socket.send(JSON.stringify({ kind: "exited", exitCode: 4 } satisfies SessionMessage));
    socket.close();
    assert.equal((await ended).code, 4);
    assert.ok(received <= inputWindowBytes.exec, String(received));
  });
});

test("a guest's words in a sentence of ours move no terminal; its output may", async () => {
  const serve = (guest: Guest): void => {
    guest.send(opened);
    guest.write("output", "\u001b[1mbold");
    guest.send({ kind: "ended", cause: "failed", sentence: "the guest refuses: \u001b[2J" });
    guest.socket.close();
  };
  await withSessions(serve, async ({ run }) => {
    const { stdout, stderr } = await run("exec", "shop/web", "--", "id").ended;
    assert.deepEqual([stdout, stderr], ["\u001b[1mbold", "shop/web: the guest refuses: \ufffd[2J\n"]);
  });
});

test("Ctrl-C interrupts, then kills, then leaves", async () => {
  const signals: string[] = [];
  let begun: () => void = () => undefined;
  let told: () => void = () => undefined;
  const serve = (guest: Guest): void => {
    guest.onMessage((message) => {
      if (message.kind === "run") begun();
      if (message.kind === "signal") {
        signals.push(message.signal);
        told();
      }
    });
  };
  await withSessions(serve, async ({ run }) => {
    const running = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const { child, ended } = run("exec", "shop/web", "--", "sleep", "1000");
    await running;
    for (let count = 0; count < 2; count += 1) {
      const heard = new Promise<void>((resolve) => {
        told = resolve;
      });
      child.kill("SIGINT");
      await Promise.race([heard, ended]);
    }
    child.kill("SIGINT");
    const { code, stderr } = await ended;
    assert.deepEqual([code, signals], [130, ["INT", "KILL"]]);
    assert.match(stderr, /interrupting the command in the guest; Ctrl-C again kills it/);
  });
});

test("an end without a result says why", async () => {
  const serve = (guest: Guest, count: number): void => {
    guest.send(opened);
    if (count === 1) {
      guest.send({
        kind: "ended",
        cause: "machine-ended",
        sentence: "incarnation 3 of this VM has ended: stopped on request",
      });
      guest.socket.close();
    } else guest.socket.terminate();
  };
  await withSessions(serve, async ({ run }) => {
    const ended = await run("exec", "shop/web", "--", "ls").ended;
    assert.deepEqual(
      [ended.code, ended.stderr],
      [1, "shop/web: incarnation 3 of this VM has ended: stopped on request\n"],
    );
    const broken = await run("exec", "shop/web", "--", "ls").ended;
    assert.equal(broken.code, 3);
    assert.match(broken.stderr, /the connection to shop\/web ended before the command did/);
  });
});

test("a console without a terminal types what it is given and leaves when the answer has come", async () => {
  const serve = (guest: Guest): void => {
    guest.send({ ...opened, viewers: 2, pastBytes: 5 });
    guest.write("output", "past\n");
    guest.onInput((text) => {
      guest.write("output", `heard ${text}`);
      guest.send({ kind: "lost", bytes: 12 });
    });
  };
  await withSessions(serve, async ({ run }) => {
    const { child, ended } = run("console", "shop/web", "--linger", "0.3");
    child.stdin.end("uptime\n");
    const { code, stdout, stderr } = await ended;
    assert.deepEqual([code, stdout], [0, "past\nheard uptime\n"]);
    assert.match(stderr, /console of shop\/web, incarnation 3 on host h1\. 2 are at it; all see it, all may type\./);
    assert.match(stderr, /12 bytes are missing here/);
    assert.match(stderr, /left the console of shop\/web; the VM goes on/);
  });
});

test("a console says why it ended, and with --reconnect goes on with the next incarnation", async () => {
  const serve = (guest: Guest, count: number): void => {
    guest.send({ ...opened, incarnation: 2 + count });
    guest.write("output", `life ${count}\n`);
    if (count > 2) return;
    guest.send({
      kind: "ended",
      cause: "machine-ended",
      sentence: `incarnation ${2 + count} of this VM has ended: stopped on request`,
    });
    guest.socket.close();
  };
  await withSessions(serve, async ({ run }) => {
    const ended = await run("console", "shop/web").ended;
    assert.equal(ended.code, 1);
    assert.match(
      ended.stderr,
      /the console of shop\/web ended: incarnation 3 of this VM has ended: stopped on request/,
    );
    const { child, ended: later } = run("console", "shop/web", "--reconnect", "--linger", "0.3");
    child.stdin.end();
    const { code, stdout, stderr } = await later;
    assert.deepEqual([code, stdout], [0, "life 2\nlife 3\n"]);
    assert.match(stderr, /ended: stopped on request; trying again/);
    assert.match(stderr, /started anew: console of shop\/web, incarnation 5/);
  });
});

test("a refusal is told; one that may pass is waited out with --reconnect", async () => {
  const serve = (guest: Guest): void => {
    guest.send(opened);
    guest.write("output", "there\n");
  };
  const off = { status: 409, message: "shop/web does not run: it is off" };
  await withSessions(
    serve,
    async ({ run }) => assert.deepEqual((await run("console", "shop/web").ended).stderr, `${off.message}\n`),
    off,
  );
  await withSessions(
    serve,
    async ({ run }) => {
      const { child, ended } = run("console", "shop/web", "-r", "--linger", "0.3");
      child.stdin.end();
      const { code, stdout, stderr } = await ended;
      assert.deepEqual([code, stdout], [0, "there\n"]);
      assert.match(stderr, /it is off; trying again/);
    },
    off,
  );
  const unknown = { status: 404, message: "shop/web is no VM of the cell shop" };
  await withSessions(
    serve,
    async ({ run }) => assert.equal((await run("console", "shop/web", "-r").ended).code, 1, "waiting would be in vain"),
    unknown,
  );
});

test("what a recording asks of a terminal is left out, and everything else stays", () => {
  const escape_ = "\u001b";
  const asks = [
    `${escape_}[6n`,
    `${escape_}[c`,
    `${escape_}[>0c`,
    `${escape_}]11;?\u0007`,
    `${escape_}P+q544e${escape_}\\`,
  ];
  for (const ask of asks) assert.equal(withoutQueries(Buffer.from(`a${ask}b`)).toString(), "ab", JSON.stringify(ask));
  const kept = `${escape_}[31mröt${escape_}[0m${escape_}[2J${escape_}[10;20Hx\r\n`;
  assert.equal(withoutQueries(Buffer.from(kept)).toString(), kept);
});

test("logs prints what was recorded and leaves; nothing is typed", async () => {
  let typed = "";
  const serve = (guest: Guest): void => {
    guest.onInput((text) => {
      typed += text;
    });
    guest.send({ ...opened, pastBytes: 10 });
    guest.write("output", "one\ntwo");
    guest.write("output", "\n3\n");
  };
  await withSessions(serve, async ({ run }) => {
    assert.deepEqual(await run("logs", "shop/web").ended, { code: 0, stdout: "one\ntwo\n3\n", stderr: "" });
  });
  await withSessions(
    (guest) => guest.send(opened),
    async ({ run }) => {
      assert.deepEqual(await run("logs", "shop/web").ended, { code: 0, stdout: "", stderr: "" }, "there was nothing");
    },
  );
  assert.equal(typed, "");
});

test("logs --follow goes on with the next incarnation, and a refusal at first is told", async () => {
  const serve = (guest: Guest, count: number): void => {
    guest.send({ ...opened, incarnation: 2 + count, pastBytes: 4 });
    guest.write("output", `of ${count}`);
    if (count > 1) return;
    guest.write("output", "\nmore\n");
    guest.send({ kind: "ended", cause: "machine-ended", sentence: "it was stopped" });
    guest.socket.close();
  };
  await withSessions(serve, async ({ run }) => {
    const { child, ended } = run("logs", "shop/web", "--follow");
    let out = "";
    child.stdout.on("data", (text: string) => {
      out += text;
      if (out.endsWith("of 2")) child.kill("SIGINT");
    });
    const { stdout, stderr } = await ended;
    assert.equal(stdout, "of 1\nmore\nof 2");
    assert.match(
      stderr,
      /^\[incarnation 3 of shop\/web on host h1\]\n\[the console of shop\/web ended: it was stopped;/,
    );
    assert.match(stderr, /\[incarnation 4 of shop\/web on host h1\]\n$/);
  });
  const refusal = { status: 409, message: "the VM is off" };
  await withSessions(
    () => undefined,
    async ({ run }) => {
      const { code, stderr } = await run("logs", "shop/web", "-f").ended;
      assert.deepEqual([code, stderr], [1, "the VM is off\n"]);
    },
    refusal,
  );
});

test("logs of one incarnation are of no other, and with --follow they end with it", async () => {
  const serve = (guest: Guest, count: number): void => {
    guest.send({ ...opened, incarnation: 2 + count, pastBytes: 4 });
    guest.write("output", `of ${count}`);
    if (count > 1) return;
    guest.send({ kind: "ended", cause: "machine-ended", sentence: "it was stopped" });
    guest.socket.close();
  };
  await withSessions(serve, async ({ run }) => {
    const { code, stdout } = await run("logs", "shop/web", "--follow", "--incarnation", "3").ended;
    assert.deepEqual([code, stdout], [0, "of 1"]);
    const gone = await run("logs", "shop/web", "--incarnation", "3").ended;
    assert.deepEqual([gone.code, gone.stdout], [1, ""]);
    assert.match(gone.stderr, /the record of incarnation 3 of shop\/web went with it, since .*: incarnation 4 runs/);
    const later = await run("logs", "shop/web", "-f", "--incarnation", "9").ended;
    assert.deepEqual([later.code, later.stdout], [1, ""]);
    assert.match(later.stderr, /shop\/web has had no incarnation 9 yet: incarnation 5 runs/);
  });
});

test("logs of an incarnation that has ended are asked for by its number, and end with it", async () => {
  const serve = (guest: Guest): void => {
    guest.send({ ...opened, incarnation: 2, pastBytes: 6 });
    guest.write("output", "panic\n");
    guest.send({ kind: "ended", cause: "machine-ended", sentence: "incarnation 2 of this VM has ended" });
    guest.socket.close();
  };
  await withSessions(serve, async ({ run, bodies }) => {
    for (const more of [[], ["--follow"]]) {
      const { code, stdout } = await run("logs", "shop/web", "--incarnation", "2", ...more).ended;
      assert.deepEqual([code, stdout], [0, "panic\n"]);
    }
    assert.match(bodies[0] ?? "", /"incarnation":2/);
  });
});

test("logs --follow of one incarnation goes on where the connection ends, or the host's service, and the machine does not", async () => {
  const serve = (guest: Guest, count: number): void => {
    guest.send({ ...opened, incarnation: count > 3 ? 4 : 3, pastBytes: 4 });
    guest.write("output", `of ${count}`);
    if (count === 2) guest.send({ kind: "ended", cause: "closing", sentence: "the service restarts" });
    guest.socket.close();
  };
  await withSessions(serve, async ({ run }) => {
    const { code, stdout } = await run("logs", "shop/web", "--follow", "--incarnation", "3").ended;
    assert.deepEqual([code, stdout], [0, "of 1of 2of 3"]);
  });
});

/** A gateway that takes every connection and says nothing, or grants and says nothing more. */
const silent = async (t: TestContext, grants: boolean): Promise<Asking> => {
  const server = createServer((_request, response) => {
    if (grants) response.writeHead(201, { "content-type": "application/json" }).end(JSON.stringify({ session: "c" }));
  });
  server.on("upgrade", () => undefined);
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => sockets.add(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return new Asking({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, credential: "x" });
};
const openedInTime = async (client: Asking): Promise<unknown> => {
  const listener = { output: () => undefined, message: () => undefined };
  const left = new AbortController();
  const late = sleep(20_000, null, { signal: left.signal }).then(() => assert.fail("it is waited for without end"));
  late.catch(() => undefined);
  const request = { cell: "shop", vm: "shop/web", verb: "console" } as const;
  return Promise.race([openSession(client, request, listener, 3000), late]).finally(() => left.abort());
};

test("nobody waits for ever for a capability that never comes, nor for the session after it", async (t) => {
  for (const [grants, why] of [
    [false, /^nobody has said within 3 s whether shop\/web may be reached; `cells status` names/],
    [true, /^the session could not be opened: .*timed out/],
  ] as const)
    await assert.rejects(openedInTime(await silent(t, grants)), (error) => {
      assert.ok(error instanceof CommandFailure && error.exitCode === 3, String(error));
      assert.match(error.message, why);
      return true;
    });
});
