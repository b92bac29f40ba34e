/** Exit codes, as every command's help lists them. */
export const exitCodes = { ok: 0, refused: 1, usage: 2, unreachable: 3, notAsDeclared: 4 } as const;
export const detailedExitCode = "--detailed-exitcode";
/** With it: something would change. Wrong usage is 1 then. */
export const changesCode = 2;

export const exitCodesHelp = `
Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 gateway not reachable, 4 not everything is as declared`;

/** An expected end of a command: what the user reads, and the code. */
export class CommandFailure extends Error {
  readonly exitCode: number;
  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** No answer from the gateway at this URL. `by`: what says that it is there. */
export const unreachable = (url: string, cause: unknown, by?: string): CommandFailure =>
  new CommandFailure(
    exitCodes.unreachable,
    `the gateway at ${url}${by === undefined ? "" : ` (${by})`} does not answer (${cause instanceof Error ? cause.message : String(cause)}): is the testbed up? \`cells status\` tells, \`cells up\` starts it`,
  );

/** Wrong usage: what is wrong, and what would be right. */
export const usage = (message: string): CommandFailure => new CommandFailure(exitCodes.usage, message);
