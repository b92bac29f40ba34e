import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { type Guarded, type Heard, largestTcp, readAnswer } from "../../../core/dns/outside/answers.ts";
import { type Question, questionTo } from "../../../core/dns/outside/message.ts";
import { askByTcp } from "../../dns/by-tcp.ts";

/**
 * One question to one resolver: by UDP, and by TCP where the answer does not fit. Each goes out from a port that the kernel
 * draws and under a number drawn here, and its socket takes packets of that resolver alone.
 */
export interface ResolverSockets {
  /** What the resolver says, or that it failed: it was silent, could not be reached, or somebody guesses at its answer. */
  ask(resolver: string, question: Question): Promise<Heard>;
  /** Ends all that is under way. */
  close(): void;
}
interface Place {
  readonly from: string;
  readonly port: number;
  readonly attemptMs: number;
}
type Read = (packet: Uint8Array) => Heard;
type End = (heard: Heard) => void;

/** An attempt that got so many packets which are no answer to it is being guessed at (RFC 5452, 9.2). */
const mostOthers = 8;
const failed: Heard = { kind: "failed" };

export function resolverSockets(place: Place, guarded: Guarded): ResolverSockets {
  const underWay = new Set<() => void>();
  let closed = false;
  /** @param begin returns how to take back what it opened; it may end more than once */
  const attempt = (begin: (end: End) => () => void): Promise<Heard> =>
    new Promise((resolve) => {
      if (closed) return resolve(failed);
      let close = (): void => {};
      const end = (heard: Heard): void => {
        clearTimeout(timer);
        underWay.delete(giveUp);
        close();
        resolve(heard);
      };
      const giveUp = (): void => end(failed);
      const timer = setTimeout(giveUp, place.attemptMs);
      underWay.add(giveUp);
      close = begin(end);
    });
  return {
    ask: async (resolver, question) => {
      const id = randomInt(65_536);
      const bytes = questionTo(id, question);
      const read = (packet: Uint8Array): Heard => readAnswer(packet, { ...question, id }, guarded);
      const heard = await attempt((end) => byUdp(place, resolver, bytes, read, end));
      return heard.kind === "truncated" ? attempt((end) => byTcp(place, resolver, bytes, read, end)) : heard;
    },
    close: () => {
      closed = true;
      for (const giveUp of [...underWay]) giveUp();
    },
  };
}

function byUdp({ from, port }: Place, resolver: string, question: Uint8Array, read: Read, end: End): () => void {
  const socket = createSocket("udp4");
  let [others, open] = [0, true];
  socket.on("error", () => end(failed));
  socket.on("message", (packet) => {
    const heard = read(packet);
    if (heard.kind === "other") others += 1;
    if (heard.kind !== "other") end(heard);
    else if (others >= mostOthers) end(failed);
  });
  // Without a way to it, connecting is what fails.
  const send = (error?: Error): void => {
    if (error != null) end(failed);
    else if (open) socket.send(question);
  };
  socket.bind(0, from, () => open && socket.connect(port, resolver, send as () => void));
  return () => {
    if (open) socket.close();
    open = false;
  };
}

function byTcp(
  { from, port, attemptMs }: Place,
  address: string,
  question: Uint8Array,
  read: Read,
  end: End,
): () => void {
  let giveUp = (): void => {};
  const place = { address, port, from, timeoutMs: attemptMs, largest: largestTcp };
  void askByTcp(place, question, (how) => (giveUp = how)).then((answer) => {
    const heard = answer === null ? failed : read(answer);
    end(heard.kind === "answer" || heard.kind === "inside" ? heard : failed);
  });
  return () => giveUp();
}
