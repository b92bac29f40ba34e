import { createReadStream, createWriteStream } from "node:fs";
import { open } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress, createZstdDecompress } from "node:zlib";

/**
 * A saved memory on its way from an image to a host, in Zstandard: a third of what a guest has written, and nothing for what
 * it has not. Read and checked as one file, it is a sparse file again where it is used.
 */
export const packMemory = (from: string, to: string): Promise<void> => {
  const params = { [constants.ZSTD_c_compressionLevel]: 1 };
  return pipeline(createReadStream(from), createZstdCompress({ params }), createWriteStream(to));
};

const pieceBytes = 64 * 1024;
const zeros = Buffer.alloc(pieceBytes);
/** What is unpacked at once: with Node's 16 KiB most of the time goes into the turns of its threads. */
const chunkBytes = 1024 * 1024;

/** From where to where a chunk is not zero, in pieces; what lies together is one run. */
function* runsIn(chunk: Buffer): Generator<readonly [begin: number, end: number]> {
  let from = -1;
  for (let begin = 0; begin < chunk.length; begin += pieceBytes) {
    const end = Math.min(begin + pieceBytes, chunk.length);
    const isZero = chunk.compare(zeros, 0, end - begin, begin, end) === 0;
    if (!isZero && from < 0) from = begin;
    if (isZero && from >= 0) {
      yield [from, begin];
      from = -1;
    }
  }
  if (from >= 0) yield [from, chunk.length];
}

/** `bytes`: what is longer or shorter is no memory of that machine. Rejects with a sentence. */
export const unpackMemory = async (from: string, to: string, bytes: number): Promise<void> => {
  const file = await open(to, "w", 0o644);
  try {
    let at = 0;
    const packed = createReadStream(from, { highWaterMark: chunkBytes });
    const unpacking = createZstdDecompress({ chunkSize: chunkBytes });
    await pipeline(packed, unpacking, async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) {
        if (at + chunk.length > bytes) throw new Error(`a saved memory holds more than ${bytes} bytes`);
        // What is not written is a hole.
        for (const [begin, end] of runsIn(chunk)) await file.write(chunk, begin, end - begin, at + begin);
        at += chunk.length;
      }
    });
    if (at < bytes) throw new Error(`a saved memory holds ${at} bytes and not ${bytes}`);
    await file.truncate(at);
  } finally {
    await file.close();
  }
};
