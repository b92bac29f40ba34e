import type { Mark } from "../../core/documents/bin.ts";
import type { BootRecord, Layer } from "../../core/documents/vocabulary.ts";
import type { BinLabel, ExportAccess } from "../../core/storage/agent/work.ts";
import type { BinFile } from "../../core/storage/bin.ts";
import {
  type AgentMachinery,
  type DesiredExport,
  ExportNotGone,
  FileMissing,
  type RunningExport,
} from "../../host/storage-agent/machinery.ts";
import type { Ipv4, ServerName, Uid } from "../../model/cell/identifiers.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { Life } from "../kernel/process.ts";
import type { Random } from "../kernel/random.ts";
import type { ExportTruth, MachineTruth, Truth } from "./truth.ts";

const sleep = (life: Life, ms: number): Promise<void> => new Promise((resolve) => life.after(ms, resolve));

/** The image that every server has. */
export const golden = { name: "tiny", digest: "d1", sizeMiB: 64 } as const;
interface BroughtImage {
  readonly name: string;
  readonly digest: string;
  readonly sizeMiB: number;
}

/**
 * The hardware of a storage server: files, and exports that outlive the agent. A write that an export has accepted lands a
 * little later, also when the export is being ended meanwhile: it is over when nothing is on its way any more.
 */
export class ServerMachine {
  readonly server: ServerName;
  readonly machine: string;
  readonly totalMiB = 1_000_000;
  full = false;
  slow = false;
  /** Its disk hangs: an export's process starts and answers nothing, and does not end when it is killed. */
  stuck = false;
  /** Images that somebody has brought to this server. */
  brought: readonly BroughtImage[] = [];
  readonly #kernel: Kernel;
  readonly #truth: Truth;
  readonly #random: Random;
  readonly #files = new Map<Uid, number>();
  readonly #bin = new Map<string, BinFile>();
  #binnedSoFar = 0;
  #starts = 0;
  #mark: Mark | null = null;

  readonly #address: Ipv4;

  constructor(server: ServerName, address: Ipv4, kernel: Kernel, truth: Truth) {
    this.server = server;
    this.#address = address;
    this.machine = server;
    this.#kernel = kernel;
    this.#truth = truth;
    this.#random = kernel.random.fork(`server ${server}`);
  }

  get address(): Ipv4 {
    return this.#address;
  }
  /** What its files take. */
  get use(): { readonly files: number; readonly usedMiB: number } {
    return { files: this.#files.size, usedMiB: [...this.#files.values()].reduce((sum, sizeMiB) => sum + sizeMiB, 0) };
  }
  get #exports(): readonly ExportTruth[] {
    return [...this.#truth.exports].filter(({ server }) => server === this.server);
  }

  /** The export that a layer names, if it takes requests. */
  exportNamed({ volume, exportName }: Layer): ExportTruth | null {
    const found = this.#exports.find((each) => each.volume === volume && each.exportName === exportName);
    return found?.alive === true && found.accepting ? found : null;
  }

  /** A guest's write; false where there is nobody to take it. */
  accept(layer: Layer, { vm, incarnation, host }: MachineTruth): boolean {
    const found = this.exportNamed(layer);
    if (found === null || !found.writable) return false;
    found.pending += 1;
    const { volume, epoch } = found;
    this.#kernel.clock.after(0.1 + this.#random.next() * (this.slow ? 7000 : 3), () => {
      if (!found.alive) return;
      found.pending -= 1;
      found.moved += 4096;
      this.#truth.tell((watcher) => watcher.landed?.({ volume, epoch, vm, incarnation, host }));
    });
    return true;
  }

  /** Power is gone. Files stay. */
  powerOff(): void {
    for (const each of this.#exports) this.#gone(each);
  }

  /** An export's process dies by itself. */
  killExport(volume: Uid): void {
    for (const each of this.#exports) if (each.volume === volume) this.#gone(each);
  }

  /** Its file in the bin may become a volume's again. */
  offer(file: string): void {
    const found = this.#bin.get(file);
    if (found !== undefined) this.#bin.set(file, { ...found, offered: true });
  }

  machinery(life: Life): AgentMachinery {
    return {
      prepare: () => sleep(life, 2),
      drawStart: () => {
        this.#starts += 1;
        return `${this.server}-${this.#starts}`;
      },
      readMark: async () => this.#mark,
      writeMark: async (mark) => {
        if (this.full) throw new Error("No space left on device");
        this.#mark = mark;
      },
      takeAdoption: async () => false,
      create: async (volume, source, sizeMiB, from) => {
        await sleep(life, 5 + this.#random.next() * 20);
        if (this.full) throw new Error("No space left on device");
        const binned = from === undefined ? undefined : this.#bin.get(from);
        if (from !== undefined) this.#bin.delete(from);
        const isFresh = binned === undefined && !this.#files.has(volume);
        const image = source.kind === "image" ? this.#imageNamed(source.image) : null;
        const size = this.#files.get(volume) ?? binned?.sizeMiB ?? sizeMiB ?? image?.sizeMiB ?? golden.sizeMiB;
        this.#files.set(volume, size);
        this.#truth.tell((watcher) => watcher.fileMade?.(this.server, volume));
        const made = { sizeMiB: size, roomMiB: size * 4, ...(isFresh ? { fresh: true as const } : {}) };
        if (image === null) return { ...made, boot: null };
        return { ...made, boot: image === golden ? this.#boot() : null, image: image.digest };
      },
      ready: async (volume, sizeMiB) => {
        await sleep(life, 3);
        const size = this.#files.get(volume);
        if (size === undefined) throw new FileMissing(`there is no file of ${volume}`);
        const now = Math.max(size, sizeMiB ?? 0);
        this.#files.set(volume, now);
        return { sizeMiB: now, roomMiB: now * 4 };
      },
      remove: async (volume, label) => {
        await sleep(life, 5);
        const sizeMiB = this.#files.get(volume);
        if (this.#files.delete(volume)) this.#truth.tell((watcher) => watcher.fileRemoved?.(this.server, volume));
        return sizeMiB === undefined ? null : this.#binned(volume, sizeMiB, label);
      },
      bin: async () => [...this.#bin.values()],
      empty: async (file) => {
        this.#bin.delete(file);
      },
      usage: async () => [...this.#files].map(([volume, usedMiB]) => ({ volume, usedMiB })),
      space: async () => ({ totalMiB: this.totalMiB, freeMiB: this.full ? 0 : this.totalMiB - this.#used() }),
      images: async () => [golden, ...this.brought],
      findExports: () => this.#exports.filter(({ alive }) => alive).map(runningExport),
      startExport: (wish) => this.#startExport(life, wish),
      endExport: (found) => this.#endExport(life, found),
      isServing: async (found, access) => {
        await sleep(life, 2);
        const truth = this.#find(found);
        return truth?.alive === true && truth.accepting && truth.exportName === access.exportName;
      },
      isAlive: (found) => this.#find(found)?.alive === true,
      moved: (found) => this.#find(found)?.moved ?? null,
      putOutStrangers: () => Promise.resolve(new Map()),
      drawSecrets: () => this.#drawSecrets(),
      after: life.after,
    };
  }

  /** Whatever else a name is of is the one that every server has. */
  #imageNamed(name: string): BroughtImage {
    return this.brought.find((each) => each.name === name) ?? golden;
  }

  #binned(volume: Uid, sizeMiB: number, label: BinLabel): BinFile {
    if (label.untouched === true)
      for (const [name, other] of this.#bin)
        if (other.volume === volume && other.untouched === true && !other.offered) this.#bin.delete(name);
    this.#binnedSoFar += 1;
    const file = `${volume}.${this.#binnedSoFar}`;
    const kept = { ageMs: 0, deleted: new Date(0).toISOString(), offered: false };
    const binned: BinFile = { file, volume, ...label, sizeMiB, usedMiB: sizeMiB, ...kept };
    this.#bin.set(file, binned);
    return binned;
  }

  #used(): number {
    return [...this.#files.values()].reduce((sum, size) => sum + size, 0);
  }

  #boot(): BootRecord {
    return { digest: golden.digest, address: this.#address, port: 7101, commandLine: "" };
  }

  #drawSecrets(): Omit<ExportAccess, "port"> {
    const hex = (length: number): string =>
      Array.from({ length }, () => this.#random.between(0, 15).toString(16)).join("");
    return { exportName: `x${hex(32)}`, pskIdentity: `i${hex(16)}`, pskHex: hex(64) };
  }

  #find({ process: { pid } }: RunningExport): ExportTruth | undefined {
    return this.#exports.find((each) => each.pid === pid);
  }

  async #startExport(life: Life, { volume, epoch, writable, access }: DesiredExport): Promise<RunningExport> {
    await sleep(life, 20 + this.#random.next() * 150);
    const truth: ExportTruth = {
      server: this.server,
      volume,
      epoch,
      writable,
      exportName: access.exportName,
      pid: this.#truth.nextPid(),
      alive: true,
      accepting: true,
      pending: 0,
      moved: 0,
    };
    this.#truth.exports.add(truth);
    this.#kernel.log(`export.${this.server}`, "started", { volume, epoch });
    this.#truth.tell((watcher) => watcher.exportStarted?.(truth));
    await sleep(life, 5);
    if (this.stuck) throw new ExportNotGone(`the export of ${volume} did not start`, runningExport(truth));
    return runningExport(truth);
  }

  async #endExport(life: Life, found: RunningExport): Promise<void> {
    const truth = this.#find(found);
    if (truth === undefined || !truth.alive) return;
    if (this.stuck) throw new Error(`process ${truth.pid}, which exports ${truth.volume}, cannot be ended`);
    truth.accepting = false;
    // As QEMU does it: the event comes when everything accepted has landed (`endExport`, host/storage-agent/).
    while (truth.alive && truth.pending > 0) await sleep(life, 10);
    await sleep(life, 2);
    this.#gone(truth);
  }

  #gone(truth: ExportTruth): void {
    if (!truth.alive) return;
    truth.alive = false;
    truth.accepting = false;
    this.#truth.exports.delete(truth);
    this.#kernel.log(`export.${this.server}`, "ended", { volume: truth.volume, epoch: truth.epoch });
    this.#truth.tell((watcher) => watcher.exportEnded?.(truth));
  }
}

const runningExport = ({ volume, epoch, pid }: ExportTruth): RunningExport => ({
  volume,
  epoch,
  process: { pid, startTime: String(pid) },
});
