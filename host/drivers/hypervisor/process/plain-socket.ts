import { closeSync, constants, fstatSync, openSync } from "node:fs";
import { connect, Socket } from "node:net";

/** <fcntl.h>; a descriptor that stands for the file and opens nothing. */
const pathOnly = 0o10000000;

/**
 * Connects to a unix socket in a directory of QEMU's user. In its place may be a link to any other socket of the machine,
 * which would open to us and not to that user: the console of another VM, say. So the file is looked at first, and what
 * was looked at is what is connected to (open(2), O_PATH). Fails as `connect` does, by an event.
 */
export const connectPlain = (path: string): Socket => {
  let descriptor = -1;
  try {
    descriptor = openSync(path, pathOnly | constants.O_NOFOLLOW);
    if (!fstatSync(descriptor).isSocket()) throw new Error(`${path} is no socket`);
  } catch (error) {
    if (descriptor >= 0) closeSync(descriptor);
    return new Socket().destroy(error as Error);
  }
  const socket = connect(`/proc/self/fd/${descriptor}`);
  let open = true;
  const close = (): void => {
    if (open) closeSync(descriptor);
    open = false;
  };
  socket.once("connect", close).once("close", close);
  return socket;
};
