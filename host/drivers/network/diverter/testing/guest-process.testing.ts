import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { closeSync, openSync, read, writeSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { fromNumber, toNumber } from "../program/layout.ts";
import { indexOf, ioctl, openPacketSocket, sendFrame as sendOut } from "../program/libbpf.ts";
import { ethernet, ip, tcp, tcpFlags } from "./frames.testing.ts";
import { serve } from "./serve.testing.ts";

/** What runs in a guest of the tests: TCP and UDP ends, and the raw end of a tap. */
let server: Server | null = null;
const served = new Set<Socket>();
let connection: Socket | null = null;
let udp: UdpSocket | null = null;
const datagrams: string[] = [];
let tap: number | null = null;
const frames: string[] = [];
let arrived: (() => void) | null = null;

const listen = (port: number) =>
  new Promise<void>((resolve) => {
    server = createServer((socket) => {
      served.add(socket);
      socket.on("error", () => {}).pipe(socket);
    }).listen(port, "0.0.0.0", resolve);
  });
const closeServer = () =>
  new Promise<void>((resolve) => {
    for (const socket of served) socket.resetAndDestroy();
    served.clear();
    if (server === null) resolve();
    else server.close(() => resolve());
  });

/** "open", or the error's code; "timeout" if nothing answers. */
const open = (host: string, port: number, localPort: number | undefined) =>
  new Promise<string>((resolve) => {
    connection?.destroy();
    const socket = connect({ host, port, ...(localPort === undefined ? {} : { localPort }) });
    const timer = setTimeout(() => finish("timeout"), 700);
    const finish = (outcome: string): void => {
      clearTimeout(timer);
      if (outcome !== "open") socket.destroy();
      resolve(outcome);
    };
    connection = socket;
    socket.on("connect", () => finish("open"));
    socket.on("error", (error: NodeJS.ErrnoException) => finish(error.code ?? "error"));
  });
/** Sends so many bytes over the open connection; true when as many came back in time. */
const echo = (bytes: number, timeoutMs: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connection!;
    let received = 0;
    const timer = setTimeout(() => finish(false), timeoutMs);
    const onData = (chunk: Buffer): void => {
      received += chunk.length;
      if (received >= bytes) finish(true);
    };
    const finish = (outcome: boolean): void => {
      clearTimeout(timer);
      socket.off("data", onData);
      resolve(outcome);
    };
    socket.on("data", onData);
    socket.write(Buffer.alloc(bytes, "x"));
  });

const bindUdp = (port: number, echoes: boolean) =>
  new Promise<void>((resolve) => {
    udp?.close();
    datagrams.length = 0;
    const socket = createSocket({ type: "udp4", recvBufferSize: 1 << 20 });
    socket.on("error", () => {});
    socket.on("message", (message, from) => {
      datagrams.push(`${from.address}:${from.port} ${message.length}`);
      if (echoes) socket.send(message, from.port, from.address);
    });
    udp = socket;
    socket.bind(port, resolve);
  });
const sendUdp = (host: string, port: number, bytes: number) =>
  new Promise<void>((resolve) => udp!.send(Buffer.alloc(bytes, "u"), port, host, () => resolve()));

/**
 * A datagram to each of the addresses, over and over; `endStream` says how many went to each. `fresh`: each time from a port
 * of its own, so that each opens a flow; answers are collected with those of the bound socket.
 */
let stream: { readonly timer: NodeJS.Timeout; readonly sockets: UdpSocket[]; sent: number } | null = null;
function startStream(hosts: readonly string[], port: number, everyMs: number, fresh: boolean): void {
  const timer = setInterval(() => {
    if (stream === null) return;
    const socket = fresh ? createSocket("udp4") : udp!;
    if (fresh) {
      stream.sockets.push(socket);
      socket.on("message", (message, from) => datagrams.push(`${from.address}:${from.port} ${message.length}`));
      if (stream.sockets.length > 400) stream.sockets.shift()?.close();
    }
    for (const host of hosts) socket.send(Buffer.alloc(32, "s"), port, host);
    stream.sent++;
  }, everyMs);
  stream = { timer, sockets: [], sent: 0 };
}
async function endStream(): Promise<number> {
  const { timer, sent, sockets } = stream!;
  clearInterval(timer);
  await new Promise((resolve) => setTimeout(resolve, 150));
  for (const socket of sockets) socket.close();
  stream = null;
  return sent;
}

/** Opens a tap as QEMU does; from now on its frames are collected, without the 10 bytes of the virtio header. */
function openTap(name: string): void {
  const fd = openSync("/dev/net/tun", "r+");
  const request = Buffer.alloc(40);
  request.write(name);
  request.writeUInt16LE(0x0002 | 0x1000 | 0x4000, 16);
  ioctl(fd, 0x400454ca, request, "opening the tap");
  tap = fd;
  const buffer = Buffer.alloc(70_000);
  const next = (): void =>
    read(fd, buffer, 0, buffer.length, null, (error, length) => {
      if (error !== null) return;
      frames.push(buffer.subarray(10, length).toString("hex"));
      arrived?.();
      next();
    });
  next();
}

/** The next frame, waited for so long; null when none came. */
const nextFrame = async (timeoutMs: number): Promise<string | null> => {
  if (frames.length === 0)
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      arrived = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  arrived = null;
  return frames.shift() ?? null;
};
/** `header`: the virtio header (10 bytes) by which a guest leaves checksums and segmentation to others. */
const sendFrame = (frame: string, header = "00".repeat(10)): number =>
  writeSync(tap!, Buffer.from(header + frame, "hex"));

/** Frames made by hand out of an ordinary device. */
function inject(device: string, hand: readonly string[]): void {
  const socket = openPacketSocket();
  try {
    for (const frame of hand)
      if (!sendOut(socket, indexOf(device), Buffer.from(frame, "hex"))) throw new Error(`${device} takes no frame`);
  } finally {
    socket.close();
  }
}

/** One frame after the other out of a device, the n-th made by `frame`. Returns how many it took. */
function pour(device: string, count: number, frame: (at: number) => string): number {
  const socket = openPacketSocket();
  const index = indexOf(device);
  try {
    let taken = 0;
    for (let at = 0; at < count; at += 1) if (sendOut(socket, index, Buffer.from(frame(at), "hex"))) taken += 1;
    return taken;
  } finally {
    socket.close();
  }
}
/** SYNs to port 80 of `to` by as many senders as `addresses`, from `first` on, each from ever other ports. */
function flood(device: string, macs: readonly [to: string, from: string], to: string, range: SynRange): number {
  const { first, addresses, from, count } = range;
  return pour(device, count, (at) => {
    const sender = from + at;
    const segment = tcp(1024 + (Math.floor(sender / addresses) % 60_000), 80, tcpFlags.syn);
    return ethernet(...macs, 0x0800, ip(fromNumber(toNumber(first) + (sender % addresses)), to, 6, segment));
  });
}
export interface SynRange {
  readonly first: string;
  readonly addresses: number;
  /** Number of the first SYN. */
  readonly from: number;
  readonly count: number;
}

serve(async (method, args) => {
  switch (method) {
    case "listen":
      return listen(Number(args[0]));
    case "closeServer":
      return closeServer();
    case "open":
      return open(String(args[0]), Number(args[1]), args[2] as number | undefined);
    case "echo":
      return echo(Number(args[0]), Number(args[1]));
    case "bindUdp":
      return bindUdp(Number(args[0]), Boolean(args[1]));
    case "sendUdp":
      return sendUdp(String(args[0]), Number(args[1]), Number(args[2]));
    case "datagrams":
      return datagrams.splice(0);
    case "stream":
      return startStream(args[0] as readonly string[], Number(args[1]), Number(args[2]), Boolean(args[3]));
    case "endStream":
      return endStream();
    case "openTap":
      return openTap(String(args[0]));
    case "sendFrame":
      return sendFrame(String(args[0]), args[1] as string | undefined);
    case "sendFrames":
      for (const frame of args[0] as readonly string[]) sendFrame(frame);
      return null;
    case "inject":
      return inject(String(args[0]), args[1] as readonly string[]);
    case "flood":
      return flood(String(args[0]), args[1] as [string, string], String(args[2]), args[3] as SynRange);
    case "nextFrame":
      return nextFrame(Number(args[0]));
    case "frames":
      return frames.splice(0);
    case "closeTap":
      return closeSync(tap!);
    default:
      throw new Error(`no method ${method}`);
  }
});
