import { constants, type FileHandle, open, rename } from "node:fs/promises";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type Rate, RateBound } from "../process/byte-rate.ts";
import { connectPlain } from "../process/plain-socket.ts";

/**
 * The serial console of one machine. QEMU serves one connection; this is it, for the machine's whole life: what the guest
 * says is recorded, and given to everybody who looks on. Whoever looks on must take it at once or lose it, so that neither
 * the guest nor the recording ever waits for a person.
 */
export interface MachineConsole {
  /** The newest recorded output, then all that follows, without a gap. */
  attach(viewer: ConsoleViewer): ConsoleAttachment;
  readonly viewers: number;
  /** Ends the recording; viewers hear nothing more. */
  close(): void;
}
/** Of a machine of this host, whose console is recorded. */
export interface RecordedConsole extends MachineConsole {
  /** What was said last of a machine that has ended: all that its serial port still had to give is in it. */
  last(): Promise<Buffer>;
}
export interface ConsoleViewer {
  /** Must not block: what it cannot take it drops. */
  output(bytes: Buffer): void;
  /** So many look on now, itself among them. */
  viewers(count: number): void;
}
export interface ConsoleAttachment {
  readonly past: Buffer;
  /** Types into the console. Resolves when the guest's serial port has taken it; rejects when there is none any more. */
  write(bytes: Buffer): Promise<void>;
  detach(): void;
}

/** The record is cut in two files of at most this many bytes, so that a guest that floods its console cannot fill the disk. */
const fileLimit = 256 * 1024;
/** Kept in memory for those who come later, in bytes. */
export const pastLimit = 16 * 1024;
/** Output that waits for the disk; what is more is not recorded, but seen. */
const unwrittenLimit = 1024 * 1024;
const reconnectMs = 500;
/** What a process has written before its end is in the socket; nobody waits longer than this for its end. */
const lastMs = 200;
/** What is more waits in the serial port. No person reads, and no terminal shows, as much. */
const rate: Rate = { bytesPerSecond: 1024 * 1024, burstBytes: 4 * 1024 * 1024 };
/** A serial port gives single bytes; what comes this close together is passed on as one. */
const gatherMs = 5;
const gatherBytes = 16 * 1024;

/**
 * Records into `<file>` and `<file>.1` and resolves when it is connected, or failed to be for the first time: the guest may
 * wait for that. It goes on trying by itself until `close`. An existing record is continued.
 */
export const openConsole = async (socketPath: string, file: string): Promise<RecordedConsole> => {
  const recorder = new Recorder(file);
  await recorder.open();
  const hub = new ConsoleHub(socketPath, recorder);
  await hub.connected();
  return hub;
};

class ConsoleHub implements RecordedConsole {
  readonly #socketPath: string;
  readonly #recorder: Recorder;
  readonly #viewers = new Set<ConsoleViewer>();
  #socket: Socket | null = null;
  #gathered: Buffer[] = [];
  #gatheredBytes = 0;
  #gathering: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(socketPath: string, recorder: Recorder) {
    this.#socketPath = socketPath;
    this.#recorder = recorder;
  }

  get viewers(): number {
    return this.#viewers.size;
  }

  /** Resolves at the end of the first attempt. */
  connected(): Promise<void> {
    return new Promise((resolve) => {
      const socket = connectPlain(this.#socketPath);
      const bound = new RateBound(socket, rate);
      socket.on("connect", () => {
        if (this.#closed) socket.destroy();
        else this.#socket = socket;
        resolve();
      });
      socket.on("data", (bytes: Buffer) => {
        bound.take(bytes.length);
        this.#heard(bytes);
      });
      socket.on("error", () => undefined);
      socket.on("close", () => {
        bound.stop();
        this.#socket = null;
        resolve();
        this.#reconnect();
      });
    });
  }

  attach(viewer: ConsoleViewer): ConsoleAttachment {
    this.#passOn();
    const past = this.#recorder.past();
    this.#viewers.add(viewer);
    this.#tellCount();
    return {
      past,
      write: (bytes) => this.#write(bytes),
      detach: () => {
        if (this.#viewers.delete(viewer)) this.#tellCount();
      },
    };
  }

  async last(): Promise<Buffer> {
    const socket = this.#socket;
    const isOver = socket === null ? null : new Promise((resolve) => socket.once("close", resolve));
    await Promise.race([isOver, sleep(lastMs, undefined, { ref: false })]);
    this.#passOn();
    return this.#recorder.past();
  }

  close(): void {
    this.#closed = true;
    this.#passOn();
    this.#viewers.clear();
    this.#socket?.destroy();
    this.#recorder.close();
  }

  #heard(bytes: Buffer): void {
    this.#gathered.push(bytes);
    this.#gatheredBytes += bytes.length;
    if (this.#gatheredBytes >= gatherBytes || this.#closed) this.#passOn();
    else this.#gathering ??= setTimeout(() => this.#passOn(), gatherMs);
  }

  #passOn(): void {
    if (this.#gathering !== null) clearTimeout(this.#gathering);
    this.#gathering = null;
    if (this.#gatheredBytes === 0) return;
    const bytes = Buffer.concat(this.#gathered);
    this.#gathered = [];
    this.#gatheredBytes = 0;
    this.#recorder.append(bytes);
    for (const viewer of this.#viewers) viewer.output(bytes);
  }

  #tellCount(): void {
    for (const viewer of this.#viewers) viewer.viewers(this.#viewers.size);
  }

  #write(bytes: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      const gone = (): void => reject(new Error("the machine's serial port is not connected"));
      if (this.#socket === null) gone();
      else this.#socket.write(bytes, (error) => (error == null ? resolve() : gone()));
    });
  }

  async #reconnect(): Promise<void> {
    await sleep(reconnectMs, undefined, { ref: false });
    if (!this.#closed) await this.connected();
  }
}

/**
 * The record of a console. Its directory belongs to QEMU's user, who may put anything under the file's name: only a plain
 * file of ours, with this one name, is read or written.
 */
class Recorder {
  readonly #file: string;
  #handle: FileHandle | null = null;
  #written = 0;
  #unwritten = 0;
  #past: Buffer[] = [];
  #pastBytes = 0;
  #queue: Promise<void> = Promise.resolve();

  constructor(file: string) {
    this.#file = file;
  }

  /** Reads what an earlier process has recorded. */
  async open(): Promise<void> {
    this.#remember(await readRecord(this.#file));
    await this.#openFile();
  }

  append(bytes: Buffer): void {
    this.#remember(bytes);
    if (this.#unwritten + bytes.length > unwrittenLimit) return;
    this.#unwritten += bytes.length;
    this.#queue = this.#queue
      .then(() => this.#write(bytes))
      // A full disk loses lines of the record and nothing else.
      .catch(() => undefined)
      .then(() => {
        this.#unwritten -= bytes.length;
      });
  }

  past(): Buffer {
    const whole = Buffer.concat(this.#past);
    return whole.subarray(Math.max(0, whole.length - pastLimit));
  }

  close(): void {
    this.#queue = this.#queue.then(async () => {
      await this.#handle?.close();
      this.#handle = null;
    });
  }

  #remember(bytes: Buffer): void {
    // Not a view of the socket's buffer, which would be kept whole for a few bytes.
    this.#past.push(Buffer.from(bytes.subarray(Math.max(0, bytes.length - pastLimit))));
    this.#pastBytes += Math.min(bytes.length, pastLimit);
    if (this.#pastBytes < 2 * pastLimit && this.#past.length < 512) return;
    const kept = this.past();
    this.#past = [Buffer.from(kept)];
    this.#pastBytes = kept.length;
  }

  async #write(bytes: Buffer): Promise<void> {
    if (this.#written + bytes.length > fileLimit) {
      await this.#handle?.close();
      this.#handle = null;
      await rename(this.#file, `${this.#file}.1`);
      await this.#openFile();
    }
    this.#handle ??= await openOwn(this.#file, appending);
    this.#written += bytes.length;
    await this.#handle.appendFile(bytes);
  }

  async #openFile(): Promise<void> {
    this.#handle = await openOwn(this.#file, appending).catch(() => null);
    this.#written = (await this.#handle?.stat().catch(() => null))?.size ?? 0;
  }
}

const appending = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT;

/** Rejects for a link, a pipe, and a file that somebody else made or that has another name, too. */
const openOwn = async (file: string, flags: number): Promise<FileHandle> => {
  const handle = await open(file, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o600);
  const found = await handle.stat();
  if (found.isFile() && found.uid === process.getuid?.() && found.nlink === 1) return handle;
  await handle.close();
  throw new Error(`${file} is not a file that the Host Manager has made`);
};

/** The end of a record that nobody goes on with. */
export const readRecord = async (file: string): Promise<Buffer> => {
  const whole = Buffer.concat([await readEnd(`${file}.1`), await readEnd(file)]);
  return whole.subarray(Math.max(0, whole.length - pastLimit));
};

const readEnd = async (file: string): Promise<Buffer> => {
  const handle = await openOwn(file, constants.O_RDONLY).catch(() => null);
  if (handle === null) return Buffer.alloc(0);
  try {
    const { size } = await handle.stat();
    const length = Math.min(size, pastLimit);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, size - length);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
};
