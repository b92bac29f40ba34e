import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "../../runtime/installation.testing.ts";
import { boundDoor, createPlacesOf, type DoorLimits } from "./door.ts";

const limits: DoorLimits = {
  connections: { inAll: 100, ofSource: 4 },
  upgrades: { inAll: 100, ofSource: 2 },
  body: { least: 1000, periodMs: 400 },
};
const withDoor = async (work: (to: () => Socket, served: readonly Socket[]) => Promise<void>): Promise<void> => {
  const served: Socket[] = [];
  const server = createServer(async (incoming, response) => {
    const body = incoming.url === "/unread" ? "" : await text(incoming).catch(() => "");
    response.end(`heard ${body.length}`);
  });
  const upgraded: Duplex[] = [];
  boundDoor(
    server,
    (_incoming: IncomingMessage, socket: Duplex) => {
      upgraded.push(socket.resume().on("end", () => socket.end()));
      socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
    },
    limits,
  );
  server.on("connection", (socket) => served.push(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const sockets: Socket[] = [];
  try {
    await work(() => {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => undefined).resume();
      sockets.push(socket);
      return socket;
    }, served);
  } finally {
    for (const socket of [...sockets, ...upgraded]) socket.destroy();
    server.close();
  }
};
const soon = async (holds: () => boolean, what: string): Promise<void> => {
  for (let at = 0; at < 150 && !holds(); at += 1) await sleep(20);
  assert.ok(holds(), what);
};
const heardOf = (socket: Socket): { text: string } => {
  const heard = { text: "" };
  socket.setEncoding("utf8").on("data", (part: string) => {
    heard.text += part;
  });
  return heard;
};

test("one source has so many connections and sessions, all together so many, and what ends makes room", () =>
  withDoor(async (open) => {
    const four = [open(), open(), open(), open()];
    await eventually("they are open", () => four.every(({ readyState }) => readyState === "open"));
    await sleep(50);
    const fifth = open();
    await soon(() => fifth.closed, "a fifth one is closed");
    assert.ok(four.every((socket) => !socket.destroyed));
    const heard = four.map((socket) => {
      socket.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
      return heardOf(socket);
    });
    await eventually("all are answered", () => heard.every(({ text: each }) => each !== ""));
    const codes = heard.map(({ text: each }) => each.slice(9, 12)).sort();
    assert.deepEqual(codes, ["101", "101", "503", "503"]);
    for (const socket of four) socket.destroy();
    await sleep(50);
    const again = open();
    const its = heardOf(again);
    again.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
    await eventually("there is room again", () => its.text.startsWith("HTTP/1.1 101"));
    const places = createPlacesOf({ inAll: 3, ofSource: 2 });
    assert.deepEqual(
      ["a", "a", "a", "b", "c"].map((source) => places(source) !== null),
      [true, true, false, true, false],
    );
  }));

test("who sends a body slowly is cut, and who sends it steadily or has sent it is not", () =>
  withDoor(async (open) => {
    const head = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 21000\r\n\r\n";
    const [slow, steady, done] = [open(), open(), open()];
    for (const socket of [slow, steady]) socket.write(head);
    done.write(`${head}${"x".repeat(21_000)}`);
    const [answers, its] = [heardOf(steady), heardOf(done)];
    const begun = performance.now();
    for (let at = 0; at < 14; at += 1) {
      if (!slow.destroyed) slow.write("x");
      steady.write("x".repeat(1500));
      await sleep(80);
    }
    assert.ok(performance.now() - begun > 800);
    await soon(() => slow.closed, "the slow one is cut");
    await eventually("the steady one is heard", () => answers.text.endsWith("heard 21000"));
    assert.ok(its.text.endsWith("heard 21000") && !done.closed);
  }));

test("a connection keeps nothing of the requests that it has brought, read or not", () =>
  withDoor(async (open, served) => {
    const socket = open();
    const heard = heardOf(socket);
    const answers = (): number => heard.text.split("HTTP/1.1 200").length - 1;
    const post = async (path: string): Promise<void> => {
      const before = answers();
      socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nbody`);
      await eventually("it is answered", () => answers() > before);
    };
    await post("/read");
    const listeners = (): number => served[0]?.listenerCount("close") ?? -1;
    await eventually("the first one is over", () => listeners() >= 0);
    const first = listeners();
    for (let times = 0; times < 10; times += 1) await post(times % 2 === 0 ? "/read" : "/unread");
    await sleep(2 * limits.body.periodMs);
    assert.ok(listeners() <= first, `${listeners()} listeners after ten more, and ${first} before`);
  }));
