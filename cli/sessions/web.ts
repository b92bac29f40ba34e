import { Refused } from "../connection/client.ts";
import { type Context, printJson } from "../context/context.ts";
import { CommandFailure, exitCodes, usage } from "../terminal/failure.ts";
import { untilInterrupted } from "../terminal/interrupted.ts";
import { serveLoopback } from "./loopback.ts";

export interface WebOptions {
  readonly port: string;
}

/** The gateway's page on this machine, signed in as whoever the command line is, until Ctrl-C. */
export const web = async (context: Context, { port: written }: WebOptions): Promise<void> => {
  const port = Number(written);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw usage(`--port is "${written}"; it would be a number from 0 to 65535`);
  const client = context.client();
  const gateway = client.url;
  try {
    await (await client.raw("GET", "/ui/", null, "")).body?.cancel();
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 404) throw error;
    throw new CommandFailure(
      exitCodes.refused,
      `the gateway at ${gateway} has no page: it is of an earlier version, or was started without one`,
    );
  }
  const { code, expires } = await client.ask("makeSignInCode", { parameters: {} });
  const loopback = await serveLoopback(gateway, port);
  try {
    const url = `${loopback.url}/ui/#code=${code}`;
    if (context.json) printJson(context, { url, expires });
    else {
      context.terminal.print(url);
      context.terminal.print("Open it within a minute: it signs you in once. The page is there until Ctrl-C.");
    }
    await untilInterrupted();
  } finally {
    await loopback.stop();
  }
};
