import { createServer, type Server } from "node:net";

/**
 * One `up` or `down` per testbed at a time. The lock is a name in the abstract socket namespace: the kernel gives it to
 * one process and takes it back when that process ends, however it ends.
 */
export const withLock = async <T>(tag: string, work: () => Promise<T>): Promise<T> => {
  const holder: Server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    holder.once("error", (error: NodeJS.ErrnoException) =>
      reject(
        error.code === "EADDRINUSE"
          ? new Error("another `cells up` or `cells down` works on this testbed: wait until it is done")
          : error,
      ),
    );
    holder.listen(`\0${tag}`, resolve);
  });
  holder.unref();
  try {
    return await work();
  } finally {
    await new Promise((resolve) => holder.close(resolve));
  }
};
