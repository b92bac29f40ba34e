import { createServer, type Server, type Socket } from "node:net";
import type { Writable } from "node:stream";
import type { SessionVerb } from "../../model/cell/session-messages.ts";
import { printable } from "../../model/diagnostics/render-diagnostic.ts";
import type { Context } from "../context/context.ts";
import { CommandFailure, exitCodes } from "../terminal/failure.ts";
import { untilInterrupted } from "../terminal/interrupted.ts";
import { granted, openSession, type Session } from "./session.ts";

/** Connections here that are one session each into a VM: to a port of it, or to its screen. */
export interface Target {
  readonly cell: string;
  readonly vm: string;
  readonly verb: Extract<SessionVerb, "forward" | "display">;
  /** Of `forward`. */
  readonly port?: number;
}
export const address = "127.0.0.1";

export interface Served {
  /** What it is, for sentences about it. */
  readonly name: string;
  readonly to: Target;
  /** 0: any that is free. */
  readonly here: number;
  /** Connections at a time. */
  readonly most: number;
  /** @param port the one that was had */
  listening(port: number): void;
}
/** Until Ctrl-C, at a port of this machine's own address. */
export async function serveHere(context: Context, { name, to, here, most, listening: told }: Served): Promise<void> {
  // Whether it may be done at all is told before anybody connects. The capability is not used, and ends by itself.
  const { cell, ...asked } = to;
  await granted(context.client(), cell, asked);
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    passSocket(context, to, socket).catch((error: Error) => {
      context.terminal.warn(`${name}: ${error.message}`);
      socket.destroy();
    });
  });
  server.maxConnections = most;
  await listening(server, here);
  const { port } = server.address() as { readonly port: number };
  try {
    told(port);
    await untilInterrupted();
  } finally {
    server.close();
    for (const socket of open) socket.destroy();
  }
}

const listening = (server: Server, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once("error", ({ message }) =>
      reject(new CommandFailure(exitCodes.refused, `${address}:${port} cannot be had on this machine: ${message}`)),
    );
    server.listen(port, address, resolve);
  });

/** One connection, by this command's standard input and output, on which there is nothing but the VM's bytes. */
export async function serveStdio(context: Context, name: string, to: Target): Promise<void> {
  const { stdin, stdout } = process;
  try {
    await pass(context, to, { input: stdin, output: stdout, whenOpen: () => undefined });
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    throw new CommandFailure(exitCodes.refused, `${name}: ${(error as Error).message}`);
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
  const opened = await openSession(context.client(), to, {
    output: (channel, bytes) => {
      if (channel === "error") said = `${said}${bytes}`.slice(0, 500);
      else if (!output.destroyed && !output.write(bytes)) {
        session?.pause();
        output.once("drain", () => session?.resume());
      }
    },
    message: () => undefined,
  });
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
