import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Server } from "node:https";
import { type AddressInfo, connect as connectTcp } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { connect } from "node:tls";
import { peerName } from "../../model/cell/identifiers.ts";
import { createTestInstallation } from "../../runtime/installation.testing.ts";
import { createHandshakes } from "./handshakes.ts";
import { overTls } from "./listen.ts";

/** How a connection ended: with an answer, or without one octet of a handshake. */
interface Ended {
  readonly said: string;
  readonly heard: number;
}
interface Door {
  /** From an address, one after another. */
  readonly ask: (from: string, times?: number) => Promise<readonly Ended[]>;
  /** How many handshakes it has begun, which is when it looks for whose name was asked. */
  readonly begun: () => number;
  readonly laterMs: (ms: number) => void;
}
async function withDoor(behind: string | null, work: (door: Door) => Promise<void>): Promise<void> {
  const installation = await createTestInstallation("handshakes");
  const change =
    behind === null
      ? ({ role: "gateway" } as const)
      : ({ role: "personality.caas", personality: { gateway: { address: behind, port: 7127 } } } as const);
  const { configuration } = await installation.configure(peerName(change.role), { change });
  let [begun, now] = [0, 0];
  const contextFor = (): null => {
    begun += 1;
    return null;
  };
  const handshakes = createHandshakes(() => now, { rate: 2, burst: 3 });
  const handler = (_incoming: IncomingMessage, response: ServerResponse): void => void response.end("here");
  const server = overTls(configuration, contextFor, { handshakes })(handler, {}) as Server;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const one = async (localAddress: string): Promise<Ended> => {
    const below = connectTcp({ host: "127.0.0.1", port, localAddress });
    const socket = connect({ socket: below, servername: "door.example.org", rejectUnauthorized: false });
    for (const each of [below, socket]) each.on("error", () => undefined);
    socket.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    const said = await text(socket).catch(() => "");
    return { said, heard: below.bytesRead };
  };
  try {
    await work({
      ask: async (from, times = 1) => {
        const ended: Ended[] = [];
        for (let at = 0; at < times; at += 1) ended.push(await one(from));
        return ended;
      },
      begun: () => begun,
      laterMs: (ms) => {
        now += ms;
      },
    });
  } finally {
    server.close();
    server.closeAllConnections();
    await installation.remove();
  }
}
const served = (ended: readonly Ended[]): number => ended.filter(({ said }) => said.endsWith("here")).length;

test("one source begins so many handshakes; a further one hears nothing, costs none, and keeps nobody else out", () =>
  withDoor(null, async ({ ask, begun, laterMs }) => {
    const all = await ask("127.0.0.2", 10);
    assert.equal(served(all), 3);
    assert.equal(served(all.slice(0, 3)), 3, "the first ones");
    assert.deepEqual(
      all.slice(3).map(({ heard }) => heard),
      Array(7).fill(0),
    );
    assert.equal(begun(), 3);
    const [neighbours] = await Promise.all([ask("127.0.0.3", 2), ask("127.0.0.2", 5)]);
    assert.equal(served(neighbours), 2, "who comes from elsewhere meanwhile");
    assert.equal(begun(), 5);
    laterMs(1000);
    assert.equal(served(await ask("127.0.0.2", 5)), 2, "two more in each second");
    laterMs(60_000);
    assert.equal(served(await ask("127.0.0.2", 5)), 3, "and no more than at first after any while");
  }));

test("who asks from the machine itself, or was let in by the gateway, was measured there", async () => {
  await withDoor(null, async ({ ask }) => assert.equal(served(await ask("127.0.0.1", 6)), 6));
  await withDoor("127.0.0.4", async ({ ask }) => {
    assert.equal(served(await ask("127.0.0.4", 6)), 6, "its gateway");
    assert.equal(served(await ask("127.0.0.2", 6)), 3, "anybody else");
  });
});

test("sources are remembered in so many places, and who is refused again and again does not take more of them", () => {
  const admits = createHandshakes(() => 0, { rate: 1, burst: 1 });
  assert.ok(admits("a"));
  for (let at = 0; at < 20_000; at += 1) assert.equal(admits("a"), false);
  for (let at = 0; at < 9_999; at += 1) assert.ok(admits(`b${at}`));
  assert.equal(admits("a"), false, "it is one of the last ten thousand");
  assert.ok(admits("c"));
  assert.ok(admits("a"), "the one that is longest away is forgotten");
});
