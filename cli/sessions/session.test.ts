import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { WebSocket } from "ws";
import {
  type ClientMessage,
  capabilityPrefix,
  inputWindowBytes,
  type SessionMessage,
  sessionProtocol,
} from "../../model/cell/session-messages.ts";
import { Client as Asking } from "../connection/client.ts";
import { CommandFailure } from "../terminal/failure.ts";
import { type Guest, grant, opened, withSessions } from "./session.testing.ts";
import { openSession } from "./session.ts";

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
