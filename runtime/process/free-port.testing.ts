import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";

/** Ports given before: the kernel may give one again as soon as it is closed. */
const given = new Set<number>();

/** A TCP port of 127.0.0.1 at which nobody listens, another one each time. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  assert.ok(typeof address === "object" && address !== null);
  if (given.has(address.port)) return freePort();
  given.add(address.port);
  return address.port;
};
