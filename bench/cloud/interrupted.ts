/**
 * What has to be taken away when a person ends a bench half-way. A testbed lives in processes of its own and would stay.
 */
const cleanups = new Set<() => Promise<void>>();

/** Runs the work; `cleanUp` is for an interruption only, the work itself takes away what it made. */
export async function interruptible<T>(cleanUp: () => Promise<void>, work: () => Promise<T>): Promise<T> {
  cleanups.add(cleanUp);
  try {
    return await work();
  } finally {
    cleanups.delete(cleanUp);
  }
}

/** From now on SIGINT and SIGTERM clean up and end the process. */
export function cleanUpAtSignals(): void {
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => {
      Promise.allSettled([...cleanups].map((cleanUp) => cleanUp())).then(() => process.exit(130));
    });
}
