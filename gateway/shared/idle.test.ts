import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Server } from "node:https";
import { type AddressInfo, connect as connectTcp } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import { peerName } from "../../model/cell/identifiers.ts";
import { createTestInstallation, eventually } from "../../runtime/installation.testing.ts";
import { overTls } from "./listen.ts";

type Open = (from?: string) => Promise<TLSSocket>;
/** A real listener over TLS that keeps four; `/later` is answered when `answer` is called. */
async function withListener(
  work: (open: Open, answer: () => void, server: Server) => Promise<void>,
  upgrades = true,
): Promise<void> {
  const installation = await createTestInstallation("idle");
  const { configuration } = await installation.configure(peerName("gateway"), { change: { role: "gateway" } });
  const waiting: ServerResponse[] = [];
  const handler = (incoming: IncomingMessage, response: ServerResponse): void => {
    if (incoming.url === "/later") waiting.push(response);
    else response.end("now");
  };
  const server = overTls(configuration, undefined, { idle: 4 })(handler, {}) as Server;
  if (upgrades)
    server.on("upgrade", (_incoming, socket) => {
      socket.on("error", () => undefined).resume();
      socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
    });
  server.listen(0, "0.0.0.0");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const opened: TLSSocket[] = [];
  const open: Open = async (localAddress = "127.0.0.1") => {
    const below = connectTcp({ host: "127.0.0.1", port, localAddress }).on("error", () => undefined);
    const socket = connect({ socket: below, rejectUnauthorized: false });
    opened.push(socket.on("error", () => undefined));
    await once(socket, "secureConnect");
    return socket;
  };
  try {
    const answer = (): void => {
      for (const each of waiting.splice(0)) each.end("later");
    };
    await work(open, answer, server);
  } finally {
    for (const socket of opened) socket.destroy();
    server.close();
    server.closeAllConnections();
    await installation.remove();
  }
}
const asked = (path: string, more = ""): string => `GET ${path} HTTP/1.1\r\nhost: x\r\n${more}\r\n`;
const heardOf = (socket: TLSSocket): { text: string } => {
  const heard = { text: "" };
  socket.setEncoding("utf8").on("data", (part: string) => {
    heard.text += part;
  });
  return heard;
};
const four = async (open: Open): Promise<readonly TLSSocket[]> => {
  const all: TLSSocket[] = [];
  for (let at = 0; at < 4; at += 1) all.push((await open()).resume());
  return all;
};
const closed = (sockets: readonly TLSSocket[]): readonly boolean[] => sockets.map((socket) => socket.closed);

test("where one more idle connection comes the one that is idle longest is closed", () =>
  withListener(async (open) => {
    const [first, ...others] = await four(open);
    assert.ok(first !== undefined);
    const heard = heardOf(first);
    first.write(asked("/now"));
    await eventually("it is answered", () => heard.text.endsWith("now"));
    const fifth = (await open()).resume();
    // The first one asked, and is idle for the shortest time of them.
    await eventually("the second one goes", () => others[0]?.closed === true);
    await sleep(50);
    assert.deepEqual(closed([first, ...others, fifth]), [false, true, false, false, false]);
  }));

test("whose request is under way, also behind another one, or who left HTTP, is not idle", () =>
  withListener(async (open, answer) => {
    const [later, behind, left] = [await open(), await open(), await open()];
    const [ofLater, ofBehind, ofLeft] = [heardOf(later), heardOf(behind), heardOf(left)];
    later.write(asked("/later"));
    behind.write(asked("/now") + asked("/later"));
    left.write(asked("/", "connection: upgrade\r\nupgrade: x\r\n"));
    await eventually("they are heard", () => ofBehind.text.endsWith("now") && ofLeft.text.includes("101"));
    const [first] = await four(open);
    await open();
    await eventually("an idle one goes", () => first?.closed === true);
    assert.deepEqual(closed([later, behind, left]), [false, false, false]);
    answer();
    await eventually("both are answered", () => [ofLater, ofBehind].every(({ text }) => text.endsWith("later")));
  }));

test("the idle connection that goes is of the source that has most", () =>
  withListener(async (open) => {
    const alone = (await open("127.0.0.2")).resume();
    const [first, ...others] = await four(open);
    await eventually("the first of the others goes", () => first?.closed === true);
    await sleep(50);
    assert.deepEqual(closed([alone, ...others]), [false, false, false, false]);
  }));

test("a listener that nobody asks to leave HTTP takes such a request for any other", () =>
  withListener(async (open, _answer, server) => {
    assert.equal(server.listenerCount("upgrade"), 0);
    const socket = await open();
    const heard = heardOf(socket);
    socket.write(asked("/now", "connection: upgrade\r\nupgrade: x\r\n"));
    await eventually("it is answered", () => heard.text.endsWith("now"));
  }, false));
