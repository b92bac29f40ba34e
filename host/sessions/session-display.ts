import type { Socket } from "node:net";
import { inputWindowBytes, type SessionMessage } from "../../model/cell/session-messages.ts";
import type { SessionChannel } from "./session-channel.ts";

/** QEMU closes its connections a moment before its end is known, which says more. */
const endMs = 3000;

/**
 * One viewer at a machine's screen: bytes between the session and QEMU's VNC server, as they are. Neither side's are kept: who does not take what the
 * screen shows is not read from, and QEMU leaves out what was shown meanwhile. How many may look on: `mostViewers` in
 * `model/cell/session-messages.ts`; `sessions.ts` refuses the next one.
 * @param socket null: it has no screen any more @param longestMs then the viewer has to come again
 */
export const serveDisplay = (
  channel: SessionChannel,
  socket: Socket | null,
  opened: Omit<Extract<SessionMessage, { kind: "opened" }>, "viewers" | "pastBytes">,
  longestMs: number,
): void => {
  if (socket === null) {
    channel.end("failed", "this VM has no display any more");
    return;
  }
  const timers = [
    setTimeout(() => {
      const hours = Math.max(1, Math.round(longestMs / 3_600_000));
      channel.end("timeout", `a display is open for ${hours} hours at most; open it again`);
    }, longestMs),
  ];
  let isOver = false;
  channel.closed.then(() => {
    isOver = true;
    for (const timer of timers) clearTimeout(timer);
    socket.destroy();
  });
  channel.send({ ...opened, viewers: 1, pastBytes: 0 });

  socket.on("data", (bytes: Buffer) => {
    socket.pause();
    channel.deliver("output", bytes).then(() => socket.resume());
  });
  let why = "QEMU has closed the connection to its display";
  socket.on("error", ({ message }) => {
    why = `its display cannot be reached: ${message}`;
  });
  socket.once("close", () => {
    if (!isOver) timers.push(setTimeout(() => channel.end("failed", why), endMs));
  });

  let pending = 0;
  channel.onMessage(({ kind }) => {
    if (kind !== "input-end") channel.end("protocol", `a display knows no message "${kind}"`);
  });
  channel.onInput((bytes) => {
    pending += bytes.length;
    if (pending > inputWindowBytes.display) {
      channel.end("protocol", `the client sent more than ${inputWindowBytes.display} bytes that QEMU had not read yet`);
      return;
    }
    socket.write(bytes, (error) => {
      pending -= bytes.length;
      if (error == null) channel.send({ kind: "taken", bytes: bytes.length });
    });
  });
};
