import { type FSWatcher, watch } from "node:fs";
import { constants, open } from "node:fs/promises";

/**
 * Bounds what QEMU writes into its log. QEMU outlives us, so the log is a file that it has open and appends to, with nobody
 * in between who could turn it over; and a guest can have QEMU complain without end. The kernel says when the file grows;
 * past the limit its end is kept and the rest cut off, in place, since whoever appends goes on at the new end.
 * Rejected: a limit on the process's file sizes (a signal that ends QEMU), and a process in between for each machine.
 * While no Host Manager runs, the log grows; the next one cuts it when it takes the machine over.
 */
export const qemuLogLimitBytes = 1024 * 1024;
/** So much of its end stays; the difference is what may come before it is cut again. */
const keptShare = 0.5;

export interface LogBound {
  /** No more cuts begin. */
  close(): void;
}

/** Bounds that file, as long as it is there and `close` was not called. Never throws: no machine ends for its log. */
export function boundLog(file: string, limitBytes = qemuLogLimitBytes): LogBound {
  let closed = false;
  let cutting = false;
  let grew = false;
  const look = async (): Promise<void> => {
    grew = true;
    if (cutting) return;
    cutting = true;
    // It may grow while it is cut, and say so only once.
    while (grew && !closed) {
      grew = false;
      await cut(file, limitBytes, () => closed).catch(() => undefined);
    }
    cutting = false;
  };
  let watcher: FSWatcher | null = null;
  try {
    watcher = watch(file, { persistent: false }, () => void look());
    watcher.on("error", () => undefined);
  } catch {
    // Not there any more, or no more watches: it is cut this once.
  }
  void look();
  return {
    close: () => {
      closed = true;
      watcher?.close();
    },
  };
}

/** Leaves a log of at most the limit as it is. What is appended during the cut stays, or is lost with what is cut off. */
async function cut(file: string, limitBytes: number, isOver: () => boolean): Promise<void> {
  // Ours, in a directory of ours: a link in its place is nobody's log.
  const handle = await open(file, constants.O_RDWR | constants.O_APPEND | constants.O_NOFOLLOW);
  try {
    const { size } = await handle.stat();
    if (size <= limitBytes || isOver()) return;
    const kept = Buffer.alloc(Math.trunc(limitBytes * keptShare));
    const { bytesRead } = await handle.read(kept, 0, kept.length, size - kept.length);
    const end = kept.subarray(0, bytesRead);
    // Whole lines, where there are any.
    const line = end.indexOf(0x0a);
    await handle.truncate(0);
    await handle.appendFile(line === -1 ? end : end.subarray(line + 1));
  } finally {
    await handle.close();
  }
}
