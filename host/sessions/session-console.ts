import { inputWindowBytes, type SessionMessage } from "../../model/cell/session-messages.ts";
import type { MachineConsole } from "../drivers/hypervisor/guest/console.ts";
import type { SessionChannel } from "./session-channel.ts";

/**
 * One person at a machine's serial console. All who are there see the same and all may type, as at one keyboard that is
 * handed round: the console has no notion of who types, and somebody who joins to help must be able to.
 * Output that a slow client does not take is left out (`offer` in `session-channel.ts`).
 */
export const serveConsole = (
  channel: SessionChannel,
  console: MachineConsole,
  opened: Omit<Extract<SessionMessage, { kind: "opened" }>, "viewers" | "pastBytes">,
): void => {
  let greeted = false;
  const attachment = console.attach({
    output: (bytes) => channel.offer(bytes),
    viewers: (count) => {
      if (greeted) channel.send({ kind: "viewers", count });
    },
  });
  const { past } = attachment;
  channel.send({ ...opened, viewers: console.viewers, pastBytes: past.length });
  greeted = true;
  if (past.length > 0) channel.offer(past);
  channel.closed.then(() => attachment.detach());

  let pending = 0;
  channel.onMessage(({ kind }) => {
    if (kind !== "input-end") channel.end("protocol", `a console knows no message "${kind}"`);
  });
  channel.onInput((bytes) => {
    pending += bytes.length;
    if (pending > inputWindowBytes.console) {
      channel.end(
        "protocol",
        `the client sent more than ${inputWindowBytes.console} bytes that the guest had not read yet`,
      );
      return;
    }
    attachment.write(bytes).then(
      () => {
        pending -= bytes.length;
        channel.send({ kind: "taken", bytes: bytes.length });
      },
      (error: Error) => channel.end("machine-ended", error.message),
    );
  });
};

/** What an incarnation that has ended said last. */
export const showFormer = (
  channel: SessionChannel,
  said: Buffer,
  opened: Omit<Extract<SessionMessage, { kind: "opened" }>, "viewers" | "pastBytes">,
): void => {
  channel.send({ ...opened, viewers: 1, pastBytes: said.length });
  channel.offer(said);
  channel.end("machine-ended", `incarnation ${opened.incarnation} of this VM has ended; that is what it said last`);
};
