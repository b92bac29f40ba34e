import type { PassThrough, Readable } from "node:stream";

const stallMs = 60_000;

/** Gives every chunk to all streams that still take any. Rejects when the sender breaks off. */
export async function spread(body: Readable, streams: readonly PassThrough[]): Promise<void> {
  for (const stream of streams) stream.on("error", () => undefined);
  // The connection is still needed for the answer when nobody takes any more.
  for await (const chunk of body.iterator({ destroyOnReturn: false })) {
    const open = streams.filter((stream) => !stream.destroyed);
    if (open.length === 0) break;
    await Promise.all(open.map((stream) => (stream.write(chunk) ? undefined : drained(stream))));
  }
  body.resume();
  for (const stream of streams) if (!stream.destroyed) stream.end();
}

/** Also when it is closed; a server that takes nothing for too long is given up, and with it the upload. */
export const drained = (stream: PassThrough): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => stream.destroy(new Error("it took no byte for a minute")), stallMs);
    const go = (): void => {
      clearTimeout(timer);
      stream.off("drain", go).off("close", go);
      resolve();
    };
    stream.on("drain", go).on("close", go);
  });
