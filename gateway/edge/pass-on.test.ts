import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, Server, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { after, test } from "node:test";
import { eventually } from "../../runtime/installation.testing.ts";
import { createHandshakes } from "../shared/handshakes.ts";
import { passOn } from "./pass-on.ts";

const ends: (() => void)[] = [];
after(() => {
  for (const end of ends) end();
});

/** Says back what it is told until that ends, then how much it was. */
const behind = async (): Promise<{ readonly server: Server; readonly port: number; readonly open: Set<Socket> }> => {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, async (socket) => {
    open.add(socket);
    socket.on("error", () => undefined).once("close", () => open.delete(socket));
    socket.write("hello ");
    socket.end(`${(await text(socket).catch(() => "")).length}`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  ends.push(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return { server, port: (server.address() as AddressInfo).port, open };
};
const limits = { inAll: 3, ofOneSource: 2, connectMs: 1000, againMs: 20 };
const passing = async (
  to: number,
  at = "127.0.0.1:0",
  failed: (why: string) => void = assert.fail,
  more: { readonly begins?: (source: string) => boolean } = {},
): Promise<number> => {
  const pass = passOn({ at, to: `127.0.0.1:${to}` }, failed, { ...limits, ...more });
  ends.push(pass.close);
  await eventually("it listens", () => pass.port() !== null);
  return pass.port() ?? 0;
};
const dial = async (port: number, localAddress = "127.0.0.1"): Promise<Socket> => {
  const socket = connect({ port, host: "127.0.0.1", localAddress, allowHalfOpen: true });
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return socket;
};
/** Whether what is behind says its first word, or the connection ends. */
const isThrough = (socket: Socket): Promise<boolean> =>
  new Promise((resolve) => {
    socket.once("data", () => resolve(true));
    for (const over of ["end", "close"]) socket.once(over, () => resolve(false));
  });

test("bytes go both ways as they are, and each side hears that the other has no more to say", async () => {
  const door = await behind();
  const client = await dial(await passing(door.port));
  client.end("x".repeat(300_000));
  assert.equal(await text(client), "hello 300000");
  await eventually("all is closed behind", () => door.open.size === 0);
});

test("of one source and of all so many pass at a time, and a place that is left is free", async () => {
  const door = await behind();
  const port = await passing(door.port);
  const [one, two, three, other, more] = (await Promise.all(
    ["127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.3"].map((from) => dial(port, from)),
  )) as [Socket, Socket, Socket, Socket, Socket];
  const through = await Promise.all([one, two, three, other, more].map(isThrough));
  assert.equal(through.slice(0, 3).filter(Boolean).length, 2, "of one source");
  assert.equal(through.filter(Boolean).length, 3, "in all");
  for (const socket of [one, two, three, other, more]) socket.destroy();
  await eventually("all is closed behind", () => door.open.size === 0);
  assert.ok(await isThrough(await dial(port)));
});

test("of one source so many begin, one after another, and who comes from elsewhere passes meanwhile", async () => {
  const door = await behind();
  const begins = createHandshakes(() => 0, { rate: 1, burst: 2 });
  const port = await passing(door.port, undefined, undefined, { begins });
  const one = async (from: string): Promise<boolean> => {
    const socket = await dial(port, from);
    const through = await isThrough(socket);
    socket.destroy();
    await eventually("it is closed behind", () => door.open.size === 0);
    return through;
  };
  const through: boolean[] = [];
  for (const from of ["127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.1"]) through.push(await one(from));
  assert.deepEqual(through, [true, true, false, true, false]);
});

test("what does not answer ends the connection, and a place that is taken is waited for", async () => {
  const gone = await behind();
  gone.server.close();
  await once(gone.server, "close");
  assert.equal(await isThrough(await dial(await passing(gone.port))), false);
  const taken = await behind();
  const door = await behind();
  const why: string[] = [];
  const pass = passOn(
    { at: `127.0.0.1:${taken.port}`, to: `127.0.0.1:${door.port}` },
    (each) => why.push(each),
    limits,
  );
  ends.push(pass.close);
  await eventually("it tries again", () => why.length > 1);
  assert.match(why[0] ?? "", /EADDRINUSE/);
  taken.server.close();
  await eventually("it listens there", () => pass.port() === taken.port);
  assert.ok(await isThrough(await dial(taken.port)));
});

test("a connection that could not be taken is said, and ends neither the passage nor the process", async (context) => {
  const there = await behind();
  const said: string[] = [];
  const { listen } = Server.prototype;
  // To listen twice throws where nobody catches it: here it is counted.
  const listens = context.mock.method(
    Server.prototype,
    "listen",
    function (this: Server, ...at: Parameters<Server["listen"]>) {
      return this.listening ? this : listen.apply(this, at);
    },
  );
  const port = await passing(there.port, "127.0.0.1:0", (why) => said.push(why));
  const passage = listens.mock.calls.at(-1)?.this as Server;
  const before = listens.mock.callCount();
  passage.emit("error", new Error("accept ENOMEM"));
  await new Promise((next) => setTimeout(next, 5 * limits.againMs));
  assert.deepEqual([said, listens.mock.callCount()], [["accept ENOMEM"], before]);
  const client = connect(port, "127.0.0.1");
  client.end("four");
  assert.equal(await text(client), "hello 4");
});

test("a passage with fewer places has no more, whatever others have", async () => {
  const there = await behind();
  const few = passOn({ at: "127.0.0.1:0", to: `127.0.0.1:${there.port}`, places: 1 }, assert.fail, limits);
  ends.push(few.close);
  await eventually("it listens", () => few.port() !== null);
  const first = connect(few.port() ?? 0, "127.0.0.1");
  await eventually("it is through", () => there.open.size === 1);
  const second = connect(few.port() ?? 0, "127.0.0.1");
  second.on("error", () => undefined);
  await eventually("it has no place", () => second.destroyed);
  assert.equal(there.open.size, 1);
  first.destroy();
});
