import { currentLife, type RoleLife } from "./role-life.ts";

/** What is to be stopped before the process ends, or one role of it; the latest first. */
interface Stop {
  readonly life: RoleLife | null;
  readonly stop: () => Promise<void>;
}
const stops: Stop[] = [];
let ending = false;

const forget = (entry: Stop): void => {
  const index = stops.indexOf(entry);
  if (index >= 0) stops.splice(index, 1);
  if (stops.length > 0 || ending) return;
  process.off("SIGTERM", end);
  process.off("SIGINT", end);
};

/** False: one of them failed, and was said. */
const runAll = async (entries: readonly Stop[]): Promise<boolean> => {
  let well = true;
  for (const { stop } of entries.toReversed()) {
    try {
      await stop();
    } catch (error) {
      well = false;
      process.stderr.write(`while stopping: ${(error as Error).message}\n`);
    }
  }
  return well;
};

const end = async (): Promise<void> => {
  if (ending) return;
  ending = true;
  if (!(await runAll(stops.slice()))) process.exitCode = 1;
  process.exit();
};

/**
 * Has `stop` run at SIGTERM or SIGINT before the process exits with status 0; of a role among others also when that role
 * ends alone. Returns how to forget it.
 */
export const stopAtSignals = (stop: () => Promise<void>): (() => void) => {
  if (stops.length === 0) {
    process.on("SIGTERM", end);
    process.on("SIGINT", end);
  }
  const entry: Stop = { life: currentLife(), stop };
  stops.push(entry);
  return () => forget(entry);
};

/** Stops what one role has open, and nothing else. False: something of it may be there still. */
export const stopLife = async (life: RoleLife): Promise<boolean> => {
  const own = stops.filter((entry) => entry.life === life);
  const well = await runAll(own);
  for (const entry of own) forget(entry);
  return well;
};

/** Ends this role in order, for its start from what is durable; a service alone in its process ends with the process. */
export const restartSelf = (): void => {
  const life = currentLife();
  if (life === null) process.kill(process.pid, "SIGTERM");
  else life.restart();
};
