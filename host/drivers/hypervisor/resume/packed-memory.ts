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

/** `bytes`: what is longer or shorter is no memory of that machine. Rejects with a sentence. */
export const unpackMemory = async (from: string, to: string, bytes: number): Promise<void> => {
  const file = await open(to, "w", 0o644);
  try {
    let at = 0;
    await pipeline(createReadStream(from), createZstdDecompress(), async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) {
        if (at + chunk.length > bytes) throw new Error(`a saved memory holds more than ${bytes} bytes`);
        for (let begin = 0; begin < chunk.length; begin += pieceBytes) {
          const piece = chunk.subarray(begin, begin + pieceBytes);
          // What is not written is a hole.
          if (piece.compare(zeros, 0, piece.length) !== 0) await file.write(piece, 0, piece.length, at + begin);
        }
        at += chunk.length;
      }
    });
    if (at < bytes) throw new Error(`a saved memory holds ${at} bytes and not ${bytes}`);
    await file.truncate(at);
  } finally {
    await file.close();
  }
};
