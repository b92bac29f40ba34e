import { inputWindowBytes, type SessionMessage } from "../../model/cell/session-messages.ts";
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
/** Given to the guest at once. Other sessions of the machine have their turn in between. */
const longestPieceBytes = 256 * 1024;

/**
 * One command in a guest, for one client. It ends with its client, as far as the guest's agent can do that.
 * @param given what is run, which the client does not say then, and whose input it is; null: the client says it
 */
export const serveExec = (
  channel: SessionChannel,
  start: (command: GuestCommand, output: GuestOutput) => GuestRun,
  opened: Omit<Extract<SessionMessage, { kind: "opened" }>, "viewers" | "pastBytes">,
  given: readonly string[] | null = null,
): void => {
  let hasInput: boolean | null = null;
  let run: GuestRun | null = null;
  const input = new Input((bytes) => channel.send({ kind: "taken", bytes }));
  const waiting = setTimeout(
    () => channel.end("protocol", "the client did not say which command to run"),
    firstMessageMs,
  );

  const begin = (command: GuestCommand): void => {
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
    if (!input.add(bytes))
      channel.end(
        "protocol",
        `the client sent more than ${inputWindowBytes.exec} bytes that the guest had not read yet`,
      );
  });
  channel.onMessage((message) => {
    switch (message.kind) {
      case "run": {
        if (hasInput !== null) {
          channel.end("protocol", "a session runs one command; open another session for the next");
          return;
        }
        clearTimeout(waiting);
        const { command, timeoutMs } = message;
        hasInput = message.input;
        begin({ command, input: hasInput ? input : null, timeoutMs });
        return;
      }
      case "input-end":
        if (hasInput === true) input.end();
        else channel.end("protocol", "the end of the input came where none was announced");
        return;
      case "signal":
        run?.signal(message.signal);
    }
  });
  if (given !== null) {
    clearTimeout(waiting);
    hasInput = true;
    begin({ command: given, input, timeoutMs: null });
  }
  channel.closed.then(() => {
    clearTimeout(waiting);
    const left = run;
    left?.signal("HUP");
    setTimeout(() => {
      if (run !== null) run.signal("KILL");
    }, graceMs).unref();
  });
};

/**
 * What the client has sent and the guest does not have yet. It is held in one buffer: a client may send single bytes, and each
 * of many small ones costs a hundred.
 */
class Input implements AsyncIterable<Buffer> {
  readonly #taken: (bytes: number) => void;
  #held = Buffer.alloc(0);
  #length = 0;
  /** In the guest's hands, and not acknowledged. */
  #given = 0;
  #ended = false;
  #changed = Promise.withResolvers<void>();

  constructor(taken: (bytes: number) => void) {
    this.#taken = taken;
  }

  /** False: more than a client may send ahead. */
  add(bytes: Buffer): boolean {
    const length = this.#length + bytes.length;
    if (length + this.#given > inputWindowBytes.exec || this.#ended) return false;
    if (length > this.#held.length) {
      const larger = Buffer.alloc(Math.max(4096, 2 * length));
      this.#held.copy(larger, 0, 0, this.#length);
      this.#held = larger;
    }
    bytes.copy(this.#held, this.#length);
    this.#length = length;
    this.#changed.resolve();
    return true;
  }
  end(): void {
    this.#ended = true;
    this.#changed.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    for (;;) {
      while (this.#length > 0) {
        const piece = Buffer.from(this.#held.subarray(0, Math.min(longestPieceBytes, this.#length)));
        this.#held.copyWithin(0, piece.length, this.#length);
        this.#length -= piece.length;
        this.#given = piece.length;
        yield piece;
        this.#given = 0;
        this.#taken(piece.length);
      }
      if (this.#ended) return;
      this.#changed = Promise.withResolvers();
      await this.#changed.promise;
    }
  }
}
