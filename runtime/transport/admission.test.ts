import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectPlain, type Socket } from "node:net";
import { after, test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import { limits as frameLimits } from "../../core/distribution/limits.ts";
import type { Frame } from "../../core/distribution/node/frames.ts";
import type { NodeInput } from "../../core/distribution/node/types.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../installation.testing.ts";
import { type TransportLimits, transportLimits } from "./connections/connection.ts";
import { aliveFrame, encodeFrame } from "./frame-codec.ts";
import { readCredentials } from "./mutual-tls.ts";
import { createTransport, type Transport } from "./transport.ts";

/** A listener with small limits, and raw peers. */
interface Scene {
  readonly installation: TestInstallation;
  readonly transport: Transport;
  readonly inputs: NodeInput[];
  readonly logs: { readonly from: unknown; readonly reason: unknown; readonly count: unknown }[];
  plain(): Promise<Socket>;
  peer(name: string): Promise<TLSSocket>;
}
const scenes: Scene[] = [];
const sockets: Socket[] = [];
after(async () => {
  for (const socket of sockets) socket.destroy();
  for (const { transport, installation } of scenes) {
    await transport.stop();
    await installation.remove();
  }
});
const createScene = async (limits: Partial<TransportLimits>): Promise<Scene> => {
  const installation = await createTestInstallation("admission");
  const { configuration } = await installation.configure(peerName("placer"));
  const inputs: NodeInput[] = [];
  const logs: Scene["logs"] = [];
  const transport = await createTransport(
    configuration,
    {
      input: (input) => inputs.push(input),
      log: (event, { from, reason, count }) => event === "transport/refused" && logs.push({ from, reason, count }),
    },
    { ...transportLimits, ...limits },
  );
  /** Issued once for each: whoever reads while another writes may have the key of one certificate and another one. */
  const known = new Map<string, Promise<ReturnType<typeof readCredentials>>>();
  const kept = <S extends Socket>(socket: S): S => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.resume();
    return socket;
  };
  const scene: Scene = {
    installation,
    transport,
    inputs,
    logs,
    plain: async () => {
      const socket = kept(connectPlain(transport.port, "127.0.0.1"));
      await once(socket, "connect");
      return socket;
    },
    peer: async (name) => {
      const issued =
        known.get(name) ?? installation.configure(peerName(name)).then(({ configuration: of }) => readCredentials(of));
      known.set(name, issued);
      const options = {
        ...(await issued),
        port: transport.port,
        host: "127.0.0.1",
        checkServerIdentity: () => undefined,
      };
      const socket = kept(connect(options));
      await once(socket, "secureConnect");
      return socket;
    },
  };
  scenes.push(scene);
  return scene;
};
/** These peers say nothing: on a busy machine they would be let go for that before a test is through. */
const silent = { silenceMs: 3_600_000 };
const connected = ({ inputs }: Scene, peer: string): number =>
  inputs.filter((input) => input.kind === "connected" && input.peer === peer).length;
const refused = ({ transport }: Scene): Record<string, number> =>
  Object.fromEntries(
    transport.measure().flatMap(({ samples }) => samples.map(({ labels, value }) => [String(labels.reason), value])),
  );

test("who never finishes its handshake is let go, and bounds are kept meanwhile", async () => {
  const scene = await createScene({ handshakeMs: 2000, handshakesOfAddress: 3 });
  const waiting = [await scene.plain(), await scene.plain(), await scene.plain()];
  const fourth = await scene.plain();
  if (!fourth.closed) await once(fourth, "close");
  assert.equal(refused(scene)["too many handshakes"], 1);
  await eventually("all three are let go", () => waiting.every(({ closed }) => closed));
  assert.deepEqual(refused(scene), { "too many handshakes": 1, "handshake too slow": 3 });
  assert.equal(scene.logs.filter(({ reason }) => reason === "handshake too slow").length, 1, "one line for three");
  // Their places are free again.
  await scene.peer("controller.good");
  await eventually("the next one is taken", () => connected(scene, "controller.good") === 1);
});

test("who says only that it is alive, and who begins a frame and does not end it, is let go", async () => {
  const scene = await createScene({ aliveEveryMs: 20, silenceMs: 1500, frameMs: 3000 });
  const mute = await scene.peer("controller.mute");
  const slow = await scene.peer("controller.slow");
  const good = await scene.peer("controller.good");
  const head = Buffer.alloc(4);
  head.writeUInt32BE(frameLimits.frameBytes);
  slow.write(head);
  good.write(encodeFrame({ frame: "goodbye" } as Frame) ?? "");
  const pulse = setInterval(() => {
    mute.write(aliveFrame);
    slow.write(" ");
    good.write(aliveFrame);
  }, 20);
  await eventually("both are let go", () => mute.closed && slow.closed);
  assert.deepEqual(refused(scene), { "no first frame": 1, "frame too slow": 1 });
  assert.equal(good.closed, false, "a greeted one may be silent otherwise");
  clearInterval(pulse);
});

test("a peer's connections are bounded, the newest counts, and all together are bounded too", async () => {
  const scene = await createScene({ ...silent, connectionsOfPeer: 2, connections: 3 });
  const first = await scene.peer("controller.many");
  await eventually("the first is taken", () => connected(scene, "controller.many") === 1);
  await scene.peer("controller.many");
  const third = await scene.peer("controller.many");
  await eventually("the oldest gave way", () => first.closed);
  assert.equal(third.closed, false);
  await scene.peer("controller.good");
  await eventually("another peer is taken", () => connected(scene, "controller.good") === 1);
  const late = await scene.peer("controller.late");
  if (!late.closed) await once(late, "close");
  assert.equal(connected(scene, "controller.late"), 0);
  assert.deepEqual(
    scene.logs.map(({ from, reason }) => `${from}: ${reason}`),
    ["controller.many: too many connections", "controller.late: too many connections"],
  );
  third.destroy();
  await eventually("a place is free again", async () => {
    await scene.peer("controller.late");
    return connected(scene, "controller.late") > 0;
  });
});

test("thousands of connections of one peer cost a bounded number, and harm no other", async () => {
  const scene = await createScene({ ...silent, connectionsOfPeer: 4 });
  const good = await scene.peer("controller.good");
  await eventually("the good one stands", () => connected(scene, "controller.good") === 1);
  // A thousand would say the same and take a minute of CPU time here.
  for (let round = 0; round < 10; round += 1)
    await Promise.all(Array.from({ length: 10 }, () => scene.peer("controller.bad")));
  await eventually("each was taken", () => connected(scene, "controller.bad") === 100);
  const ended = (): number => scene.inputs.filter(({ kind }) => kind === "disconnected").length;
  await eventually("and gave way again", () => ended() === 96);
  assert.equal(good.closed, false);
  assert.equal(refused(scene)["too many connections"], 96);
  assert.deepEqual(
    scene.logs.map(({ count }) => count),
    [1],
    "one line",
  );
});
