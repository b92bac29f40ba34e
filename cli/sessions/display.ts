import { mostViewers } from "../../model/cell/session-messages.ts";
import { type Context, cellOfPath, printJson } from "../context/context.ts";
import { usage } from "../terminal/failure.ts";
import { address, serveHere, serveStdio } from "./tunnel.ts";

/** `cells display`: the screen of a VM for a VNC viewer of this machine. */
export interface DisplayOptions {
  /** As written; 0: any that is free. */
  readonly port: string;
  /** One viewer, which is this command's standard input and output. */
  readonly stdio: boolean;
}

export const display = async (
  context: Context,
  vmText: string,
  { port: written, stdio }: DisplayOptions,
): Promise<void> => {
  const here = Number(written);
  if (!/^\d{1,5}$/.test(written) || here > 65_535)
    throw usage(`--port is "${written.slice(0, 40)}"; it would be a number from 0 (any that is free) to 65535`);
  const { cell, path } = cellOfPath(vmText);
  const to = { cell, vm: path, verb: "display" } as const;
  const name = `the display of ${vmText}`;
  if (stdio) {
    await serveStdio(context, name, to);
    return;
  }
  await serveHere(context, {
    name,
    to,
    here,
    most: mostViewers,
    listening: (port) => {
      if (context.json) printJson(context, { vm: vmText, address, here: port, url: `vnc://${address}:${port}` });
      else context.terminal.print(`vnc://${address}:${port} is the display of ${vmText}, until Ctrl-C`);
    },
  });
};
