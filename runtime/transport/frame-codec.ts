import { limits } from "../../core/distribution/limits.ts";
import type { Frame } from "../../core/distribution/node/frames.ts";
import type { Json } from "../../model/json/json.ts";

/**
 * Frames on a byte stream: four bytes of length, most significant first, then that many bytes of JSON in UTF-8.
 * Length 0 says only that the sender is alive.
 */
export const aliveFrame: Buffer = Buffer.alloc(4);

/** A frame that goes to many is turned into bytes once; what is kept lives as long as the frame itself. */
const made = new WeakMap<Frame, Buffer>();

/** Null when the frame is longer than the limit. The bytes must not be changed. */
export const encodeFrame = (frame: Frame): Buffer | null => {
  const known = made.get(frame);
  if (known !== undefined) return known;
  const text = JSON.stringify(frame);
  const length = Buffer.byteLength(text);
  if (length > limits.frameBytes) return null;
  const buffer = Buffer.allocUnsafe(4 + length);
  buffer.writeUInt32BE(length);
  buffer.write(text, 4);
  made.set(frame, buffer);
  return buffer;
};

/** Cuts a stream into what it is made of. Throws on what makes no sense: the stream is of no use afterwards. */
export interface StreamReader<T> {
  read(chunk: Buffer): T[];
  /** Pieces that were cut off so far, signs of life among them. */
  readonly cut: number;
  /** Bytes that are here of a piece that is not. */
  readonly waiting: number;
  /** The sign of life, as such a stream has it. */
  readonly alive: Uint8Array;
}
export type FrameReader = StreamReader<Json>;

export const createFrameReader = (): FrameReader =>
  createReader(4, (bytes, start, end, found) => {
    if (end > start) found.push(frameOf(bytes, start, end));
  });

const frameOf = (bytes: Buffer, start: number, end: number): Json =>
  JSON.parse(bytes.toString("utf8", start, end)) as Json;

/**
 * Of a stream that several pairs of services share (`links/`): before each frame, four bytes more say whose it is. A sign of
 * life is of nobody.
 */
export interface Piece {
  readonly channel: number;
  readonly frame: Json;
}
export const channelHead = (channel: number): Buffer => {
  const head = Buffer.allocUnsafe(4);
  head.writeUInt32BE(channel);
  return head;
};
export const createPieceReader = (): StreamReader<Piece> =>
  createReader(8, (bytes, start, end, found) => {
    if (end > start) found.push({ channel: bytes.readUInt32BE(start - 8), frame: frameOf(bytes, start, end) });
  });

type Take<T> = (bytes: Buffer, start: number, end: number, found: T[]) => void;

/**
 * What is here of a piece lies in one buffer, which doubles: one that comes in single bytes costs at most twice what has
 * come of it, and one that is only announced costs nothing.
 * @param headBytes before each body; the last four are its length
 */
const createReader = <T>(headBytes: number, take: Take<T>): StreamReader<T> => {
  let rest = Buffer.alloc(0);
  let waiting = 0;
  let cut = 0;
  const keep = (bytes: Buffer): void => {
    if (waiting + bytes.length > rest.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(2 * rest.length, waiting + bytes.length, 64));
      rest.copy(larger, 0, 0, waiting);
      rest = larger;
    }
    bytes.copy(rest, waiting);
    waiting += bytes.length;
  };
  return {
    read: (chunk) => {
      let bytes = chunk;
      if (waiting > 0) {
        keep(chunk);
        bytes = rest.subarray(0, waiting);
      }
      const found: T[] = [];
      let at = 0;
      while (bytes.length - at >= headBytes) {
        const start = at + headBytes;
        const length = bytes.readUInt32BE(start - 4);
        if (length > limits.frameBytes)
          throw new Error(`a frame of ${length} bytes is longer than ${limits.frameBytes}`);
        if (bytes.length - start < length) break;
        take(bytes, start, start + length, found);
        cut += 1;
        at = start + length;
      }
      if (waiting === 0 || at > 0) {
        const left = bytes.subarray(at);
        // A buffer of its own again: a large one is not kept for what follows.
        if (at > 0) rest = Buffer.alloc(0);
        waiting = 0;
        if (left.length > 0) keep(left);
      }
      return found;
    },
    alive: Buffer.alloc(headBytes),
    get cut() {
      return cut;
    },
    get waiting() {
      return waiting;
    },
  };
};
