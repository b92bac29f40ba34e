import { Transform, type TransformCallback } from "node:stream";

/** Bytes of a message: the largest specification, in which every character may be escaped, and a little more. */
const longestMessage = 128 * 1024 * 1024;
const longestHeader = 8 * 1024;

/**
 * Passes on what comes from the client as it is, as long as it is messages of the protocol (Language Server Protocol
 * 3.17, base protocol): a header with a Content-Length, then as many bytes. The library behind it would keep anything
 * that is never a message. The first byte that cannot be part of one ends the stream with an error that says so.
 */
export class FramedInput extends Transform {
  #header = Buffer.alloc(0);
  /** Bytes of the message's content that are still to come. */
  #left = 0;

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#left > 0) {
        const content = rest.subarray(0, this.#left);
        this.#left -= content.length;
        rest = rest.subarray(content.length);
        this.push(content);
        continue;
      }
      const before = this.#header.length;
      const seen = Buffer.concat([this.#header, rest.subarray(0, longestHeader + 1)]);
      const end = seen.indexOf("\r\n\r\n");
      const header = seen.subarray(0, end < 0 ? seen.length : end);
      const fault = faultIn(header.toString("latin1"), end >= 0);
      if (fault !== null) {
        done(new Error(fault));
        return;
      }
      if (end < 0) {
        this.#header = seen;
        rest = rest.subarray(seen.length - before);
        continue;
      }
      this.#left = lengthIn(header.toString("latin1")) ?? 0;
      this.#header = Buffer.alloc(0);
      this.push(seen.subarray(0, end + 4));
      rest = rest.subarray(end + 4 - before);
    }
    done();
  }
}

function lengthIn(header: string): number | null {
  const found = /^Content-Length:[ \t]*(\d{1,12})[ \t]*\r?$/im.exec(header)?.[1];
  return found === undefined ? null : Number(found);
}

function faultIn(header: string, complete: boolean): string | null {
  const shown = JSON.stringify(header.slice(0, 60));
  if (header.length > longestHeader) return `a message's header is longer than ${longestHeader} bytes: ${shown}…`;
  const lines = header.split("\r\n");
  const last = lines.pop() ?? "";
  const whole = complete ? [...lines, last] : lines;
  const wrong =
    whole.some((line) => !/^[A-Za-z-]+:[\t\x20-\x7e]*$/.test(line)) ||
    !/^(?:[A-Za-z-]*(?::[\t\x20-\x7e]*)?\r?)$/.test(last);
  if (wrong) return `this is no message of the language server protocol: ${shown}`;
  if (!complete) return null;
  const length = lengthIn(header);
  if (length === null) return `a message's header has no Content-Length: ${shown}`;
  return length > longestMessage ? `a message of ${length} bytes is larger than ${longestMessage}` : null;
}
