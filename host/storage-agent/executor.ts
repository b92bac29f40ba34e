import type { Mark } from "../../core/documents/bin.ts";
import { lookEveryMs } from "../../core/documents/ha.ts";
import type { AdoptedLease } from "../../core/storage/agent/mark.ts";
import { reserveMiB } from "../../core/storage/agent/reserve.ts";
import type {
  AgentReport,
  BinAnswer,
  ExportAccess,
  VolumeWork,
  WantedExport,
  WorkAnswer,
} from "../../core/storage/agent/work.ts";
import type { Looked } from "../../core/storage/heartbeat/requests.ts";
import type { Uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { ImageFault } from "./images/images.ts";
import {
  type AgentMachinery,
  type DesiredExport,
  ExportNotGone,
  FileMissing,
  PortTaken,
  type ReadyFile,
  type RunningExport,
} from "./machinery.ts";

/**
 * Carries out what the agent's service wants. One task per volume at a time, always on the newest work known, so that a
 * start and a fence of the same volume never overlap. Exports outlive the executor: `close` leaves them running, and the
 * next executor adopts them.
 */
export interface ExecutorOptions {
  /** Name of this server, for sentences. */
  readonly server: string;
  /** Files, exports, time and chance. */
  readonly machinery: AgentMachinery;
  /** Hands a report to the service; resolves with its answer. */
  readonly request: (report: AgentReport) => Promise<Json>;
  readonly log: (event: string, fields: { readonly [key: string]: Json }) => void;
  /** Between two marks; absent: a minute. */
  readonly tickEveryMs?: number;
}

interface VolumeTask {
  work: VolumeWork | null;
  running: Promise<void> | null;
  again: boolean;
  failures: number;
  /** Cancels the repetition that is due. */
  retry: (() => void) | null;
}

const watchEveryMs = 500;
const surveyEveryMs = 10_000;
const tickEveryMs = 60_000;
/** A request is about a sector at least; who only connects moves less. */
const sector = 512;

export class Executor {
  readonly #options: ExecutorOptions;
  readonly #machinery: AgentMachinery;
  readonly #tasks = new Map<Uid, VolumeTask>();
  /** What runs, by volume: adopted or started here. */
  readonly #exports = new Map<Uid, RunningExport[]>();
  /** Exports that the service was told of since this executor began, `<uid>@<epoch>`. */
  readonly #told = new Set<string>();
  /** Those of `#exports` whose start failed and whose end is not confirmed: they are ended, never adopted. */
  readonly #ending = new Set<RunningExport>();
  /** What those that are counted had moved at the look before. */
  readonly #moved = new Map<RunningExport, number>();
  /** Cancel what is due. */
  readonly #cancels = new Set<() => void>();
  /** Less than the reserve was free when that was told last. */
  #isScarce = false;
  /** A disk that hangs is not asked again and again. */
  #looking: Promise<void> | null = null;
  #closed = false;
  /** The server is older than others know it: what is is left as it is. */
  #held = false;
  /** What is beside the files, as far as it is known here. */
  #written: Mark | null = null;
  /** Why the mark is not there, as it was logged last. */
  #unwritten: string | null = null;
  #wakeUp: () => void = () => undefined;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#machinery = options.machinery;
  }

  /** Resolves when the service was asked for its work for the first time; goes on by itself until `close`. */
  async start(): Promise<void> {
    await this.#machinery.prepare();
    for (const found of this.#machinery.findExports()) this.#remember(found);
    const found = await this.#machinery.readMark();
    this.#written = found;
    await this.#report({ kind: "begin", start: this.#machinery.drawStart(), found });
    await this.#survey();
    // Until there is a mark, a store that is lost would be a server's first one.
    if (found === null) await this.#tick().catch(() => undefined);
    this.#every(this.#options.tickEveryMs ?? tickEveryMs, () => void this.#tick().catch(() => undefined));
    this.#every(surveyEveryMs, () => void this.#adoptIfAsked());
    this.#every(watchEveryMs, () => this.#watch());
    this.#every(lookEveryMs, () => void this.#look().catch(() => undefined));
    this.#every(surveyEveryMs, () => void this.#putOutStrangers().catch(() => undefined));
    this.#every(surveyEveryMs, () => void this.#survey().catch(() => undefined));
    void this.#follow();
  }

  /** Waits for the tasks under way; exports keep running. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#wakeUp();
    for (const cancel of this.#cancels) cancel();
    for (const task of this.#tasks.values()) task.retry?.();
    await Promise.all([...this.#tasks.values()].map((task) => task.running));
  }

  #every(ms: number, run: () => void): void {
    const cancel = this.#machinery.after(ms, () => {
      this.#cancels.delete(cancel);
      if (this.#closed) return;
      this.#every(ms, run);
      run();
    });
    this.#cancels.add(cancel);
  }

  /** Ends early when this executor is closed. */
  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#machinery.after(ms, resolve);
      this.#wakeUp = () => {
        cancel();
        resolve();
      };
    });
  }

  async #follow(): Promise<void> {
    for (let known = 0; !this.#closed; ) {
      let answer: WorkAnswer;
      try {
        answer = (await this.#options.request({ kind: "work", known })) as unknown as WorkAnswer;
      } catch (error) {
        if (this.#closed) return;
        this.#options.log("work-unknown", { why: (error as Error).message });
        await this.#sleep(1000);
        continue;
      }
      if (this.#closed) return;
      known = answer.version;
      const wasHeld = this.#held;
      this.#held = answer.hold === true;
      if (this.#held) continue;
      const wanted = new Map(answer.work.map((work) => [work.volume, work]));
      for (const volume of new Set([...wanted.keys(), ...this.#tasks.keys(), ...this.#exports.keys()])) {
        const work = wanted.get(volume) ?? null;
        const task = this.#tasks.get(volume);
        // What came due while it was held was not done, and nothing tries that again.
        if (!wasHeld && task !== undefined && JSON.stringify(task.work) === JSON.stringify(work)) continue;
        this.#begin(volume, work);
      }
    }
  }

  #begin(volume: Uid, work: VolumeWork | null): void {
    let task = this.#tasks.get(volume);
    if (task === undefined) {
      task = { work, running: null, again: false, failures: 0, retry: null };
      this.#tasks.set(volume, task);
    }
    task.work = work;
    task.failures = 0;
    this.#kick(volume, task);
  }

  #kick(volume: Uid, task: VolumeTask): void {
    if (this.#closed) return;
    task.retry?.();
    task.retry = null;
    task.again = true;
    if (task.running === null) task.running = this.#run(volume, task);
  }

  async #run(volume: Uid, task: VolumeTask): Promise<void> {
    while (task.again && !this.#closed) {
      task.again = false;
      const { work } = task;
      try {
        await this.#perform(volume, work);
        task.failures = 0;
        if (work === null && task.work === null && !task.again) this.#tasks.delete(volume);
      } catch (error) {
        task.failures += 1;
        await this.#fail(volume, work, error as Error);
        const afterMs = Math.min(30_000, 500 * 2 ** task.failures);
        if (!this.#closed && !task.again) task.retry = this.#machinery.after(afterMs, () => this.#kick(volume, task));
      }
    }
    // In the same turn as the last look at `again`: a kick that comes later finds nobody running.
    task.running = null;
  }

  async #fail(volume: Uid, work: VolumeWork | null, error: Error): Promise<void> {
    const about = work?.file ? "file" : "export";
    const portTaken = error instanceof PortTaken;
    const reason = isOutOfSpace(error) ? await this.#outOfSpace(error) : error.message;
    const missing = error instanceof FileMissing ? { missing: true as const } : {};
    const badImage = error instanceof ImageFault ? { badImage: true as const } : {};
    const report = { kind: "failed", volume, about, reason, portTaken, ...missing, ...badImage } as const;
    await this.#report(report).catch(() => undefined);
  }

  async #outOfSpace(error: Error): Promise<string> {
    await this.#measure().catch(() => undefined);
    const disk = await this.#machinery.space().catch(() => null);
    const free = disk === null ? "" : ` (${disk.freeMiB} MiB are free)`;
    return `storage server ${this.#options.server} has no space left${free}; it goes on when there is: ${error.message}`;
  }

  /** Idempotent: does what is missing, confirms what is there. */
  async #perform(volume: Uid, work: VolumeWork | null): Promise<void> {
    if (this.#held) return;
    const keep = work?.fence === null ? (work.export?.epoch ?? null) : null;
    for (const found of [...(this.#exports.get(volume) ?? [])]) if (found.epoch !== keep) await this.#end(found);
    if (work === null) return;
    if (work.fence !== null) await this.#report({ kind: "fenced", volume, epoch: work.fence.epoch });
    if (work.file?.action === "create") {
      // Says that there is none, where there is none: no other may take its place.
      if (work.file.found === true) await this.#machinery.ready(volume, null);
      const created = await this.#machinery.create(volume, work.file.source, work.file.sizeMiB, work.file.from);
      if (work.file.from !== undefined) await this.reportBin();
      await this.#report({ kind: "created", volume, ...created });
    }
    if (work.file?.action === "find")
      await this.#report({ kind: "found", volume, ...(await this.#machinery.ready(volume, null)) });
    if (work.file?.action === "grow")
      await this.#report({ kind: "grown", volume, ...(await this.#machinery.ready(volume, work.file.sizeMiB)) });
    if (work.file?.action === "remove") {
      const file = await this.#machinery.remove(volume, work.file.label);
      await this.#report({ kind: "removed", volume, file });
      // Others that held the same have gone with it.
      if (file?.untouched === true) await this.reportBin();
    }
    if (work.fence === null && work.export !== null) await this.#serve(volume, work.export);
  }

  async #serve(volume: Uid, wanted: WantedExport): Promise<void> {
    const { epoch, access } = wanted;
    if (wanted.counted === true) this.#count(volume, epoch);
    if (access === null) {
      await this.#report({ kind: "prepared", volume, epoch, ...this.#machinery.drawSecrets() });
      return;
    }
    const running = this.#exports.get(volume)?.find((found) => found.epoch === epoch);
    const key = `${volume}@${epoch}`;
    if (running !== undefined && this.#ending.has(running)) await this.#end(running);
    else if (running !== undefined) {
      if (this.#told.has(key) && this.#machinery.isAlive(running)) return;
      if (await this.#machinery.isServing(running, access)) {
        this.#options.log("export/adopted", { volume, epoch, pid: running.process.pid });
        return this.#tell(volume, epoch, access, await this.#machinery.ready(volume, null));
      }
      await this.#end(running);
    }
    if (wanted.wait === true) return;
    const file = await this.#machinery.ready(volume, wanted.sizeMiB);
    const started = await this.#startExport({ volume, epoch, writable: wanted.writable, access });
    this.#remember(started);
    this.#options.log("export/started", { volume, epoch, port: access.port, pid: started.process.pid });
    await this.#tell(volume, epoch, access, file);
  }

  /** What was started and is not confirmed gone is remembered, so that no fence is confirmed over it. */
  async #startExport(desire: DesiredExport): Promise<RunningExport> {
    try {
      return await this.#machinery.startExport(desire);
    } catch (error) {
      if (error instanceof ExportNotGone) {
        this.#remember(error.found);
        this.#ending.add(error.found);
      }
      throw error;
    }
  }

  async #tell(volume: Uid, epoch: number, access: ExportAccess, file: ReadyFile): Promise<void> {
    await this.#report({ kind: "exported", volume, epoch, exportName: access.exportName, ...file });
    this.#told.add(`${volume}@${epoch}`);
  }

  async #end(found: RunningExport): Promise<void> {
    await this.#machinery.endExport(found);
    this.#options.log("export/ended", { volume: found.volume, epoch: found.epoch, pid: found.process.pid });
    this.#told.delete(`${found.volume}@${found.epoch}`);
    this.#ending.delete(found);
    const rest = (this.#exports.get(found.volume) ?? []).filter((other) => other !== found);
    if (rest.length === 0) this.#exports.delete(found.volume);
    else this.#exports.set(found.volume, rest);
  }

  #remember(found: RunningExport): void {
    this.#exports.set(found.volume, [...(this.#exports.get(found.volume) ?? []), found]);
  }

  /** A daemon that died while its lease is held is started again with the same name, key and port: clients reconnect. */
  #watch(): void {
    this.#looking ??= this.#watchSpace()
      .catch(() => undefined)
      .finally(() => {
        this.#looking = null;
      });
    for (const [volume, exports] of this.#exports) {
      const task = this.#tasks.get(volume);
      if (task === undefined || task.running !== null || task.retry !== null) continue;
      if (exports.every((found) => this.#machinery.isAlive(found))) continue;
      this.#options.log("export/died", { volume });
      this.#kick(volume, task);
    }
  }

  /** From now on it is seen what it moves. */
  #count(volume: Uid, epoch: number): void {
    const found = this.#exports.get(volume)?.find((each) => each.epoch === epoch);
    const moved = found === undefined ? null : this.#machinery.moved(found);
    if (found !== undefined && moved !== null && !this.#moved.has(found)) this.#moved.set(found, moved);
  }

  /** Whether exports that somebody asks about have served requests since the look before. */
  async #look(): Promise<void> {
    const before = new Map(this.#moved);
    this.#moved.clear();
    const looked: Looked[] = [];
    for (const [volume, { work }] of this.#tasks) {
      const { counted = false, epoch = 0 } = work?.export ?? {};
      const found = counted ? this.#exports.get(volume)?.find((each) => each.epoch === epoch) : undefined;
      const moved = found === undefined ? null : this.#machinery.moved(found);
      if (found === undefined || moved === null) continue;
      this.#moved.set(found, moved);
      const last = before.get(found);
      if (last !== undefined) looked.push({ volume, epoch, served: moved - last >= sector });
    }
    if (looked.length > 0) await this.#report({ kind: "looked", exports: looked });
  }

  /** What was served once and is not any more has nobody behind its port. */
  async #putOutStrangers(): Promise<void> {
    const served = [...this.#tasks].flatMap(([volume, { work }]) => {
      const { access = null, writable = false, holder = null } = work?.export ?? {};
      return access === null ? [] : [{ volume, writable, port: access.port, holder }];
    });
    for (const [volume, connections] of await this.#machinery.putOutStrangers(served))
      this.#options.log("export/strangers", { volume, connections });
  }

  /** What the server has, for the Storage Manager's choice of where a volume goes. */
  async #measure(): Promise<void> {
    const { totalMiB, freeMiB } = await this.#machinery.space();
    this.#isScarce = freeMiB < reserveMiB(totalMiB);
    await this.#report({ kind: "server", totalMiB, freeMiB });
  }

  /** A survey may come too late: what is left of the reserve is for others than who has reached it. */
  async #watchSpace(): Promise<void> {
    const { totalMiB, freeMiB } = await this.#machinery.space();
    if (freeMiB < reserveMiB(totalMiB) === this.#isScarce) return;
    await this.#report({ kind: "usage", volumes: await this.#machinery.usage() });
    await this.#measure();
  }

  async #survey(): Promise<void> {
    await this.#measure();
    await this.#report({ kind: "usage", volumes: await this.#machinery.usage() });
    await this.#surveyGrowing();
    await this.reportImages();
    await this.reportBin();
  }

  /** A disk that its host makes grow: its file says when it has. */
  async #surveyGrowing(): Promise<void> {
    for (const [volume, { work }] of this.#tasks) {
      if (work?.export?.growsToMiB === undefined) continue;
      const file = await this.#machinery.ready(volume, null).catch(() => null);
      if (file !== null && file.sizeMiB >= work.export.growsToMiB)
        await this.#report({ kind: "grown", volume, ...file });
    }
  }

  /** What is in the bin; what the service then wants gone goes. Also at once after something there changed. */
  async reportBin(): Promise<void> {
    const { empty } = await this.#ask({ kind: "bin", files: await this.#machinery.bin() });
    if (empty.length > 0) await this.#empty(empty);
  }

  /** What an operator wants gone for good. Resolves with what is not, and why. */
  async emptyBin(files: readonly string[]): Promise<BinAnswer> {
    const answer = await this.#ask({ kind: "empty-bin", files });
    await this.#empty(answer.empty);
    return answer;
  }

  /** An operator adopts what there is. Null: the server is not older than others know it. */
  async adopt(): Promise<readonly AdoptedLease[] | null> {
    const answer = await this.#options.request({ kind: "adopt" });
    return (answer as unknown as { readonly adopted: readonly AdoptedLease[] | null }).adopted;
  }

  /** Root of this machine may adopt, too: no gateway may be reached before this server's disks are. */
  async #adoptIfAsked(): Promise<void> {
    try {
      if (!(await this.#machinery.takeAdoption())) return;
      const adopted = await this.adopt();
      this.#options.log("adopt-asked", { leases: adopted?.length ?? null });
    } catch (error) {
      this.#options.log("adopt-failed", { why: (error as Error).message });
    }
  }

  async #tick(): Promise<void> {
    const answer = await this.#options.request({ kind: "tick", written: this.#written });
    const { mark } = answer as unknown as { readonly mark: Mark | null };
    if (mark === null) return;
    const why = await this.#machinery.writeMark(mark).then(
      () => null,
      (error: Error) => error.message,
    );
    if (why === null) this.#written = mark;
    if (why !== null && this.#unwritten === null) this.#options.log("mark-unwritten", { why });
    this.#unwritten = why;
  }

  async #empty(files: readonly string[]): Promise<void> {
    for (const file of files) await this.#machinery.empty(file);
    await this.#report({ kind: "bin", files: await this.#machinery.bin() });
  }

  async #ask(report: AgentReport): Promise<BinAnswer> {
    return (await this.#options.request(report)) as unknown as BinAnswer;
  }

  /** Which images are here; also at once after one came or went. */
  async reportImages(): Promise<void> {
    await this.#report({ kind: "images", images: await this.#machinery.images() });
  }

  async #report(report: AgentReport): Promise<void> {
    await this.#options.request(report);
  }
}

/** By the system call's code, or by the words of a program that was called. */
const isOutOfSpace = (error: Error & { readonly code?: unknown }): boolean =>
  error.code === "ENOSPC" || /No space left on device/i.test(error.message);
