import { closeSync, openSync, renameSync, statSync, writeSync } from "node:fs";

/** A service's log is at most this long; what is older lies in one more file of that length, and the rest is gone. */
export const logLimitBytes = 4 * 1024 * 1024;

/**
 * A log of bounded size: `<file>`, and `<file>.1` with what came before. Whoever reads both has at least the newest
 * `limitBytes`.
 */
export class BoundedLog {
  readonly #file: string;
  readonly #limitBytes: number;
  #descriptor: number | null = null;
  #bytes = 0;

  constructor(file: string, limitBytes = logLimitBytes) {
    this.#file = file;
    this.#limitBytes = limitBytes;
  }

  /** Never throws: a service does not end because a disk is full of logs. A part is as long as one read of a pipe. */
  write(part: string | Uint8Array): void {
    const bytes = typeof part === "string" ? Buffer.from(part) : part;
    try {
      if (this.#descriptor === null) this.#open();
      else if (this.#bytes > 0 && this.#bytes + bytes.length > this.#limitBytes) this.#turn();
      if (this.#descriptor === null) return;
      this.#bytes += writeSync(this.#descriptor, bytes);
    } catch {
      this.close();
    }
  }

  close(): void {
    if (this.#descriptor === null) return;
    closeSync(this.#descriptor);
    this.#descriptor = null;
  }

  #open(): void {
    this.#descriptor = openSync(this.#file, "a");
    this.#bytes = statSync(this.#file).size;
    if (this.#bytes >= this.#limitBytes) this.#turn();
  }

  #turn(): void {
    this.close();
    renameSync(this.#file, `${this.#file}.1`);
    this.#descriptor = openSync(this.#file, "a");
    this.#bytes = 0;
  }
}
