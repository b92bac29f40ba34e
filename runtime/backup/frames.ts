/**
 * How the parts of a backup follow one another in bytes: frames of a length (4 bytes, big-endian) and as many bytes. Whatever
 * is read may come from anybody, so every length has a bound, and a fault says where it is.
 */

/** Why a backup is not read on, and at which byte of it. `why` is a sentence for people. */
export class BackupFault extends Error {
  /** In bytes from the beginning of the file or stream; null: it is not about a place. */
  readonly position: number | null;
  constructor(position: number | null, why: string) {
    super(position === null ? why : `at byte ${position}: ${why}`);
    this.position = position;
  }
}

/** A frame of these bytes. Length 0 is for ends. */
export const frameOf = (bytes: Uint8Array): Buffer => {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
};

/** Reads a stream in pieces of known length. */
export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #held: Buffer = Buffer.alloc(0);
  #position = 0;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Bytes read so far. */
  get position(): number {
    return this.#position;
  }

  /** Exactly so many bytes. Throws a `BackupFault` when the stream ends before; `what` names them in it. */
  async take(length: number, what: string): Promise<Buffer> {
    const taken = await this.upTo(length);
    if (taken.length === length) return taken;
    throw new BackupFault(this.#position, `it ends within ${what}: ${length - taken.length} bytes are missing`);
  }

  /** So many bytes, or what there still is. */
  async upTo(length: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    let missing = length;
    while (missing > 0) {
      if (this.#held.length === 0) {
        const next = await this.#source.next();
        if (next.done === true) break;
        this.#held = Buffer.from(next.value.buffer, next.value.byteOffset, next.value.byteLength);
        continue;
      }
      const part = this.#held.subarray(0, missing);
      this.#held = this.#held.subarray(part.length);
      missing -= part.length;
      parts.push(part);
    }
    this.#position += length - missing;
    return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
  }

  /** One frame; null at its end mark, a length of 0. Throws for one that is longer than `limit` bytes. */
  async frame(limit: number, what: string): Promise<Buffer | null> {
    const at = this.#position;
    const length = (await this.take(4, `the length of ${what}`)).readUInt32BE();
    if (length === 0) return null;
    if (length > limit) throw new BackupFault(at, `${what} would have ${length} bytes, and has at most ${limit}`);
    return this.take(length, what);
  }
}

/** The object that a frame holds as JSON. Throws a `BackupFault`. */
export const objectIn = (bytes: Uint8Array, position: number, what: string): { readonly [name: string]: unknown } => {
  try {
    const read: unknown = JSON.parse(Buffer.from(bytes).toString("utf8"));
    if (typeof read === "object" && read !== null && !Array.isArray(read)) return read as Record<string, unknown>;
  } catch {
    // Said below.
  }
  throw new BackupFault(position, `${what} is no JSON object`);
};
