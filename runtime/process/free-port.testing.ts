import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ListenOptions } from "node:net";

/** Below those that Linux gives to connections on their way out (`ip_local_port_range`), so that none of them takes a port in the meantime. */
const [firstPort, portCount] = [10_000, 22_000];
let next = firstPort + ((process.pid * 97) % portCount);

/**
 * A TCP port of 127.0.0.1 at which nobody listens, another one each time. It stays this process's own until it ends: whoever else asks for a port in
 * this network namespace, in a process of its own, gets another. A socket of the abstract name space holds it, which ends with its process and leaves
 * nothing behind.
 */
export const freePort = async (): Promise<number> => {
  for (let tries = 0; tries < portCount; tries += 1) {
    const port = next;
    next = next + 1 < firstPort + portCount ? next + 1 : firstPort;
    if (!(await held({ path: `\0cells-test-port-${port}` }))) continue;
    const listener = await listening({ host: "127.0.0.1", port });
    if (listener === null) continue;
    listener.close();
    await once(listener, "close");
    return port;
  }
  assert.fail(`none of the ports from ${firstPort} to ${firstPort + portCount - 1} is free`);
};

/** Whether the name is this process's now. */
async function held(name: ListenOptions): Promise<boolean> {
  const holder = await listening(name);
  holder?.unref();
  return holder !== null;
}

/** Null: somebody else listens there. */
async function listening(where: ListenOptions): Promise<ReturnType<typeof createServer> | null> {
  const server = createServer().listen(where);
  try {
    await once(server, "listening");
    return server;
  } catch {
    return null;
  }
}
