import { appendFile, rename } from "node:fs/promises";
import { connect } from "node:net";

/** The log is cut in two files of at most this many bytes, so that a guest that floods its console cannot fill the disk. */
const fileLimit = 256 * 1024;

/** Keeps the newest console output of a machine in `<file>` and `<file>.1`. Resolves when connected; the guest may wait for that. */
export const recordConsole = (socketPath: string, file: string): Promise<{ close(): void }> =>
  new Promise((resolve, reject) => {
    const socket = connect(socketPath);
    let written = 0;
    let queue: Promise<void> = Promise.resolve();
    const append = async (chunk: Buffer): Promise<void> => {
      if (written + chunk.length > fileLimit) {
        await rename(file, `${file}.1`).catch(() => undefined);
        written = 0;
      }
      written += chunk.length;
      await appendFile(file, chunk, { mode: 0o600 });
    };
    socket.on("data", (chunk) => {
      socket.pause();
      // A full disk loses console lines and nothing else.
      queue = queue
        .then(() => append(chunk))
        .catch(() => undefined)
        .then(() => {
          socket.resume();
        });
    });
    socket.once("connect", () => resolve({ close: () => socket.destroy() }));
    socket.on("error", reject);
  });
