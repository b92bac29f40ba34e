import { createServer, type Server, type Socket } from "node:net";
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

export const forward = async (context: Context, vmText: string, written: string): Promise<void> => {
  const { here, there } = portsOf(written);
  const { cell, path } = cellOfPath(vmText);
  const client = context.client();
  // Whether it may be done at all is told before anybody connects. The capability is not used, and ends by itself.
  await client.session(cell, { vm: path, verb: "forward", port: there });
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    pass(context, { cell, vm: path, port: there }, socket).catch((error: Error) => {
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

/** One connection, by a session of its own. Rejects where it cannot be had; resolves when it is over. */
async function pass(
  context: Context,
  to: { readonly cell: string; readonly vm: string; readonly port: number },
  socket: Socket,
): Promise<void> {
  socket.on("error", () => socket.destroy());
  let session: Session | null = null;
  let said = "";
  const opened = await openSession(
    context.client(),
    { ...to, verb: "forward" },
    {
      output: (channel, bytes) => {
        if (channel === "error") said = `${said}${bytes}`.slice(0, 500);
        else if (!socket.destroyed && !socket.write(bytes)) {
          session?.pause();
          socket.once("drain", () => session?.resume());
        }
      },
      message: () => undefined,
    },
  );
  session = opened;
  socket.once("close", () => opened.close());
  if (socket.destroyed) opened.close();
  const input = (async () => {
    for await (const chunk of socket.iterator({ destroyOnReturn: false }))
      if (!(await opened.write(chunk as Buffer))) return;
    opened.send({ kind: "input-end" });
  })().catch(() => opened.close());
  const ending = await opened.ended;
  socket.end();
  if (ending.kind === "ended") throw new Error(ending.sentence);
  if (ending.kind === "exited" && ending.exitCode !== 0)
    throw new Error(printable(said.trim()) || "nobody answers there");
  if (ending.kind === "broken")
    throw new Error("the connection ended: a service on the way has stopped, or the credential was revoked");
  socket.destroySoon();
  await input;
}
