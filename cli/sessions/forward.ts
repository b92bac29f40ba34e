import { type Context, cellOfPath, printJson } from "../context/context.ts";
import { usage } from "../terminal/failure.ts";
import { address, serveHere, serveStdio } from "./tunnel.ts";

/** `cells forward`: connections to a port of this machine alone go on to a port of a VM. */
export interface Ports {
  /** 0: any that is free. */
  readonly here: number;
  readonly there: number;
}

/** As many sessions of one VM are open at its host. */
const most = 16;

/** `8080:80`, or `80` for the same number here. Throws what would be right. */
export function portsOf(text: string): Ports {
  const [, first = "", second] = /^(\d{1,5})(?::(\d{1,5}))?$/.exec(text) ?? [];
  const [here, there] = [Number(first), Number(second ?? first)];
  if (first === "" || here > 65_535 || there < 1 || there > 65_535)
    throw usage(`"${text.slice(0, 40)}" are no ports: write HERE:THERE, as in 8080:80; THERE is from 1 to 65535`);
  return { here, there };
}

export interface ForwardOptions {
  /** One connection, which is this command's standard input and output. */
  readonly stdio: boolean;
}

export const forward = async (
  context: Context,
  vmText: string,
  written: string,
  { stdio }: ForwardOptions,
): Promise<void> => {
  const { here, there } = portsOf(written);
  const { cell, path } = cellOfPath(vmText);
  const to = { cell, vm: path, verb: "forward", port: there } as const;
  const name = `${vmText} port ${there}`;
  if (stdio) {
    // As what `ssh` names ProxyCommand.
    if (written.includes(":"))
      throw usage(`with --stdio no port of this machine is taken: write ${there}, not ${written}`);
    await serveStdio(context, name, to);
    return;
  }
  await serveHere(context, {
    name,
    to,
    here,
    most,
    listening: (port) => {
      if (context.json) printJson(context, { vm: vmText, port: there, address, here: port });
      else context.terminal.print(`${address}:${port} is port ${there} of ${vmText}, until Ctrl-C`);
    },
  });
};
