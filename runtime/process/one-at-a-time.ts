import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Works while nobody else does who names the same lock, in this process or another one; who comes meanwhile waits. The kernel
 * keeps the lock for a process of flock(1), which ends with this one, however that ends.
 *
 * @param lock a file, made where it is not there yet
 * @param onWait is told once, when somebody else is at work
 */
export const oneAtATime = async <T>(lock: string, onWait: () => void, work: () => Promise<T>): Promise<T> => {
  await mkdir(dirname(lock), { recursive: true });
  const held = await hold(lock, true).catch(() => null);
  if (held === null) onWait();
  const release = held ?? (await hold(lock, false));
  try {
    return await work();
  } finally {
    await release();
  }
};

/** Returns what releases it. Fails where the lock is held by somebody else and `atOnce` is asked for, or there is no flock(1). */
const hold = async (lock: string, atOnce: boolean): Promise<() => Promise<void>> => {
  const holder = spawn("flock", [...(atOnce ? ["--nonblock"] : []), lock, "sh", "-c", "echo held; exec cat"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(holder, "close");
  await Promise.race([
    once(holder.stdout, "data"),
    ended.then(([code]) => {
      throw new Error(`flock ended with ${code} before it had the lock "${lock}"`);
    }),
  ]);
  return async () => {
    holder.stdin.end();
    await ended;
  };
};

export type InTurn = <T>(work: () => Promise<T>) => Promise<T>;
/** The same in this process alone, without a lock: each work begins when the one before is over, whatever became of that. */
export function createTurns(): InTurn {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work);
    last = mine.catch(() => undefined);
    return mine;
  };
}
