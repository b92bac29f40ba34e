import { CommandFailure } from "./failure.ts";

/** As a shell tells it: 128 and the number of the signal. */
const interruptedCode = 130;

/** Ctrl-C left what goes on without the command. The process ends at once: it may still be connected. */
export class Interrupted extends CommandFailure {
  constructor(message: string) {
    super(interruptedCode, message);
  }
}

/** Waits for what comes of an accepted change; Ctrl-C leaves that to itself, with what somebody should know then. */
export const leavable = async <T>(message: string, work: Promise<T>): Promise<T> => {
  let leave = (): void => undefined;
  const left = new Promise<never>((_resolve, reject) => {
    leave = () => reject(new Interrupted(`\n${message}`));
  });
  process.once("SIGINT", leave);
  try {
    return await Promise.race([work, left]);
  } finally {
    process.off("SIGINT", leave);
  }
};

/** Until Ctrl-C, or somebody ends the process: what goes on until then is to be ended in order. */
export const untilInterrupted = (): Promise<void> =>
  new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
  });
