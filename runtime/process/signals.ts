/** What is to be stopped before the process ends; the latest first. */
const stops: (() => Promise<void>)[] = [];
let ending = false;

const end = async (): Promise<void> => {
  if (ending) return;
  ending = true;
  for (const stop of stops.slice().reverse()) {
    try {
      await stop();
    } catch (error) {
      process.exitCode = 1;
      process.stderr.write(`while stopping: ${(error as Error).message}\n`);
    }
  }
  process.exit();
};

/** Has `stop` run at SIGTERM or SIGINT before the process exits with status 0. Returns how to forget it. */
export const stopAtSignals = (stop: () => Promise<void>): (() => void) => {
  if (stops.length === 0) {
    process.on("SIGTERM", end);
    process.on("SIGINT", end);
  }
  stops.push(stop);
  return () => {
    const index = stops.indexOf(stop);
    if (index >= 0) stops.splice(index, 1);
    if (stops.length > 0 || ending) return;
    process.off("SIGTERM", end);
    process.off("SIGINT", end);
  };
};
