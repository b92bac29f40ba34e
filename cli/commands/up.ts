import { type Context, printJson } from "../context/context.ts";
import { CommandFailure, exitCodes } from "../terminal/failure.ts";

/** `cells up` and `cells down`: they do not ask the gateway, because they make and end it. */

export interface UpArguments {
  readonly hosts: number | undefined;
  readonly servers: number | undefined;
  readonly port: number | undefined;
  readonly directory: string | undefined;
  readonly personalities?: readonly "caas"[] | undefined;
  readonly apart?: true | undefined;
  readonly profile?: "small" | "large" | "processes" | undefined;
  /** Of a testbed that is not there yet, where `profile` is not given. */
  readonly newProfile?: "processes";
}

const failing = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    throw new CommandFailure(exitCodes.refused, error instanceof Error ? error.message : String(error));
  }
};

/** Progress goes to standard error where standard output is for JSON. */
export const up = async (
  context: Context,
  { hosts, servers, port, directory, profile, newProfile, personalities, apart }: UpArguments,
): Promise<void> => {
  const { terminal } = context;
  const testbed = await import("../../testbed/up.ts");
  const start = performance.now();
  const onProgress = (line: string): void => {
    const seconds = ((performance.now() - start) / 1000).toFixed(1).padStart(5);
    const text = `${terminal.paint("grey", `${seconds} s`)}  ${line}`;
    if (context.json) terminal.warn(text);
    else terminal.print(text);
  };
  const { url } = await failing(() =>
    testbed.up({
      onProgress,
      ...(hosts === undefined ? {} : { hosts }),
      ...(servers === undefined ? {} : { servers }),
      ...(port === undefined ? {} : { port }),
      ...(directory === undefined ? {} : { directory }),
      ...(profile === undefined ? {} : { profile }),
      ...(newProfile === undefined ? {} : { newProfile }),
      ...(personalities === undefined ? {} : { personalities }),
      ...(apart === undefined ? {} : { apart }),
    }),
  );
  const doors = testbed.doorsAt(directory);
  if (context.json) {
    printJson(context, { url, ...(Object.keys(doors).length === 0 ? {} : { personalities: doors }) });
    return;
  }
  for (const [door, at] of Object.entries(doors))
    terminal.print(`${terminal.paint("green", "up")}: ${door} is at ${at}`);
  // What is at CaaS is all that is at the gateway, and more.
  const at = doors.caas === url ? "commands ask caas, which passes on to the gateway" : `the gateway is at ${url}`;
  terminal.print(`${terminal.paint("green", "up")}: ${at}; \`cells status\` shows everything`);
};

export const down = async (context: Context, directory: string | undefined, purge: boolean): Promise<void> => {
  const testbed = await import("../../testbed/up.ts");
  await failing(() => testbed.down({ purge, ...(directory === undefined ? {} : { directory }) }));
  if (context.json) printJson(context, { down: true, purged: purge });
  else
    context.terminal.print(
      purge ? "down, and its data and its configuration are removed" : "down; its data stays for the next `cells up`",
    );
};

/** Where the gateway does not answer: what the supervisor says of the processes. */
export const testbedStatus = async (context: Context, directory: string | undefined): Promise<void> => {
  const { terminal } = context;
  const testbed = await import("../../testbed/up.ts");
  const found = await testbed.status(directory === undefined ? {} : { directory });
  if (context.json) {
    printJson(context, { directory: found.directory, running: found.running, members: found.members });
    return;
  }
  terminal.print(`Testbed in ${found.directory}: ${found.running ? "running" : "not running"}`);
  for (const { name, address, running, answers, restarts, lastEnd } of found.members) {
    const how = answers ? "answers" : running ? "runs, and does not answer" : "is not running";
    const end = lastEnd === null ? "" : `, last end: ${lastEnd}`;
    terminal.print(`  ${name}  ${address}  ${how}, ${restarts} restarts${end}`);
  }
};

/** Puts stores of a backup into a testbed that is down, or has stopped those processes. */
type RestoreTestbed = typeof import("../../testbed/management/restore.ts")["restoreTestbed"];
export const restoreTestbed: RestoreTestbed = async (options) =>
  (await import("../../testbed/management/restore.ts")).restoreTestbed(options);
