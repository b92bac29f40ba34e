import { closeSync } from "node:fs";
import koffi from "koffi";

// <sys/socket.h>, <netinet/in.h>, <netinet/tcp.h>, <errno.h>
const internet = 2;
const stream = 1;
const closeOnExec = 0x80000;
const socketLevel = 1;
const reuseAddress = 2;
const tcpLevel = 6;
const noDelay = 1;
const keepAlive = 9;
/** Seconds of silence before the first question, between two of them, and questions without an answer: gone after a minute. */
const [keepIdle, keepInterval, keepCount] = [
  [4, 30],
  [5, 10],
  [6, 3],
] as const;
const addressInUse = 98;
const backlog = 64;

const libc = koffi.load("libc.so.6");
const socket = libc.func("int socket(int domain, int type, int protocol)");
const setsockopt = libc.func("int setsockopt(int socket, int level, int name, const int *value, unsigned int length)");
const bind = libc.func("int bind(int socket, const void *address, unsigned int length)");
const listen = libc.func("int listen(int socket, int backlog)");

/**
 * A listening TCP socket whose connections send at once, as a descriptor to hand on and to close here. QEMU's NBD server
 * writes an answer in pieces and leaves Nagle's algorithm on, so that each answer waits for a delayed acknowledgement:
 * 44 ms for every read, 0.7 s to open a disk of two layers (measured). Connections inherit TCP_NODELAY, tcp(7), and
 * the questions that find out that a peer is gone without a word, which would hold its place for ever.
 * Returns null when the port is somebody else's.
 */
export const listenAt = (address: string, port: number): number | null => {
  const descriptor: number = socket(internet, stream | closeOnExec, 0);
  const fail = (what: string): Error => {
    const error = koffi.errno();
    closeSync(descriptor);
    return new Error(`${address}:${port} cannot be listened at: ${what} failed (error ${error})`);
  };
  if (descriptor < 0) throw new Error(`no socket can be made for ${address}:${port} (error ${koffi.errno()})`);
  if (setsockopt(descriptor, socketLevel, reuseAddress, [1], 4) !== 0) throw fail("SO_REUSEADDR");
  if (setsockopt(descriptor, tcpLevel, noDelay, [1], 4) !== 0) throw fail("TCP_NODELAY");
  if (setsockopt(descriptor, socketLevel, keepAlive, [1], 4) !== 0) throw fail("SO_KEEPALIVE");
  for (const [name, value] of [keepIdle, keepInterval, keepCount])
    if (setsockopt(descriptor, tcpLevel, name, [value], 4) !== 0) throw fail("TCP_KEEPALIVE");
  // struct sockaddr_in: family in the machine's byte order, port and address in the network's.
  const place = Buffer.alloc(16);
  place.writeUInt16LE(internet, 0);
  place.writeUInt16BE(port, 2);
  place.set(address.split(".").map(Number), 4);
  if (bind(descriptor, place, place.length) !== 0) {
    if (koffi.errno() !== addressInUse) throw fail("bind");
    closeSync(descriptor);
    return null;
  }
  if (listen(descriptor, backlog) !== 0) {
    if (koffi.errno() !== addressInUse) throw fail("listen");
    closeSync(descriptor);
    return null;
  }
  return descriptor;
};
