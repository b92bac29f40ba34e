/**
 * JSON texts, one per line, of somebody who may mean ill. `JSON.parse` of a line of a few megabytes can hold the event loop for
 * seconds and take a gigabyte, if it nests deeply or has millions of small values. So a line is looked at byte by byte as it comes, and
 * parsed only when it is small in every way; what is not is dropped without being kept. A string that is longer than asked
 * for is cut, since a guest agent gives the whole output of a command as one.
 *
 * The lexical form is that of RFC 8259: a newline stands in no JSON text but between values, and a quote ends a string unless a
 * backslash is before it.
 */
export interface LineLimits {
  /** Arrays and objects within one another. */
  readonly depth: number;
  /** Values of a line in all, as their commas, colons and brackets count them. */
  readonly values: number;
  /** Kept of one string. */
  readonly stringBytes: number;
  /** Kept of one line. */
  readonly lineBytes: number;
  /** Lines that are looked into, from the setting of the limits on; what follows is dropped. */
  readonly lines: number;
}

const [newline, quote, backslash] = [10, 34, 92];
/** `{ [ , :`: each begins a value, or follows one. */
const begins = new Set([123, 91, 44, 58]);
const opening = new Set([123, 91]);
const closing = new Set([125, 93]);

export class BoundedLines {
  #limits: LineLimits;
  readonly #message: (message: unknown) => void;
  #kept: Buffer[] = [];
  #keptBytes = 0;
  #lines = 0;
  #depth = 0;
  #values = 0;
  #inString = false;
  #escaped = false;
  /** Of the string that it is in. */
  #stringBytes = 0;
  #hasEscape = false;
  /** The rest of a string that was too long, up to its end. */
  #cutting = false;
  /** The rest of a line that is too much, up to its end. */
  #dropping = false;

  /** `message`: what a line says; not called for one that is no JSON, or too much. */
  constructor(limits: LineLimits, message: (message: unknown) => void) {
    this.#limits = limits;
    this.#message = message;
  }

  limit(limits: LineLimits): void {
    this.#limits = limits;
    this.#lines = 0;
  }

  /** Takes what has come; returns how many lines ended in it. */
  push(chunk: Buffer): number {
    let lines = 0;
    /** From here on it is kept; -1: nothing is. */
    let from = this.#cutting || this.#dropping ? -1 : 0;
    const keep = (to: number): void => {
      if (from >= 0 && to > from) {
        this.#kept.push(Buffer.from(chunk.subarray(from, to)));
        this.#keptBytes += to - from;
        if (this.#keptBytes > this.#limits.lineBytes) this.#drop();
      }
      from = -1;
    };
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at] as number;
      if (byte === newline) {
        keep(at);
        this.#end();
        lines += 1;
        from = at + 1;
      } else if (this.#dropping) {
        const end = chunk.indexOf(newline, at);
        if (end < 0) break;
        at = end - 1;
      } else if (this.#inString) {
        const wasCutting = this.#cutting;
        this.#string(byte);
        if (this.#dropping) from = -1;
        else if (this.#cutting && !wasCutting) keep(at);
        else if (wasCutting && !this.#cutting) from = at;
      } else {
        this.#outside(byte);
        if (this.#dropping) from = -1;
      }
    }
    keep(chunk.length);
    return lines;
  }

  #string(byte: number): void {
    if (this.#escaped) this.#escaped = false;
    else if (byte === backslash) {
      this.#escaped = true;
      this.#hasEscape = true;
      // A cut could come in the midst of an escape.
      if (this.#cutting) this.#drop();
    } else if (byte === quote) {
      this.#inString = false;
      this.#cutting = false;
      return;
    }
    this.#stringBytes += 1;
    if (this.#stringBytes <= this.#limits.stringBytes || this.#cutting) return;
    if (this.#hasEscape) this.#drop();
    else this.#cutting = true;
  }

  #outside(byte: number): void {
    if (byte === quote) {
      this.#inString = true;
      this.#stringBytes = 0;
      this.#hasEscape = false;
      return;
    }
    if (begins.has(byte)) this.#values += 1;
    if (opening.has(byte)) this.#depth += 1;
    else if (closing.has(byte)) this.#depth -= 1;
    if (this.#depth > this.#limits.depth || this.#values > this.#limits.values) this.#drop();
  }

  #drop(): void {
    this.#dropping = true;
    this.#cutting = false;
    this.#kept = [];
    this.#keptBytes = 0;
  }

  #end(): void {
    this.#lines += 1;
    const isTooMuch = this.#dropping || this.#lines > this.#limits.lines;
    const line = isTooMuch || this.#keptBytes === 0 ? null : Buffer.concat(this.#kept);
    this.#kept = [];
    this.#keptBytes = this.#depth = this.#values = 0;
    this.#inString = this.#escaped = this.#cutting = this.#dropping = false;
    const message = line === null ? undefined : parseLine(line);
    if (message !== undefined) this.#message(message);
  }
}

/** Bytes below 0x20 and 0xff around a line are ignored, as QMP and the guest agent write them. */
const parseLine = (line: Buffer): unknown => {
  let start = 0;
  while (start < line.length && (line[start] === 0xff || (line[start] ?? 0x20) < 0x20)) start += 1;
  const text = line.subarray(start).toString("utf8").trim();
  // Everything that is said there is an object.
  if (!text.startsWith("{")) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};
