import { createServer, type Server, type Socket } from "node:net";
import type { Writable } from "node:stream";
import { printable } from "../../model/diagnostics/render-diagnostic.ts";
import { type Context, cellOfPath, printJson } from "../context/context.ts";
import { CommandFailure, exitCodes, usage } from "../terminal/failure.ts";
import { untilInterrupted } from "../terminal/interrupted.ts";
import { openSession, type Session } from "./session.ts";

/** `cells forward`: connections to a port of this machine alone go on to a port of a VM. */
export interface Ports {
  /** 0: any that is free. */
  readonly here: number;
  readonly there: number;
}

const address = "127.0.0.1";
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
  if (stdio) {
    await forwardStdio(context, vmText, written, there);
    return;
  }
  const { cell, path } = cellOfPath(vmText);
  const client = context.client();
  // Whether it may be done at all is told before anybody connects. The capability is not used, and ends by itself.
  await client.session(cell, { vm: path, verb: "forward", port: there });
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    passSocket(context, { cell, vm: path, port: there }, socket).catch((error: Error) => {
      context.terminal.warn(`${vmText} port ${there}: ${error.message}`);
      socket.destroy();
    });
  });
  server.maxConnections = most;
  await listening(server, here);
  const { port } = server.address() as { readonly port: number };
  try {
    if (context.json) printJson(context, { vm: vmText, port: there, address, here: port });
    else context.terminal.print(`${address}:${port} is port ${there} of ${vmText}, until Ctrl-C`);
    await untilInterrupted();
  } finally {
    server.close();
    for (const socket of open) socket.destroy();
  }
};

const listening = (server: Server, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once("error", ({ message }) =>
      reject(new CommandFailure(exitCodes.refused, `${address}:${port} cannot be had on this machine: ${message}`)),
    );
    server.listen(port, address, resolve);
  });

/** As what `ssh` names ProxyCommand: nothing but the VM's bytes is on standard output. */
async function forwardStdio(context: Context, vmText: string, written: string, port: number): Promise<void> {
  if (written.includes(":"))
    throw usage(`with --stdio no port of this machine is taken: write ${port}, not ${written}`);
  const { cell, path } = cellOfPath(vmText);
  const { stdin, stdout } = process;
  try {
    await pass(context, { cell, vm: path, port }, { input: stdin, output: stdout, whenOpen: () => undefined });
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    throw new CommandFailure(exitCodes.refused, `${vmText} port ${port}: ${(error as Error).message}`);
  } finally {
    // Else this process would wait for an input that nobody wants.
    stdin.destroy();
  }
}

async function passSocket(context: Context, to: Target, socket: Socket): Promise<void> {
  socket.on("error", () => socket.destroy());
  const input = socket.iterator({ destroyOnReturn: false });
  await pass(context, to, {
    input,
    output: socket,
    whenOpen: (session) => {
      socket.once("close", () => session.close());
      if (socket.destroyed) session.close();
    },
  });
  socket.destroySoon();
}

interface Target {
  readonly cell: string;
  readonly vm: string;
  readonly port: number;
}
/** This end of a connection. */
interface End {
  readonly input: AsyncIterable<Buffer>;
  readonly output: Writable;
  whenOpen(session: Session): void;
}
/** One connection, by a session of its own. Rejects where it cannot be had; resolves when the VM has ended it. */
async function pass(context: Context, to: Target, { input, output, whenOpen }: End): Promise<void> {
  let session: Session | null = null;
  let said = "";
  const opened = await openSession(
    context.client(),
    { ...to, verb: "forward" },
    {
      output: (channel, bytes) => {
        if (channel === "error") said = `${said}${bytes}`.slice(0, 500);
        else if (!output.destroyed && !output.write(bytes)) {
          session?.pause();
          output.once("drain", () => session?.resume());
        }
      },
      message: () => undefined,
    },
  );
  session = opened;
  whenOpen(opened);
  (async () => {
    for await (const chunk of input) if (!(await opened.write(chunk))) return;
    opened.send({ kind: "input-end" });
  })().catch(() => opened.close());
  const ending = await opened.ended;
  if (output !== process.stdout) output.end();
  if (ending.kind === "ended") throw new Error(ending.sentence);
  if (ending.kind === "exited" && ending.exitCode !== 0)
    throw new Error(printable(said.trim()) || "nobody answers there");
  if (ending.kind === "broken")
    throw new Error("the connection ended: a service on the way has stopped, or the credential was revoked");
}
