import { type Frame, limits } from "../core/distribution/frames.ts";
import type { Json } from "../model/json.ts";

/**
 * Frames on a byte stream: four bytes of length, most significant first, then that many bytes of JSON in UTF-8.
 * Length 0 says only that the sender is alive.
 */
export const aliveFrame: Buffer = Buffer.alloc(4);

/** Null when the frame is longer than the limit. */
export const encodeFrame = (frame: Frame): Buffer | null => {
  const text = JSON.stringify(frame);
  const length = Buffer.byteLength(text);
  if (length > limits.frameBytes) return null;
  const buffer = Buffer.allocUnsafe(4 + length);
  buffer.writeUInt32BE(length);
  buffer.write(text, 4);
  return buffer;
};

/** Cuts a stream into frames. Throws on what is no frame: the stream is of no use afterwards. */
export interface FrameReader {
  read(chunk: Buffer): Json[];
}

export const createFrameReader = (): FrameReader => {
  let chunks: Buffer[] = [];
  let size = 0;
  const need = (length: number): Buffer | null => {
    if (size < length) return null;
    const first = chunks[0];
    if (first !== undefined && first.length >= length) return first;
    const all = Buffer.concat(chunks);
    chunks = [all];
    return all;
  };
  const next = (): Buffer | null => {
    const head = need(4);
    if (head === null) return null;
    const length = head.readUInt32BE(0);
    if (length > limits.frameBytes) throw new Error(`a frame of ${length} bytes is longer than ${limits.frameBytes}`);
    const whole = need(4 + length);
    if (whole === null) return null;
    chunks[0] = whole.subarray(4 + length);
    if (chunks[0].length === 0) chunks.shift();
    size -= 4 + length;
    return whole.subarray(4, 4 + length);
  };
  return {
    read: (chunk) => {
      chunks.push(chunk);
      size += chunk.length;
      const frames: Json[] = [];
      for (let body = next(); body !== null; body = next()) {
        if (body.length > 0) frames.push(JSON.parse(body.toString("utf8")) as Json);
      }
      return frames;
    },
  };
};
