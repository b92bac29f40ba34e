/** Exit codes, as every command's help lists them. */
export const exitCodes = { ok: 0, refused: 1, usage: 2, unreachable: 3, notAsDeclared: 4 } as const;
export const detailedExitCode = "--detailed-exitcode";
/** Exit code of `plan --detailed-exitcode` if something would change. Wrong usage is then 1, not 2. */
export const changesCode = 2;

export const exitCodesHelp = `
Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 gateway not reachable, 4 not everything is as declared`;

/** A failure with a message for the user and an exit code. */
export class CommandFailure extends Error {
  readonly exitCode: number;
  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** No answer from the gateway at this URL. `by`: the setting that the URL comes from. */
export const unreachable = (url: string, cause: unknown, by?: string): CommandFailure =>
  new CommandFailure(
    exitCodes.unreachable,
    `the gateway at ${url}${by === undefined ? "" : ` (${by})`} does not answer (${cause instanceof Error ? cause.message : String(cause)}): is the testbed up? \`cells status\` shows it, \`cells up\` starts it`,
  );

/** Wrong usage: what is wrong, and what would be right. */
export const usage = (message: string): CommandFailure => new CommandFailure(exitCodes.usage, message);
