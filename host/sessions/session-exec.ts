import { longestExecInputBytes, type SessionMessage } from "../../model/cell/session-messages.ts";
import {
  CommandTimeout,
  type GuestCommand,
  type GuestOutput,
  type GuestRun,
} from "../drivers/hypervisor/guest/guest-command.ts";
import type { SessionChannel } from "./session-channel.ts";

/** After SIGHUP, for a command whose client is gone. */
const graceMs = 2000;
/** The client must say what to run. */
const firstMessageMs = 10_000;

/** One command in a guest, for one client. It ends with its client, as far as the guest's agent can do that. */
export const serveExec = (
  channel: SessionChannel,
  start: (command: GuestCommand, output: GuestOutput) => GuestRun,
  opened: Omit<Extract<SessionMessage, { kind: "opened" }>, "viewers" | "pastBytes">,
): void => {
  let asked: GuestCommand | null = null;
  let run: GuestRun | null = null;
  let begun = false;
  const input = new Gathered();
  const waiting = setTimeout(
    () => channel.end("protocol", "the client did not say which command to run"),
    firstMessageMs,
  );

  const begin = (command: GuestCommand): void => {
    begun = true;
    try {
      run = start(command, {
        output: (stream, bytes) => channel.deliver(stream === "stdout" ? "output" : "error", bytes),
        notice: (sentence) => channel.send({ kind: "notice", sentence }),
      });
    } catch (error) {
      channel.end("failed", (error as Error).message);
      return;
    }
    run.exitCode.then(
      (exitCode) => {
        run = null;
        channel.send({ kind: "exited", exitCode });
        channel.finish();
      },
      (error: Error) => {
        run = null;
        channel.end(error instanceof CommandTimeout ? "timeout" : "failed", error.message);
      },
    );
  };

  channel.send({ ...opened, viewers: 1, pastBytes: 0 });
  channel.onInput((bytes) => {
    if (input.length + bytes.length > longestExecInputBytes) {
      const limit = `${longestExecInputBytes / 1024 / 1024} MiB`;
      channel.end("protocol", `the input is longer than ${limit}, which is what a guest's agent takes for one command`);
      return;
    }
    input.add(bytes);
    channel.send({ kind: "taken", bytes: bytes.length });
  });
  channel.onMessage((message) => {
    switch (message.kind) {
      case "run": {
        if (asked !== null) {
          channel.end("protocol", "a session runs one command; open another session for the next");
          return;
        }
        clearTimeout(waiting);
        asked = { command: message.command, input: null, timeoutMs: message.timeoutMs };
        if (!message.input) begin(asked);
        return;
      }
      case "input-end":
        if (asked === null || begun) channel.end("protocol", "the end of the input came where none was announced");
        else begin({ ...asked, input: input.bytes() });
        return;
      case "signal":
        run?.signal(message.signal);
    }
  });
  channel.closed.then(() => {
    clearTimeout(waiting);
    const left = run;
    left?.signal("HUP");
    setTimeout(() => {
      if (run !== null) run.signal("KILL");
    }, graceMs).unref();
  });
};

/** In one piece from the beginning: a client may send single bytes, and each of many small buffers costs a hundred. */
class Gathered {
  #held = Buffer.alloc(0);
  length = 0;

  add(bytes: Buffer): void {
    const length = this.length + bytes.length;
    if (length > this.#held.length) {
      const larger = Buffer.alloc(Math.max(4096, 2 * length));
      this.#held.copy(larger);
      this.#held = larger;
    }
    bytes.copy(this.#held, this.length);
    this.length = length;
  }
  bytes(): Buffer {
    return this.#held.subarray(0, this.length);
  }
}
