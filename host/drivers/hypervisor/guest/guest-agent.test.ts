import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createGuestAgent, outputLimit } from "./guest-agent.ts";

/*
 * The other side of the agent's channel is the guest, and whoever is root there. One event loop of the host looks after all
 * machines, so that what one guest says must cost next to nothing.
 */
let directory = "";
let number = 0;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), `cells-agent-${process.pid}-`));
});
after(() => rm(directory, { recursive: true, force: true }));

interface Asked {
  readonly execute: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}
/** A guest whose agent answers the synchronisation properly, and everything else as told. */
const guest = async (answer: (asked: Asked, socket: Socket) => void) => {
  const path = join(directory, `${++number}.sock`);
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("data", (data) => {
      for (const line of String(data).split("\n")) {
        if (line === "") continue;
        const asked = JSON.parse(line) as Asked;
        if (asked.execute === "guest-sync") socket.write(`{"return": ${asked.arguments.id}}\n`);
        else answer(asked, socket);
      }
    });
  });
  server.listen(path);
  await once(server, "listening");
  const agent = createGuestAgent(path);
  return {
    agent,
    /** Of what it wrote, what the host has taken. In bytes; the kernel holds some of it. */
    taken: () => [...sockets].reduce((sum, socket) => sum + socket.bytesWritten - socket.writableLength, 0),
    close: () => {
      agent.close();
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
};
const piece = Buffer.alloc(64 * 1024, '{"return":"');

test("what a guest says unasked stays where it is", async () => {
  const { agent, taken, close } = await guest((_asked, socket) => {
    socket.write('{"return":{}}\n');
    // One piece after the other, since what was taken is known by whole writes.
    const more = (): void => {
      if (!socket.destroyed) socket.write(piece, more);
    };
    setImmediate(more);
  });
  try {
    await agent.call("guest-ping", {}, 10_000);
    for (let looks = 0; looks < 20; looks += 1) await sleep(20);
    assert.ok(taken() < 2 * 1024 * 1024, `the host took ${taken()} bytes`);
  } finally {
    close();
  }
});

test("a line that would cost much is dropped, and the right answer behind it counts", async () => {
  const deep = `${"[".repeat(300_000)}${"]".repeat(300_000)}\n`;
  const wide = `{"return":[${"{},".repeat(200_000)}{}]}\n`;
  const { agent, close } = await guest((_asked, socket) => {
    socket.write(deep);
    socket.write(wide);
    socket.write('{"return":{"right":true}}\n');
  });
  try {
    assert.deepEqual(await agent.call("guest-ping", {}, 60_000), { right: true });
  } finally {
    close();
  }
});

test("a guest that says much in place of an answer is given up at once", async () => {
  const { agent, close } = await guest((_asked, socket) => socket.write(Buffer.alloc(1024 * 1024, '{"event":1}\n')));
  try {
    await assert.rejects(agent.call("guest-ping", {}, 600_000), /says what nobody asked it/);
  } finally {
    close();
  }
});

test("a channel that ends is said at once", async () => {
  const { agent, close } = await guest((_asked, socket) => socket.destroy());
  try {
    await assert.rejects(agent.call("guest-ping", {}, 600_000), /channel was closed/);
  } finally {
    close();
  }
});

test("an agent belongs to one machine: once closed it never connects again, whoever still asks through it", async () => {
  const path = join(directory, `${++number}.sock`);
  let connections = 0;
  /** Two machines, one after the other, have their channel at the same place; QEMU serves one client at a time. */
  const machine = async (): Promise<Server> => {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      connections += 1;
      sockets.add(socket);
      socket.on("error", () => undefined);
    });
    server.on("close", () => {
      for (const socket of sockets) socket.destroy();
    });
    server.listen(path);
    await once(server, "listening");
    return server;
  };
  const first = await machine();
  const agent = createGuestAgent(path);
  const connected = once(first, "connection");
  const asked = agent.call("guest-ping", {}, 5_000);
  const queued = agent.call("guest-ping", {}, 5_000);
  const refused = [asked, queued].map((call) => assert.rejects(call, /its machine has ended/));
  await connected;
  first.close();
  agent.close();
  const second = await machine();
  try {
    await Promise.all(refused);
    await assert.rejects(agent.call("guest-exec", {}, 60_000), /its machine has ended/);
    await assert.rejects(agent.exec(["/bin/true"], 60_000), /its machine has ended/);
    const next = createGuestAgent(path);
    const reached = once(second, "connection");
    next.call("guest-ping", {}, 60_000).catch(() => undefined);
    await reached;
    next.close();
    assert.equal(connections, 2, "each machine was connected to once, by its own agent");
  } finally {
    second.close();
  }
});

test("who gives up while a guest boots leaves no connection behind, and the next in turn is answered", async () => {
  const path = join(directory, `${++number}.sock`);
  /** As QEMU does: one client at a time, the others wait until it has gone. */
  const clients: Socket[] = [];
  let isUp = false;
  const server = createServer((socket) => {
    clients.push(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => clients.splice(clients.indexOf(socket), 1));
    socket.on("data", (data) => {
      if (!isUp || clients[0] !== socket) return;
      const asked = JSON.parse(String(data).trim()) as Asked;
      socket.write(`{"return": ${asked.execute === "guest-sync" ? asked.arguments.id : "{}"}}\n`);
    });
  });
  server.listen(path);
  await once(server, "listening");
  const agent = createGuestAgent(path);
  try {
    const impatient = Array.from({ length: 5 }, () => assert.rejects(agent.call("guest-ping", {}, 50), /not answer/));
    const patient = agent.call("guest-ping", {}, 60_000);
    await Promise.all(impatient);
    isUp = true;
    await patient;
    assert.equal(clients.length, 1);
  } finally {
    agent.close();
    for (const client of clients) client.destroy();
    server.close();
  }
});

test("of a command's output each stream is kept up to its limit, however much there is", async () => {
  const out = Buffer.alloc(3 * outputLimit, "o").toString("base64");
  const { agent, close } = await guest(({ execute }, socket) =>
    socket.write(
      execute === "guest-exec"
        ? '{"return":{"pid":7}}\n'
        : `{"return":{"exited":true,"exitcode":3,"out-data":"${out}","err-data":"${Buffer.from("what").toString("base64")}"}}\n`,
    ),
  );
  try {
    const { exitCode, stdout, stderr } = await agent.exec(["/bin/x"], 60_000);
    assert.deepEqual([exitCode, stdout.length, stderr], [3, outputLimit, "what"]);
    assert.match(stdout, /^o+$/);
  } finally {
    close();
  }
});
