import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { askByTcp, serveByTcp, type TcpBounds } from "./by-tcp.ts";

const address = "127.16.54.1";
const framed = (text: string): Buffer =>
  Buffer.concat([Buffer.from([text.length >> 8, text.length & 255]), Buffer.from(text)]);
const bounds: TcpBounds = { connections: 6, connectionsOfAsker: 4, idleMs: 30_000, largestQuery: 100 };
type Answer = (text: string) => Promise<Uint8Array | null>;
const echo: Answer = async (text) => Buffer.from(`to ${text}`);

const slowAtFirst: Answer = (text) =>
  new Promise((resolve) => setTimeout(resolve, text === "one" ? 150 : 0, Buffer.from(`to ${text}`)));

interface Scene {
  /** A connection, whose errors are its end. */
  open(from?: string): Socket;
  readonly asked: string[];
}
async function withServer(
  more: Partial<TcpBounds>,
  answer: Answer,
  work: (scene: Scene) => Promise<void>,
): Promise<void> {
  const asked: string[] = [];
  const port = 5_900 + (process.pid % 500);
  const server = await serveByTcp({ address, port }, { ...bounds, ...more }, (packet) => {
    asked.push(packet.toString());
    return answer(packet.toString());
  });
  const sockets: Socket[] = [];
  const open = (from = "127.16.54.2"): Socket => {
    const socket = connect({ port, host: address, localAddress: from, allowHalfOpen: true });
    sockets.push(socket.on("error", () => {}));
    return socket;
  };
  try {
    await work({ open, asked });
  } finally {
    for (const socket of sockets) socket.destroy();
    await server.close();
  }
}
/** What comes until the other side ends, or until so many bytes are there. */
async function heard(
  socket: Socket,
  bytes = Number.POSITIVE_INFINITY,
  patienceMs = 2_000,
): Promise<string | "still open"> {
  let received = Buffer.alloc(0);
  const timer = new Promise<"late">((resolve) => setTimeout(resolve, patienceMs, "late").unref());
  const parts = (async () => {
    if (socket.destroyed) return "ended";
    for (;;) {
      const next = await Promise.race([once(socket, "data"), once(socket, "close"), once(socket, "end")]).catch(
        () => [],
      );
      if (!Buffer.isBuffer(next[0])) return "ended";
      received = Buffer.concat([received, next[0]]);
      if (received.length >= bytes) return "ended";
    }
  })();
  return (await Promise.race([parts, timer])) === "late" ? "still open" : received.toString();
}

test("each query is answered in its turn: in parts, several at once, and of who has closed his side", () =>
  withServer({}, slowAtFirst, async ({ open, asked }) => {
    const socket = open();
    const all = Buffer.concat([framed("one"), framed("two"), framed("three")]);
    socket.write(all.subarray(0, 1));
    await new Promise((resolve) => setTimeout(resolve, 30));
    socket.write(all.subarray(1, 9));
    await new Promise((resolve) => setTimeout(resolve, 30));
    socket.end(all.subarray(9));
    const expected = Buffer.concat([framed("to one"), framed("to two"), framed("to three")]).toString();
    assert.equal(await heard(socket), expected);
    assert.deepEqual(asked, ["one", "two", "three"]);
  }));

test("a query that is longer than any ends the connection before it is there, and so does one without an answer", () =>
  withServer(
    {},
    async () => null,
    async ({ open, asked }) => {
      const socket = open();
      socket.write(Buffer.from([0, 101, 1]));
      assert.equal(await heard(socket), "");
      assert.deepEqual(asked, []);
      const other = open();
      other.write(framed("one"));
      assert.equal(await heard(other), "");
    },
  ));

test("one address has so many connections and no more, all together so many, and a place that is left is another's", () =>
  withServer({}, echo, async ({ open }) => {
    const works = async (socket: Socket): Promise<boolean> => {
      socket.write(framed("one"));
      return (await heard(socket, 8)) === framed("to one").toString();
    };
    const mine = [open(), open(), open(), open()];
    for (const each of mine) assert.ok(await works(each));
    assert.ok(!(await works(open())), "a fifth of one address");
    const others = [open("127.16.54.3"), open("127.16.54.3")];
    for (const each of others) assert.ok(await works(each));
    assert.ok(!(await works(open("127.16.54.4"))), "a seventh in all");
    mine[0]?.destroy();
    let again = false;
    for (let tries = 0; !again && tries < 40; tries += 1) again = await works(open());
    assert.ok(again);
  }));

test("a connection ends that is idle, or whose answers nobody takes; one that waits for its answer goes on", async () => {
  const later: Answer = (text) => new Promise((resolve) => setTimeout(resolve, 600, Buffer.from(`to ${text}`)));
  await withServer({ idleMs: 200 }, later, async ({ open }) => {
    const socket = open();
    socket.write(framed("one"));
    assert.equal(await heard(socket), framed("to one").toString());
    const part = open();
    part.write(Buffer.from([0]));
    assert.equal(await heard(part), "");
  });
  const large: Answer = async () => Buffer.alloc(60_000);
  await withServer({ idleMs: 300 }, large, async ({ open, asked }) => {
    const socket = open().pause();
    for (let count = 0; count < 5_000; count += 1) socket.write(framed("one"));
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    assert.ok(asked.length > 0 && asked.length < 1_000, `${asked.length} were answered`);
    const before = asked.length;
    socket.resume();
    await heard(socket);
    assert.equal(asked.length, before, "it is over");
  });
});

test("who asks gets the one answer, and none that is too long, that does not come, or when he gives up", async () => {
  const port = 5_400 + (process.pid % 500);
  let reply = Buffer.concat([framed("to one"), framed("more")]);
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on("error", () => {}));
    socket.once("data", () => socket.write(reply));
  });
  server.listen(port, address);
  await once(server, "listening");
  const place = { address, port, from: "127.16.54.5", timeoutMs: 30_000, largest: 100 };
  const inTime = (asked: Promise<Buffer | null>): Promise<Buffer | null | "late"> =>
    Promise.race([asked, new Promise<"late">((resolve) => setTimeout(resolve, 2_000, "late").unref())]);
  try {
    assert.equal((await askByTcp(place, Buffer.from("one")))?.toString(), "to one");
    assert.equal(sockets[0]?.remoteAddress, "127.16.54.5");
    reply = Buffer.from([0, 101]);
    assert.equal(await inTime(askByTcp(place, Buffer.from("one"))), null);
    reply = Buffer.from([0]);
    assert.equal(await inTime(askByTcp({ ...place, timeoutMs: 100 }, Buffer.from("one"))), null);
    const given = askByTcp(place, Buffer.from("one"), (giveUp) => setTimeout(giveUp, 50));
    assert.equal(await inTime(given), null);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
});
