import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { connect as connectPlain } from "node:net";
import { test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import fc from "fast-check";
import { limits } from "../../core/distribution/limits.ts";
import type { Frame } from "../../core/distribution/node/frames.ts";
import type { NodeInput } from "../../core/distribution/node/types.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { createTestInstallation, eventually } from "../installation.testing.ts";
import { transportLimits } from "./connections/connection.ts";
import { backoffMs } from "./connections/dial.ts";
import { deafListener } from "./deaf-listener.testing.ts";
import { createFrameReader, encodeFrame } from "./frame-codec.ts";
import { readCredentials } from "./mutual-tls.ts";
import { parsePeerAddress } from "./peers.ts";
import { createTransport, type Transport } from "./transport.ts";

const encoded = (frame: Json): Buffer => encodeFrame(frame as unknown as Frame) ?? assert.fail("too long");

test("frames come out as they went in, however the stream was cut", () => {
  fc.assert(
    fc.property(fc.array(fc.record({ value: fc.jsonValue() })), fc.array(fc.nat(40)), (values, cuts) => {
      const stream = Buffer.concat([...values.map((value) => encoded(value as Json)), Buffer.alloc(4)]);
      const reader = createFrameReader();
      const found: Json[] = [];
      let at = 0;
      for (const cut of [...cuts, stream.length]) {
        found.push(...reader.read(stream.subarray(at, at + cut)));
        at += cut;
      }
      assert.equal(JSON.stringify(found), JSON.stringify(values));
    }),
  );
});

test("a frame that is too long, or no JSON, is refused", () => {
  const long = Buffer.alloc(4);
  long.writeUInt32BE(limits.frameBytes + 1);
  assert.throws(() => createFrameReader().read(long), /longer than/);
  assert.throws(() => createFrameReader().read(Buffer.from([0, 0, 0, 1, 0x7b])), /JSON/);
  assert.equal(encodeFrame("x".repeat(limits.frameBytes) as unknown as Frame), null);
});

test("a frame in single bytes costs what has come of it, and one that is only announced nothing", () => {
  const reader = createFrameReader();
  const head = Buffer.alloc(4);
  head.writeUInt32BE(limits.frameBytes);
  const before = process.memoryUsage().arrayBuffers;
  reader.read(head);
  assert.ok(process.memoryUsage().arrayBuffers - before < limits.frameBytes / 2);
  for (let at = 0; at < 100_000; at += 1) reader.read(Buffer.from([0x20]));
  assert.equal(reader.waiting, 100_004);
  assert.equal(reader.cut, 0);
  assert.deepEqual(reader.read(Buffer.alloc(limits.frameBytes - 100_000 - 1, 0x20)), []);
  assert.deepEqual(reader.read(Buffer.from("7")), [7]);
  assert.deepEqual([reader.waiting, reader.cut], [0, 1]);
});

test("a frame that goes to many is turned into bytes once", () => {
  const frame: Frame = { frame: "ack", seq: 1 };
  assert.equal(encodeFrame(frame), encodeFrame(frame));
  assert.deepEqual(encodeFrame({ ...frame }), encodeFrame(frame));
});

test("the back-off doubles from 50 ms to 2 s, half of it by chance", () => {
  assert.deepEqual([backoffMs(0, 0), backoffMs(0, 1)], [25, 50]);
  assert.deepEqual([backoffMs(3, 0), backoffMs(3, 1)], [200, 400]);
  assert.deepEqual([backoffMs(50, 0), backoffMs(50, 1)], [1000, 2000]);
});

test("an entry of the peers file may name its ports", () => {
  const read = (entry: string): Json => {
    const result = parsePeerAddress(entry);
    return result.ok ? Object.values(result.value) : result.error;
  };
  assert.deepEqual(read("10.0.1.1"), ["10.0.1.1", 7100, 7101]);
  assert.deepEqual(read("127.0.0.1:9000"), ["127.0.0.1", 9000, 9001]);
  assert.deepEqual(read("127.0.0.1:9000:9100"), ["127.0.0.1", 9000, 9100]);
  for (const bad of ["", ":1", "a:0", "a:x", "a:1:2:3", "a:70000"]) assert.match(String(read(bad)), /no address/);
});

interface Listening {
  readonly transport: Transport;
  readonly inputs: NodeInput[];
  readonly logs: string[];
  connect(): Promise<TLSSocket>;
  end(): Promise<void>;
}
const listen = async (): Promise<Listening> => {
  const installation = await createTestInstallation("transport");
  const { configuration } = await installation.configure(peerName("placer"));
  const client = await installation.configure(peerName("controller.shop"));
  const inputs: NodeInput[] = [];
  const logs: string[] = [];
  const transport = await createTransport(configuration, {
    input: (input) => inputs.push(input),
    log: (event) => logs.push(event),
  });
  return {
    transport,
    inputs,
    logs,
    connect: async () => {
      const socket = connect({
        ...readCredentials(client.configuration),
        port: transport.port,
        host: "127.0.0.1",
        checkServerIdentity: () => undefined,
      });
      socket.on("error", () => undefined);
      await once(socket, "secureConnect");
      await eventually("the server has taken the connection", () => inputs.some(({ kind }) => kind === "connected"));
      return socket;
    },
    end: async () => {
      await transport.stop();
      await installation.remove();
    },
  };
};

test("a connection takes more only when its receiver has read", async () => {
  const { transport, inputs, connect: dial, end } = await listen();
  const socket = await dial();
  const connected = inputs.find((input) => input.kind === "connected");
  assert.deepEqual(connected, { kind: "connected", connection: 1, peer: "controller.shop", role: "server" });
  socket.pause();
  const value = "x".repeat(limits.valueLength);
  // More than any buffer between the two.
  const frames: Frame[] = Array.from({ length: 20 }, (_, seq) => ({ frame: "actual", key: "k", seq, value }));
  transport.send(1, frames);
  const told = (): number => inputs.filter(({ kind }) => kind === "sendable").length;
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(told(), 0);
  socket.resume();
  await eventually("it takes more", () => told() === 1);
  transport.send(1, [{ frame: "ack", seq: 1 }]);
  await eventually("a short one leaves at once", () => told() === 2);
  socket.destroy();
  await eventually("the end is noticed", () => inputs.some(({ kind }) => kind === "disconnected"));
  transport.send(1, frames);
  assert.equal(told(), 2);
  await end();
});

test("a stream that makes no sense ends its connection and is logged", async () => {
  const { inputs, logs, connect: dial, end } = await listen();
  const socket = await dial();
  socket.write(encoded({ frame: "goodbye" }));
  socket.write(Buffer.from("GET / HTTP/1.1\r\n\r\n"));
  await eventually("the connection has ended", () => inputs.some(({ kind }) => kind === "disconnected"));
  assert.deepEqual(
    inputs.map(({ kind }) => kind),
    ["connected", "frame", "disconnected"],
  );
  assert.deepEqual(logs, ["transport/refused"]);
  await end();
});

test("what is no TLS does not stop the listener", async () => {
  const { transport, logs, connect: dial, end } = await listen();
  const plain = connectPlain(transport.port, "127.0.0.1");
  plain.on("error", () => undefined);
  plain.write("hello\r\n\r\n");
  await eventually("it was refused", () => logs.includes("transport/refused"));
  plain.destroy();
  (await dial()).destroy();
  await end();
});

test("a machine that does not answer is tried again after a while, and one that refuses at once", async () => {
  const installation = await createTestInstallation("transport");
  const deaf = await deafListener();
  const { configuration } = await installation.configure(peerName("placer"));
  const peers = { "host.deaf": `127.0.0.1:${deaf.port}`, "host.closed": "127.0.0.1:1" };
  await writeFile(configuration.peersFile, JSON.stringify({ peers }));
  const why = new Map<string, string>();
  const transport = await createTransport(
    configuration,
    { input: () => undefined, log: (_event, fields) => void why.set(String(fields.peer), String(fields.why)) },
    { ...transportLimits, reachMs: 500 },
  );
  for (const peer of Object.keys(peers)) transport.connect(peerName(peer));
  await eventually("both are given up", () => why.size === 2);
  assert.equal(why.get("host.deaf"), `127.0.0.1:${deaf.port} did not answer within 500 ms`);
  assert.match(why.get("host.closed") ?? "", /ECONNREFUSED/);
  await transport.stop();
  deaf.end();
  await installation.remove();
});
